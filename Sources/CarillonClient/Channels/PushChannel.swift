import CarillonMessages
import CarillonWire

/// An address at which backends reach this installation of the app. An app has one channel for each purpose, and chooses its
/// identifier.
///
/// A channel is restored by its identifier: after a restart of the app, an open channel is open with the same token. A channel is
/// ended by the app, by the server's operator, or by a permanent fault. The loss of a connection does not end it. Get a channel
/// from ``PushClient/channel(_:)``.
public final class PushChannel: Sendable {
    /// The app's name for the channel, unique within the app.
    public let identifier: String

    let runner: SessionRunner
    let readQueue: ChannelReadQueue

    init(identifier: String, runner: SessionRunner) {
        self.identifier = identifier
        self.runner = runner
        readQueue = runner.readQueue(of: identifier)
    }

    deinit { runner.identifierReleased(identifier) }

    /// The state of the channel, as it is stored.
    public var state: PushChannelState { PushChannelState(machine.state) }

    /// The token to which a backend sends; nil before the first opening. It stays readable after the channel's end, so that the
    /// app can report which token is invalid.
    public var token: String? { machine.endpoint?.token }

    /// The URL to which a backend posts messages (RFC 8030's push resource). It contains the token.
    public var endpoint: String? { machine.endpoint?.text }

    /// The endpoint and keys with which senders encrypt messages to this channel; nil before the first opening, and if the
    /// channel was connected without `encrypted`.
    public var subscription: PushSubscription? {
        let machine = machine
        guard let keys = machine.keys, let endpoint = machine.endpoint else { return nil }
        return PushSubscription(keys, endpoint: endpoint)
    }

    /// The host of ``endpoint``.
    public var host: String? { machine.endpoint?.host }

    /// The code of the channel's failure; nil unless its state is ``PushChannelState/error``.
    public var lastErrorCode: Int? { machine.lastErrorCode }

    /// The events of the channel. See ``PushChannelEvents`` for acknowledgement, and for the limits of a slow iteration.
    ///
    /// Iterate over the events of each open channel. Messages of a channel without an iteration are kept up to
    /// ``PushClient/Configuration/channelBuffer``. They do not delay other channels, and a warning in the log names the channel.
    public var events: PushChannelEvents { PushChannelEvents(channel: self) }

    /// Requests that the channel is opened. This is valid if the channel was never connected, is closed, or has failed.
    ///
    /// When this returns, the request is durable and the state is ``PushChannelState/connecting``. Exactly one event follows:
    /// ``PushChannelEvent/opened(token:host:)`` or ``PushChannelEvent/error(code:)``. Without a connection the channel waits for
    /// one without a limit and across restarts, unless `timeout` is set.
    /// - Parameters:
    ///   - timeout: How long the channel waits for the response, in this process. Then the channel fails with code 0, and a
    ///     registration that may have reached the server is withdrawn. Nil waits without a limit.
    ///   - encrypted: Whether the channel makes keys, new ones with each token, and accepts only messages that were encrypted
    ///     with its ``subscription`` (RFC 8291; also `aesgcm` of older senders). The app receives the decrypted body. A message
    ///     that cannot be decrypted is not delivered to the app: it is logged, and its sender can see the outcome `failed` with
    ///     code 101. A message without a body needs no key.
    ///   - wake: How its messages reach the app while the app is not running; nil is ``PushChannelWake/background``.
    /// - Throws: ``PushError`` with ``PushError/Code/alreadyConnecting``, ``PushError/Code/alreadyOpen``,
    ///   ``PushError/Code/stillDisconnecting`` or ``PushError/Code/storageUnavailable``; nothing has changed then. Cancelling the
    ///   task does not withdraw the request.
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

    /// Requests that the channel is closed. This is valid in every state.
    ///
    /// When this returns, the request is durable. An open channel becomes ``PushChannelState/disconnecting``: messages still
    /// arrive until ``PushChannelEvent/closed(token:)``, and without a connection the server is notified at the next one. A
    /// connecting channel becomes ``PushChannelState/closed`` at once, with the same event, and a registration that may have
    /// reached the server is withdrawn. In any other state nothing changes, and no event follows.
    /// - Throws: ``PushError`` with ``PushError/Code/storageUnavailable``; nothing has changed then. Cancelling the task does not
    ///   withdraw the request.
    public func disconnect() async throws(PushError) {
        let identifier = identifier
        try await runner.perform { session, _ in session.disconnectRequested(identifier) }
    }

    var machine: ChannelMachine { runner.channel(identifier) }

    func event(for entry: ChannelReadQueue.Entry) -> PushChannelEvent? {
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
