/// The state of a channel. Only ``open`` and ``disconnecting`` channels receive messages.
///
/// Compare with the constants, or use a `switch` with a `default`: later versions can add states.
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
    /// Closed permanently, by the app or by the server. The token is invalid.
    public static let closed = PushChannelState(.closed)
    /// Failed permanently. ``PushChannel/lastErrorCode`` has the code. The token, if there was one, is invalid.
    public static let error = PushChannelState(.error)
}

/// The states inside the library, with their names in the store.
enum ChannelState: String, Hashable, Sendable, CaseIterable {
    case none, connecting, open, disconnecting, closed, error
}
