import CarillonMessages
import CarillonWire

/// The states of one channel.
///
/// | State | Left by |
/// |---|---|
/// | none | `connectRequested` → connecting |
/// | connecting | `registered` → open; `disconnectRequested` → closed |
/// | connecting | `registrationFailed`, `connectTimedOut`, `closedByServer`, `failedByServer`, `deviceLost` → error |
/// | open | `disconnectRequested` → disconnecting; `closedByServer` → closed; `failedByServer`, `deviceLost` → error |
/// | disconnecting | `unregistered`, `closedByServer`, `failedByServer`, `deviceLost` → closed |
/// | closed, error | `connectRequested` → connecting |
///
/// Any other input changes nothing: the server may repeat a report, and an app may disconnect a channel that is not connected.
/// Only an impossible `connect` throws an error. The loss of a connection is not an input. `pingFailed` and `recovered` are
/// reported while the channel is open or disconnecting, `moved` while the channel is open. They do not change its state.
struct ChannelMachine: Hashable, Sendable {
    /// The event that is reported to the app.
    enum Action: Equatable, Sendable {
        case none
        case notifyOpened(token: String, host: String)
        case notifyClosed(token: String)
        case notifyError(code: Int)
        case notifyPingFailed(code: Int)
        case notifyRecovered
        case notifyMoved
    }

    private(set) var state = ChannelState.none
    /// The channel ID on the server. Each `connect` makes a new one, so that the tokens differ.
    private(set) var channelID: ChannelID?
    /// Kept after the end of the channel, so that the app can report the invalid token to its backend.
    private(set) var endpoint: ChannelEndpoint?
    /// The code with which the channel failed; nil unless the state is `error`.
    private(set) var lastErrorCode: Int?
    /// The keys with which messages are decrypted; nil if the channel was connected without encryption.
    private(set) var keys: SubscriptionKeys?
    /// How messages wake the app; nil for the server's default.
    private(set) var wake: WakeMode?
    /// Whether the token must be delivered to the app's backend, as far as the client can determine.
    private(set) var isTokenDue = false

    init() {}

    /// Restores a channel from the store.
    init(
        state: ChannelState, channelID: ChannelID?, endpoint: ChannelEndpoint?, lastErrorCode: Int?,
        keys: SubscriptionKeys? = nil, wake: WakeMode? = nil, isTokenDue: Bool = false
    ) {
        self.state = state
        self.channelID = channelID
        self.endpoint = endpoint
        self.lastErrorCode = lastErrorCode
        self.keys = keys
        self.wake = wake
        self.isTokenDue = isTokenDue
    }

    /// Whether messages for the channel are delivered to the app.
    var receivesMessages: Bool { state == .open || state == .disconnecting }

    // MARK: Facts from the app

    /// - Parameter keys: New keys if the channel is encrypted, because its token is new.
    mutating func connectRequested(
        as channelID: ChannelID, keys: SubscriptionKeys? = nil, wake: WakeMode? = nil
    ) throws(PushError) {
        switch state {
        case .connecting: throw PushError(.alreadyConnecting, "connect() was called on a channel that is connecting.")
        case .open: throw PushError(.alreadyOpen, "connect() was called on a channel that is open.")
        case .disconnecting:
            throw PushError(
                .stillDisconnecting, "connect() was called on a channel that is disconnecting; wait until it is closed."
            )
        case .none, .closed, .error:
            self = ChannelMachine(
                state: .connecting, channelID: channelID, endpoint: nil, lastErrorCode: nil, keys: keys, wake: wake)
        }
    }

    /// Closes a connecting channel at once. An open channel is closed by the server.
    mutating func disconnectRequested() -> Action {
        switch state {
        case .open:
            state = .disconnecting
            return .none
        case .connecting: return close()
        case .none, .disconnecting, .closed, .error: return .none
        }
    }

    mutating func connectTimedOut() -> Action {
        guard state == .connecting else { return .none }
        return fail(ChannelErrorCode.notConnected)
    }

    // MARK: Facts from the server

    mutating func registered(at endpoint: ChannelEndpoint) -> Action {
        // An open channel keeps the first endpoint that was reported to the app.
        guard state == .connecting else { return .none }
        state = .open
        self.endpoint = endpoint
        isTokenDue = true
        return .notifyOpened(token: endpoint.token, host: endpoint.host)
    }

    mutating func registrationFailed(code: Int) -> Action {
        guard state == .connecting else { return .none }
        return fail(code)
    }

    mutating func unregistered() -> Action {
        guard state == .disconnecting else { return .none }
        return close()
    }

    mutating func closedByServer() -> Action {
        switch state {
        case .open, .disconnecting: close()
        case .connecting: fail(ChannelErrorCode.server.lowerBound)
        case .none, .closed, .error: .none
        }
    }

    mutating func failedByServer(code: Int) -> Action {
        switch state {
        case .connecting, .open: fail(code)
        case .disconnecting: close()
        case .none, .closed, .error: .none
        }
    }

    /// The server does not know the device any more, and therefore none of its channels.
    mutating func deviceLost() -> Action { failedByServer(code: ChannelErrorCode.deviceUnknown) }

    /// The server could not reach the backend at the address that the backend registered.
    mutating func pingFailed(code: Int) -> Action {
        guard receivesMessages else { return .none }
        if code == PushChannelEvent.PingFailure.tokenLost.code { isTokenDue = true }
        return .notifyPingFailed(code: code)
    }

    /// The server has another address. The token stays valid, and is part of another endpoint.
    mutating func moved(to endpoint: ChannelEndpoint) -> Action {
        guard state == .open, let present = self.endpoint, endpoint.token == present.token, endpoint != present else {
            return .none
        }
        self.endpoint = endpoint
        isTokenDue = true
        return .notifyMoved
    }

    mutating func recovered() -> Action { receivesMessages ? .notifyRecovered : .none }

    /// The app's backend received the token. Returns false if the channel has another token by now, or is not open.
    mutating func tokenDelivered(_ token: String) -> Bool {
        guard isTokenDue, state == .open, endpoint?.token == token else { return false }
        isTokenDue = false
        return true
    }

    private mutating func close() -> Action {
        state = .closed
        isTokenDue = false
        return .notifyClosed(token: endpoint?.token ?? "")
    }

    private mutating func fail(_ code: Int) -> Action {
        state = .error
        lastErrorCode = code
        isTokenDue = false
        return .notifyError(code: code)
    }
}
