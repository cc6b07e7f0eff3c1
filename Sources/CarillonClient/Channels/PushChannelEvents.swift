import ServiceLifecycle
import Synchronization

/// What happens on a channel, in order.
///
/// Asking for the next event says that the one before it was handled. What happens while nobody iterates is kept: messages
/// in the durable storage, up to ``PushClient/Configuration/channelBuffer``, changes of the channel in memory. An iteration
/// that breaks off, by `break`, an error or cancellation, has not handled the event it was shown last: the next iteration
/// begins with it.
///
/// A message with which the process ended ten times is not shown again: its sender can see the code 301, and the iteration has
/// ``PushChannelEvent/Other/crashedMessage`` in its place.
///
/// Of changes the newest 64 wait. Beyond that the oldest is dropped, and the next event is ``PushChannelEvent/other(_:)`` with
/// ``PushChannelEvent/Other/missedCount``; ``PushChannel/state`` has the present state. Messages are not dropped: when the durable storage
/// has as many as it may have, the server is notified that a further one failed, with code 303.
///
/// One iteration at a time: the first `next()` of another one throws ``PushError`` with
/// ``PushError/Code/alreadyIterating``. The sequence ends when the task is cancelled, when the service group of the task
/// shuts down gracefully, and when the client stops; an iteration that begins before the client is started waits for it.
public struct PushChannelEvents: AsyncSequence, Sendable {
    public typealias Element = PushChannelEvent
    public typealias Failure = PushError

    let channel: PushChannel

    /// Prepares an iteration; it begins with the first call of `next()`.
    public func makeAsyncIterator() -> Iterator { Iterator(channel: channel) }

    /// One reader's place in the events of a channel.
    public struct Iterator: AsyncIteratorProtocol {
        public typealias Element = PushChannelEvent
        public typealias Failure = PushError

        private let channel: PushChannel
        private let run: UInt64
        private var claim: InboxClaim?
        private var shown: ChannelInbox.Entry?

        init(channel: PushChannel) {
            self.channel = channel
            run = channel.inbox.run
        }

        /// Says that the event before was handled, and waits for the next one; nil when the task was cancelled, its
        /// service group shuts down, or the client stopped. In a cancelled task nothing is said of the event before.
        /// - Throws: ``PushError`` with ``PushError/Code/alreadyIterating``, or with
        ///   ``PushError/Code/storageUnavailable`` when the answer could not be stored; the message then comes again.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(PushError) -> PushChannelEvent? {
            guard !Task.isCancelled else { return end() }
            if claim == nil {
                guard let fresh = InboxClaim(channel.inbox, channel.runner) else {
                    throw PushError(
                        .alreadyIterating,
                        "The events of the channel \"\(channel.identifier)\" are being iterated already.")
                }
                claim = fresh
            }
            if let shown {
                if case .message(let message) = shown {
                    try await channel.runner.handled(message, on: channel.identifier, failure: nil)
                }
                channel.inbox.remove(shown)
                claim?.isGiven(nil)
                self.shown = nil
            }
            var turn: Int64?
            while !Task.isShuttingDownGracefully {
                switch await channel.inbox.next(inRun: run) {
                case .entry(let entry):
                    if case .message(let message) = entry {
                        guard !HandlerStarts.isCrashing(message.starts) else {
                            try await channel.runner.gaveUp(message, on: channel.identifier)
                            return .other(.crashed(message.id))
                        }
                        claim?.isGiven(message)
                        if message.starts > 0, turn != message.position {
                            let isOver: @Sendable () -> Bool = { [inbox = channel.inbox, run] in inbox.isEnded(run) }
                            guard await channel.runner.starts.hasTurn(message, isOver: isOver) else { return end() }
                            // The client may have stopped meanwhile.
                            turn = message.position
                            continue
                        }
                        try await channel.runner.started(message)
                    }
                    shown = entry
                    return channel.event(for: entry)
                case .notLoaded(let after, let upTo):
                    let messages = try await channel.runner.messages(of: channel.identifier, after: after)
                    channel.inbox.fill(messages, after: after, upTo: upTo)
                case .ended:
                    return end()
                }
            }
            return end()
        }

        private mutating func end() -> PushChannelEvent? {
            claim = nil
            shown = nil
            return nil
        }
    }
}

/// The right to iterate, given back when the iteration is gone.
private final class InboxClaim: Sendable {
    private let inbox: ChannelInbox
    private let runner: SessionRunner
    private let holder: UInt64
    /// The position of the message that the iteration was given last.
    private let given = Mutex<Int64?>(nil)

    init?(_ inbox: ChannelInbox, _ runner: SessionRunner) {
        guard let holder = inbox.claim() else { return nil }
        self.inbox = inbox
        self.runner = runner
        self.holder = holder
    }

    func isGiven(_ message: BufferedMessage?) { given.withLock { $0 = message?.position } }

    deinit {
        // What was not handled is given to the next iteration, and did not end the process.
        if let position = given.withLock({ $0 }) { runner.startTakenBack(position) }
        inbox.release(holder)
    }
}
