import CarillonWire
import Synchronization

/// The events of one channel that the app has not handled yet, in order, and the iteration that reads them.
///
/// Messages are in the store. Up to one page of them is in memory, ahead of the reader. The next page is loaded when the reader
/// reaches the end of the page. An entry stays until the app has handled it, so that an iteration that ends early loses nothing.
/// Changes are in memory only. The newest of them are kept, because the channel's state shows the result of all. Each change has
/// the position of the message before it. The number of dropped changes is delivered before all other entries.
final class ChannelReadQueue: Sendable {
    enum Entry: Equatable, Sendable {
        case change(ChannelMachine.Action, number: UInt64)
        case message(BufferedMessage)
        /// The number of changes that were dropped.
        case missed(count: Int)
    }

    /// The result of a read.
    enum ReadResult: Equatable, Sendable {
        case entry(Entry)
        /// The messages behind the position `after` are in the store, and must be loaded and passed to `fill`.
        case notLoaded(after: Int64, upTo: Int64)
        case ended
    }

    /// The most changes that wait. Beyond that the oldest change is dropped.
    static let changesLimit = 64
    /// The most messages in memory.
    static let pageLimit = 64

    private struct Change {
        var number: UInt64
        var action: ChannelMachine.Action
        /// The position of the newest message at the time of the change.
        var after: Int64
    }

    private struct State {
        var page: [BufferedMessage] = []
        /// The positions of the newest message in the store, and of the newest message that is, or was, in the page.
        var lastStored: Int64
        var lastLoaded: Int64 = 0
        var changes: [Change] = []
        var lastNumber: UInt64 = 0
        /// The number of dropped changes that were not reported to a reader yet.
        var missed = 0
        /// The iteration that reads the queue.
        var reader: UInt64?
        var lastReader: UInt64 = 0
        var waiter: (run: UInt64, continuation: CheckedContinuation<ReadResult, Never>)?
        /// The number of the present run of the client. An iteration belongs to the run in which it was made.
        var run: UInt64 = 1
        /// Iterations of this run and of earlier runs end.
        var endedRun: UInt64 = 0

        /// The next entry for the reader; nil if nothing waits.
        var next: ReadResult? {
            if missed > 0 { return .entry(.missed(count: missed)) }
            if let change = changes.first, change.after < (page.first?.position ?? .max),
                !page.isEmpty || change.after <= lastLoaded || lastLoaded >= lastStored
            {
                return .entry(.change(change.action, number: change.number))
            }
            if let message = page.first { return .entry(.message(message)) }
            return lastLoaded < lastStored ? .notLoaded(after: lastLoaded, upTo: lastStored) : nil
        }

        mutating func takeWaiter() -> CheckedContinuation<ReadResult, Never>? { waiter.take()?.continuation }
    }

    private let state: Mutex<State>

    /// - Parameter lastStored: The position of the newest message that an earlier run stored, or 0.
    init(lastStored: Int64 = 0) { state = Mutex(State(lastStored: lastStored)) }

    // MARK: Filling

    func append(_ action: ChannelMachine.Action) {
        change { state in
            state.lastNumber += 1
            state.changes.append(Change(number: state.lastNumber, action: action, after: state.lastStored))
            if state.changes.count > Self.changesLimit {
                state.changes.removeFirst()
                state.missed += 1
            }
        }
    }

    /// Adds a message that was stored.
    func append(_ message: BufferedMessage) {
        change { state in
            let isNext = state.lastLoaded == state.lastStored
            state.lastStored = message.position
            // Without a reader, messages are not kept in memory.
            guard state.reader != nil, isNext, state.page.count < Self.pageLimit else { return }
            state.page.append(message)
            state.lastLoaded = message.position
        }
    }

    /// Adds messages from the store: all messages behind `after`, up to `upTo` or to the limit of a page.
    func fill(_ messages: [BufferedMessage], after: Int64, upTo: Int64) {
        change { state in
            guard state.lastLoaded == after else { return }
            state.page += messages
            state.lastLoaded =
                messages.count < Self.pageLimit
                ? max(upTo, messages.last?.position ?? 0) : messages[messages.count - 1].position
            state.lastStored = max(state.lastStored, state.lastLoaded)
        }
    }

    // MARK: Emptying

    /// Removes an entry that the app has handled, also before its turn.
    func remove(_ entry: Entry) {
        state.withLock { state in
            switch entry {
            case .change(_, let number):
                if let place = state.changes.firstIndex(where: { $0.number == number }) {
                    state.changes.remove(at: place)
                } else {
                    // The app was handling the change when it was dropped.
                    state.missed = max(0, state.missed - 1)
                }
            case .missed(let count): state.missed = max(0, state.missed - count)
            case .message(let message): state.page.removeAll { $0.position == message.position }
            }
        }
    }

    /// Removes all messages, after they were removed from the store.
    func removeMessages() {
        state.withLock { state in
            state.page = []
            state.lastLoaded = state.lastStored
        }
    }

    // MARK: Readers

    /// Whether an iteration reads the queue.
    var hasReader: Bool { state.withLock { $0.reader != nil } }

    /// The number of the present run, for a new iteration.
    var run: UInt64 { state.withLock { $0.run } }

    /// Makes an iteration the reader of the queue, and returns its number. Returns nil if the queue has a reader.
    func acquire() -> UInt64? {
        state.withLock { state in
            guard state.reader == nil else { return nil }
            state.lastReader += 1
            state.reader = state.lastReader
            return state.lastReader
        }
    }

    func release(_ reader: UInt64) {
        state.withLock { state in
            if state.reader == reader { state.reader = nil }
        }
    }

    /// Ends the present run of the client. New iterations belong to the next run. Returns the run that ended; `endIterations`
    /// ends its iterations.
    func endRun() -> UInt64 {
        state.withLock { state in
            state.run += 1
            return state.run - 1
        }
    }

    /// Ends the iterations of a run and of earlier runs.
    func endIterations(of run: UInt64) {
        let waiter = state.withLock { state in
            state.endedRun = max(state.endedRun, run)
            return state.waiter.map { $0.run <= run } == true ? state.takeWaiter() : nil
        }
        waiter?.resume(returning: .ended)
    }

    /// Whether the iterations of a run end.
    func isEnded(_ run: UInt64) -> Bool { state.withLock { run <= $0.endedRun } }

    /// Waits for the next entry for an iteration of a run. Only the reader of the queue may call this.
    ///
    /// Returns `ended` when the run ends, when the task is cancelled, or when its service group shuts down gracefully.
    func next(inRun run: UInt64, isolation: isolated (any Actor)? = #isolation) async -> ReadResult {
        let stop = StopFlag()
        return await withTaskCancellationOrGracefulShutdown(isolation: isolation) {
            await withCheckedContinuation { (continuation: CheckedContinuation<ReadResult, Never>) in
                let result = state.withLock { state -> ReadResult? in
                    // A second waiter is possible only if the iterator was copied.
                    if run <= state.endedRun || state.waiter != nil || stop.isSet { return .ended }
                    if let next = state.next { return next }
                    state.waiter = (run, continuation)
                    return nil
                }
                if let result { continuation.resume(returning: result) }
            }
        } onEnd: {
            stop.set()
            self.state.withLock { $0.takeWaiter() }?.resume(returning: .ended)
        }
    }

    /// Changes the state, and resumes the waiting reader if there is an entry for it.
    private func change(_ body: (inout State) -> Void) {
        let (waiter, next) = state.withLock { state -> (CheckedContinuation<ReadResult, Never>?, ReadResult?) in
            body(&state)
            guard let next = state.next else { return (nil, nil) }
            return (state.takeWaiter(), next)
        }
        if let waiter, let next { waiter.resume(returning: next) }
    }
}
