/// Where a channel stands. Only ``open`` and ``disconnecting`` channels receive messages.
public enum PushChannelState: String, Hashable, Sendable, CaseIterable {
    /// Never connected.
    case none
    /// `connect` was called; ends in ``open`` or ``error``. Survives a restart.
    case connecting
    /// The channel has a token. Loss of the connection and restarts of the app do not change this.
    case open
    /// `disconnect` was called; ends in ``closed``. Survives a restart.
    case disconnecting
    /// Closed for good, by the app or by the server; the token is dead.
    case closed
    /// Failed for good; ``PushChannel/lastErrorCode`` says why, and the token, if there was one, is dead.
    case error
}
