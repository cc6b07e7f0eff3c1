/// Who this install is to the server.
struct DeviceIdentity: Hashable, Sendable {
    var device: String
    /// A secret: never logged.
    var credential: String
    /// The WebSocket address that the server gave at registration.
    var socket: String
}
