/// Whether messages can arrive at this moment.
///
/// A loss of availability is transient and closes no channel: messages wait on the server.
public struct Availability: Hashable, Sendable {
    /// Whether the server's host could be reached at the last attempt. False before the first attempt.
    public var network: Bool
    /// Whether the server accepted this device on a live connection: registrations and messages can pass.
    public var service: Bool

    /// Makes a value, for example in the tests of an app.
    public init(network: Bool, service: Bool) {
        self.network = network
        self.service = service
    }
}
