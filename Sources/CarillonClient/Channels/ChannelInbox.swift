import CarillonWire
import Synchronization

/// What happened on one channel and was not yet taken by the app, in order; and who is taking it.
///
/// Messages are in the store, and a page of them is here, ahead of the reader; the next page is asked for when the reader
/// has come to its end. An entry stays until the app is done with it, so that an iteration that breaks off loses nothing.
/// Changes are here only, and of them the newest, because the channel's state shows the rest; each knows behind which
/// message it came. How many were dropped is shown before all else.
final class ChannelInbox: Sendable {
    enum Entry: Equatable, Sendable {
        case change(ChannelMachine.Action, number: UInt64)
        case message(BufferedMessage)
        /// So many changes were dropped.
        case missed(count: Int)
    }

    /// What a reader finds.
    enum Finding: Equatable, Sendable {
        case entry(Entry)
        /// The messages behind this position are in the store, and not here; to be loaded and given to `fill`.
        case notLoaded(after: Int64, upTo: Int64)
        case ended
    }

    /// How many changes wait at most; the oldest gives way.
    static let changesLimit = 64
    /// How many messages are held in memory.
    static let pageLimit = 64

    private struct Change {
        var number: UInt64
        var action: ChannelMachine.Action
        /// The newest message when it happened.
        var after: Int64
    }

    private struct State {
        var page: [BufferedMessage] = []
        /// The newest message in the store, and the newest that is, or was, in the page.
        var lastStored: Int64
        var lastLoaded: Int64 = 0
        var changes: [Change] = []
        var lastNumber: UInt64 = 0
        /// How many changes were dropped that no reader was notified of.
        var missed = 0
        /// The iteration that holds the inbox.
        var holder: UInt64?
        var lastHolder: UInt64 = 0
        var waiter: (run: UInt64, continuation: CheckedContinuation<Finding, Never>)?
        /// Counts the runs of the client that ended; an iteration belongs to the run in which it was made.
        var run: UInt64 = 1
        /// Iterations of this run and of earlier ones end.
        var endedRun: UInt64 = 0

        /// What is to be shown next; nil when there is nothing.
        var next: Finding? {
            if missed > 0 { return .entry(.missed(count: missed)) }
            if let change = changes.first, change.after < (page.first?.position ?? .max),
                !page.isEmpty || change.after <= lastLoaded || lastLoaded >= lastStored
            {
                return .entry(.change(change.action, number: change.number))
            }
            if let message = page.first { return .entry(.message(message)) }
            return lastLoaded < lastStored ? .notLoaded(after: lastLoaded, upTo: lastStored) : nil
        }

        mutating func takeWaiter() -> CheckedContinuation<Finding, Never>? { waiter.take()?.continuation }
    }

    private let state: Mutex<State>

    /// - Parameter lastStored: the newest message that an earlier run stored, or 0.
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

    /// A message was stored.
    func append(_ message: BufferedMessage) {
        change { state in
            let isNext = state.lastLoaded == state.lastStored
            state.lastStored = message.position
            // What nobody reads needs no memory.
            guard state.holder != nil, isNext, state.page.count < Self.pageLimit else { return }
            state.page.append(message)
            state.lastLoaded = message.position
        }
    }

    /// Takes in what was loaded from the store: all that it held behind `after`, up to `upTo` or to the page's limit.
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

    /// The app is done with an entry, maybe before its turn.
    func remove(_ entry: Entry) {
        state.withLock { state in
            switch entry {
            case .change(_, let number):
                if let place = state.changes.firstIndex(where: { $0.number == number }) {
                    state.changes.remove(at: place)
                } else {
                    // The app had the change when it was dropped.
                    state.missed = max(0, state.missed - 1)
                }
            case .missed(let count): state.missed = max(0, state.missed - count)
            case .message(let message): state.page.removeAll { $0.position == message.position }
            }
        }
    }

    /// All messages were taken out of the store.
    func removeMessages() {
        state.withLock { state in
            state.page = []
            state.lastLoaded = state.lastStored
        }
    }

    // MARK: Readers

    /// Whether somebody iterates.
    var isHeld: Bool { state.withLock { $0.holder != nil } }

    /// The number of the present run, for an iteration that begins.
    var run: UInt64 { state.withLock { $0.run } }

    /// Takes the inbox for one iteration; nil when another holds it.
    func claim() -> UInt64? {
        state.withLock { state in
            guard state.holder == nil else { return nil }
            state.lastHolder += 1
            state.holder = state.lastHolder
            return state.lastHolder
        }
    }

    func release(_ holder: UInt64) {
        state.withLock { state in
            if state.holder == holder { state.holder = nil }
        }
    }

    /// The client stopped: iterations that are made from now on belong to its next run. Answers the run that is over,
    /// whose iterations end with `endIterations`.
    func endRun() -> UInt64 {
        state.withLock { state in
            state.run += 1
            return state.run - 1
        }
    }

    /// Iterations of a run and of earlier ones end.
    func endIterations(of run: UInt64) {
        let waiter = state.withLock { state in
            state.endedRun = max(state.endedRun, run)
            return state.waiter.map { $0.run <= run } == true ? state.takeWaiter() : nil
        }
        waiter?.resume(returning: .ended)
    }

    /// Whether iterations of a run end.
    func isEnded(_ run: UInt64) -> Bool { state.withLock { run <= $0.endedRun } }

    /// Waits until there is something for an iteration of a run. Only the holder may ask.
    ///
    /// It ends with the run, and when the task is cancelled or its service group shuts down gracefully.
    func next(inRun run: UInt64, isolation: isolated (any Actor)? = #isolation) async -> Finding {
        let end = WaitEnd()
        return await withTaskCancellationOrGracefulShutdown(isolation: isolation) {
            await withCheckedContinuation { (continuation: CheckedContinuation<Finding, Never>) in
                let finding = state.withLock { state -> Finding? in
                    // A second waiter can only come from a copy of the iterator.
                    if run <= state.endedRun || state.waiter != nil || end.hasCome { return .ended }
                    if let next = state.next { return next }
                    state.waiter = (run, continuation)
                    return nil
                }
                if let finding { continuation.resume(returning: finding) }
            }
        } onEnd: {
            end.come()
            self.state.withLock { $0.takeWaiter() }?.resume(returning: .ended)
        }
    }

    /// Changes what is here, and wakes the reader when there is something for it.
    private func change(_ body: (inout State) -> Void) {
        let (waiter, next) = state.withLock { state -> (CheckedContinuation<Finding, Never>?, Finding?) in
            body(&state)
            guard let next = state.next else { return (nil, nil) }
            return (state.takeWaiter(), next)
        }
        if let waiter, let next { waiter.resume(returning: next) }
    }
}
