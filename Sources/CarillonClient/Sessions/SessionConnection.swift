/// What is known of the present connection. It is forgotten when the connection ends.
struct SessionConnection: Sendable {
    /// Of the extension, that the connection speaks.
    var version = 0
    /// Whether the server can be asked about services over the connection.
    var supportsServices = false
    var keepAlive: KeepAlive?
    /// Somebody waits until it is known that nothing waits.
    var awaitsPong = false
    /// All that waited has come.
    var hasCaughtUp = false
    /// What the server asked for before it closes.
    var goodbyeDelay: Duration?
}
