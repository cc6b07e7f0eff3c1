/// Where a channel stands. Only ``open`` and ``disconnecting`` channels receive messages.
///
/// Compare with the constants, or switch over them with a `default`: more may come.
public struct PushChannelState: Hashable, Sendable, CustomStringConvertible {
    private let state: ChannelState

    init(_ state: ChannelState) { self.state = state }

    /// The stable name of the state.
    public var description: String { state.rawValue }

    /// Never connected.
    public static let none = PushChannelState(.none)
    /// `connect` was called; ends in ``open``, ``closed`` or ``error``. Survives a restart.
    public static let connecting = PushChannelState(.connecting)
    /// The channel has a token. Loss of the connection and restarts of the app do not change this.
    public static let open = PushChannelState(.open)
    /// `disconnect` was called; ends in ``closed``. Survives a restart.
    public static let disconnecting = PushChannelState(.disconnecting)
    /// Closed for good, by the app or by the server; the token is dead.
    public static let closed = PushChannelState(.closed)
    /// Failed for good; ``PushChannel/lastErrorCode`` says why, and the token, if there was one, is dead.
    public static let error = PushChannelState(.error)
}

/// The states as the library knows them, by the names in the store.
enum ChannelState: String, Hashable, Sendable, CaseIterable {
    case none, connecting, open, disconnecting, closed, error
}
