/// What can happen on a channel.
public enum PushChannelEvent: Sendable {
    /// The channel is open: send the token, or ``PushChannel/endpoint``, to your backend. Exactly one of this and
    /// ``error(code:)`` follows each `connect`.
    case opened(token: String, host: String)
    /// The channel is closed for good, by the app or by the server. The token is dead; a new `connect` gives another.
    case closed(token: String)
    /// The channel could not be opened, or cannot go on; its token, if it had one, is dead.
    ///
    /// The numbers are those of the Push Channel: 0 when the service could not be reached in the time given to
    /// ``PushChannel/connect(timeout:)``; 200–499 inside the library (201: the server does not know this device any
    /// more, 202: the server refused the registration); 500–599 on the server.
    case error(code: Int)
    /// A message came. It counts as handled when the next event is asked for.
    case message(PushMessage)
}
