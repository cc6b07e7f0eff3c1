/// Whether messages can arrive at this moment.
///
/// A loss of availability is transient and closes no channel: messages wait on the server.
public struct Availability: Hashable, Sendable {
    /// The server's host could be reached at the last attempt. False before the first one.
    public var network: Bool
    /// The server knows this device on a live connection: registrations and messages flow.
    public var service: Bool

    /// Makes a value, for instance in the tests of an app.
    public init(network: Bool, service: Bool) {
        self.network = network
        self.service = service
    }
}
