/// An event of a service request. The client stores the event, and then acknowledges it.
package struct ServiceFrame: Equatable, Sendable {
    /// The envelope's identifier.
    package var version: String
    /// JSON: a ``ServiceEvent``.
    package var body: [UInt8]

    package init(version: String, body: [UInt8]) {
        self.version = version
        self.body = body
    }
}
