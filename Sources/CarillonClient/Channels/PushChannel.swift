import CarillonMessages
import CarillonWire

/// An address at which backends reach this install of the app: one per purpose, by an identifier that the app chooses.
///
/// A channel is restored by its identifier: after a restart of the app, an open channel is open with the same token.
/// Only the app, the server's operator, or a fault that cannot be mended ends it; the loss of a connection does not.
/// Get one from ``PushClient/channel(_:)``.
public final class PushChannel: Sendable {
    /// The app's name for the channel, unique within the app.
    public let identifier: String

    let runner: SessionRunner
    let inbox: ChannelInbox

    init(identifier: String, runner: SessionRunner) {
        self.identifier = identifier
        self.runner = runner
        inbox = runner.inbox(of: identifier)
    }

    deinit { runner.identifierReleased(identifier) }

    /// Where the channel stands, as it is stored.
    public var state: PushChannelState { PushChannelState(machine.state) }

    /// The token that a backend sends to; nil before the first opening. It stays readable after the channel's end, so
    /// that the app can say which token died.
    public var token: String? { machine.endpoint?.token }

    /// The URL that a backend posts messages to (RFC 8030's push resource); it has the token in it.
    public var endpoint: String? { machine.endpoint?.text }

    /// What encrypts messages to this channel; nil unless it was connected with `encrypted`, and before the first
    /// opening.
    public var subscription: PushSubscription? {
        let machine = machine
        guard let keys = machine.keys, let endpoint = machine.endpoint else { return nil }
        return PushSubscription(keys, endpoint: endpoint)
    }

    /// The host of ``endpoint``.
    public var host: String? { machine.endpoint?.host }

    /// Why the channel failed; nil unless its state is ``PushChannelState/error``.
    public var lastErrorCode: Int? { machine.lastErrorCode }

    /// What happens on the channel; see ``PushChannelEvents`` for the rule of acknowledgement, and for what waits for a slow iteration.
    ///
    /// Iterate the events of each channel that is open. Messages of a channel that nobody iterates are kept up to
    /// ``PushClient/Configuration/channelBuffer``; they hold up no other channel, and a warning in the log names it.
    public var events: PushChannelEvents { PushChannelEvents(channel: self) }

    /// Asks for the channel to be opened; legal when it was never connected, is closed, or has failed.
    ///
    /// The request is durable when this returns, and the state is ``PushChannelState/connecting``. Exactly one event
    /// follows: ``PushChannelEvent/opened(token:host:)`` or ``PushChannelEvent/error(code:)``. Without a connection the
    /// channel waits for one, however long that takes and across restarts, unless there is a time-out.
    /// - Parameters:
    ///   - timeout: how long to wait for the answer, in this process; then the channel fails with code 0, and a
    ///     registration that may have reached the server is withdrawn. Nil waits for ever.
    ///   - encrypted: whether the channel makes itself keys, new ones with each token, and takes nothing but messages
    ///     that were encrypted with its ``subscription`` (RFC 8291; `aesgcm` of older senders too). The app is shown
    ///     what the sender wrote. What cannot be decrypted is not shown: it is logged, and its sender can learn of it,
    ///     by the outcome `failed` with code 101. A message without a body needs no key.
    ///   - wake: how its messages reach the app while it sleeps; nil is ``PushChannelWake/background``.
    /// - Throws: ``PushError`` with ``PushError/Code/alreadyConnecting``, ``PushError/Code/alreadyOpen`` or
    ///   ``PushError/Code/stillDisconnecting``, or with ``PushError/Code/storageUnavailable``; nothing has changed
    ///   then. Cancelling the task does not withdraw the request.
    public func connect(
        timeout: Duration? = nil, encrypted: Bool = false, wake: PushChannelWake? = nil
    ) async throws(PushError) {
        let identifier = identifier
        let id = runner.makeChannelID()
        let keys = encrypted ? SubscriptionKeys() : nil
        try await runner.perform { (session, context) throws(PushError) in
            try session.connectRequested(
                identifier, as: id, keys: keys, wake: wake?.mode, deadline: timeout.map { context.now + $0 })
        }
    }

    /// Asks for the channel to be closed; legal in every state.
    ///
    /// The request is durable when this returns. An open channel is ``PushChannelState/disconnecting`` then: messages still
    /// arrive until ``PushChannelEvent/closed(token:)``, and without a connection the server is notified at the next one. A
    /// channel that is connecting is given up: it is ``PushChannelState/closed`` at once, with the same event, and a
    /// registration that may have reached the server is withdrawn. In any other state nothing changes, and no event comes.
    /// - Throws: ``PushError`` with ``PushError/Code/storageUnavailable``; nothing has changed then. Cancelling the task
    ///   does not take the request back.
    public func disconnect() async throws(PushError) {
        let identifier = identifier
        try await runner.perform { session, _ in session.disconnectRequested(identifier) }
    }

    var machine: ChannelMachine { runner.channel(identifier) }

    func event(for entry: ChannelInbox.Entry) -> PushChannelEvent? {
        switch entry {
        case .change(.notifyOpened(let token, let host), _): .opened(token: token, host: host)
        case .change(.notifyClosed(let token), _): .closed(token: token)
        case .change(.notifyError(let code), _): .error(code: code)
        case .change(.notifyPingFailed(let code), _): .pingFailed(.init(code: code))
        case .change(.notifyRecovered, _): .recovered
        case .change(.notifyMoved, _): .other(.moved)
        case .change(.none, _): nil
        case .missed(let count): .other(.missed(count))
        case .message(let message): .message(PushMessage(message, channel: identifier, runner: runner))
        }
    }
}
