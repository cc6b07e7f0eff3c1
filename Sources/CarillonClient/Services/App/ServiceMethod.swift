import CarillonWire

/// A method of a version of a service.
public struct ServiceMethod: Hashable, Sendable {
    /// A reversed domain name in lower case: `com.example.transfer-file`.
    public var service: String
    /// One to four numbers with dots between them: `1.0.0.0`.
    public var version: String
    /// A letter, and up to 63 letters, digits and underscores.
    public var name: String

    /// AppKinetics' request to come to the front of the screen, which every provider has: ``ServiceClient/bringToFront(_:)``.
    public static let frontRequest = ServiceMethod(
        RequestHeader.frontService, RequestHeader.frontVersion, RequestHeader.frontMethod)

    /// Makes a name. Its validity is checked when it is used.
    public init(_ service: String, _ version: String, _ name: String) {
        self.service = service
        self.version = version
        self.name = name
    }
}
