import ServiceLifecycle
import Synchronization

/// The events of a channel, in order.
///
/// A request for the next event reports that the event before it was handled. Events are kept while no iteration runs: messages
/// in the durable storage, up to ``PushClient/Configuration/channelBuffer``, and changes of the channel in memory. If an
/// iteration ends early, by `break`, an error or cancellation, its last event counts as not handled, and the next iteration
/// begins with that event.
///
/// If the process ended ten times while the app handled a message, the message is not delivered again. Its sender can see the
/// code 301, and the iteration returns ``PushChannelEvent/Other/crashedMessage`` in its place.
///
/// Up to 64 changes wait. Beyond that the oldest is dropped, and the next event is ``PushChannelEvent/other(_:)`` with
/// ``PushChannelEvent/Other/missedCount``; ``PushChannel/state`` has the present state. Messages are not dropped: when the buffer
/// in the durable storage is full, the client reports to the server that a further message failed, with code 303.
///
/// One iteration can run at a time: the first `next()` of another one throws ``PushError`` with
/// ``PushError/Code/alreadyIterating``. The sequence ends when the task is cancelled, when the service group of the task shuts
/// down gracefully, and when the client stops. An iteration that begins before the client is started waits for it.
public struct PushChannelEvents: AsyncSequence, Sendable {
    public typealias Element = PushChannelEvent
    public typealias Failure = PushError

    let channel: PushChannel

    /// Makes an iterator. The iteration begins with the first call of `next()`.
    public func makeAsyncIterator() -> Iterator { Iterator(channel: channel) }

    /// The position of one reader in the events of a channel.
    public struct Iterator: AsyncIteratorProtocol {
        public typealias Element = PushChannelEvent
        public typealias Failure = PushError

        private let channel: PushChannel
        private let run: UInt64
        private var reader: QueueReader?
        private var shown: ChannelReadQueue.Entry?

        init(channel: PushChannel) {
            self.channel = channel
            run = channel.readQueue.run
        }

        /// Reports that the event before was handled, and waits for the next one. Returns nil when the task is cancelled, its
        /// service group shuts down, or the client stops. In a cancelled task the event before is not reported as handled.
        /// - Throws: ``PushError`` with ``PushError/Code/alreadyIterating``, or with ``PushError/Code/storageUnavailable`` if the
        ///   report could not be stored; the message is delivered again then.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(PushError) -> PushChannelEvent? {
            guard !Task.isCancelled else { return end() }
            if reader == nil {
                guard let fresh = QueueReader(channel.readQueue, channel.runner) else {
                    throw PushError(
                        .alreadyIterating,
                        "The events of the channel \"\(channel.identifier)\" are being iterated already.")
                }
                reader = fresh
            }
            if let shown {
                if case .message(let message) = shown {
                    try await channel.runner.handled(message, on: channel.identifier, failure: nil)
                }
                channel.readQueue.remove(shown)
                reader?.returned(nil)
                self.shown = nil
            }
            var turn: Int64?
            while !Task.isShuttingDownGracefully {
                switch await channel.readQueue.next(inRun: run) {
                case .entry(let entry):
                    if case .message(let message) = entry {
                        guard !HandlerStarts.isCrashing(message.starts) else {
                            try await channel.runner.rejectMessage(message, on: channel.identifier)
                            return .other(.crashed(message.id))
                        }
                        reader?.returned(message)
                        if message.starts > 0, turn != message.position {
                            let isOver: @Sendable () -> Bool = { [queue = channel.readQueue, run] in queue.isEnded(run) }
                            guard await channel.runner.starts.waitForTurn(message, isOver: isOver) else { return end() }
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
                    channel.readQueue.fill(messages, after: after, upTo: upTo)
                case .ended:
                    return end()
                }
            }
            return end()
        }

        private mutating func end() -> PushChannelEvent? {
            reader = nil
            shown = nil
            return nil
        }
    }
}

/// Registers one iteration as the reader of the queue, and unregisters it when the iteration is released.
private final class QueueReader: Sendable {
    private let queue: ChannelReadQueue
    private let runner: SessionRunner
    private let number: UInt64
    /// The position of the last message that the iteration returned.
    private let lastReturned = Mutex<Int64?>(nil)

    init?(_ queue: ChannelReadQueue, _ runner: SessionRunner) {
        guard let number = queue.acquire() else { return nil }
        self.queue = queue
        self.runner = runner
        self.number = number
    }

    func returned(_ message: BufferedMessage?) { lastReturned.withLock { $0 = message?.position } }

    deinit {
        // A message that was not handled is delivered to the next iteration. It did not end the process.
        if let position = lastReturned.withLock({ $0 }) { runner.readerEnded(position) }
        queue.release(number)
    }
}
