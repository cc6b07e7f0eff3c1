import CarillonWire

/// An installation of an app that sends or receives requests.
public struct ServiceApplication: Hashable, Sendable {
    /// The app, named like a bundle identifier.
    public var app: String
    /// The device; nil selects one device of the app: a connected one, or else the one that was last seen.
    public var device: String?

    /// - Parameters:
    ///   - app: The app.
    ///   - device: Nil for any installation of the app; a request is sent to one of them.
    public init(app: String, device: String? = nil) {
        self.app = app
        self.device = device
    }

    init(_ peer: ServicePeer) { self.init(app: peer.app, device: peer.device) }
}
