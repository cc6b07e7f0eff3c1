import Synchronization

/// Firings that wait for the app. The server sends no more than its window until the firings are answered.
final class FiringQueue: Sendable {
    /// A firing, with the starts of the app's code for it that ended with the process.
    struct Entry: CountedEntry {
        let firing: SubscriptionFiring
        let starts: Int
        /// The number of the owner of the device to whom the firing belongs, in this process.
        var owner = 0

        var id: String { firing.id }
        var suspect: SuspectTurns.Entry { .firing(id) }
    }

    /// The work on firings that the app receives.
    struct Calls: Sendable {
        /// Called before the app is given a firing. Returns false if the iteration is over.
        var begins: @Sendable (Entry, _ isOver: @Sendable () -> Bool) async -> Bool = { _, _ in true }
        /// The app is done with a firing.
        var handled: @Sendable (Entry) -> Void = { _ in }
        /// The iteration ended before the app was done with a firing. It is followed by ``FiringQueue/released(_:)``.
        var brokeOff: @Sendable (Entry) -> Void = { _ in }
    }

    private struct Notified {
        let number: Int
        /// The starts that ended with the process before the firing came.
        let starts: Int
    }

    private struct State {
        var waiting: [Entry] = []
        /// Given to the app, which is not done with them.
        var inHand: [String: Entry] = [:]
        /// The bytes of the firings that wait and of those that the app has.
        var bytes = 0
        var readers: [(number: Int, continuation: CheckedContinuation<Entry?, Never>)] = []
        var lastReader = 0
        /// How often iterations were ended.
        var ends = 0
        /// Rises when the device gets another user, or is signed out.
        var owner = 0
        /// The firings that listeners of subscriptions received, until the server is answered.
        var notified: [String: Notified] = [:]
        var lastNotified = 0
        /// Whether the app named another user and the server has not answered. The app does not receive firings then.
        var isPaused = false
        /// Counts the changes for the callers that wait in ``FiringQueue/isResumed(isOver:)``.
        var changes = 0
        /// The readers that wait for a change, by their numbers.
        var pausedReaders: [Int: CheckedContinuation<Void, Never>] = [:]

        mutating func release(_ id: String) {
            if let entry = inHand.removeValue(forKey: id) { bytes -= entry.firing.bytes }
        }

        mutating func dropWaiting() {
            bytes -= waiting.reduce(0) { $0 + $1.firing.bytes }
            waiting = []
        }
    }

    /// How many firings wait, or are with the app, at most.
    static let limit = 1000
    /// The most bytes of these firings. A firing that is larger is taken alone.
    static let byteLimit = 8 << 20
    /// The largest number of firings that are remembered because listeners of subscriptions received them.
    static let notifiedLimit = 1000

    private let state = Mutex(State())
    private let calls: Calls

    init(_ calls: Calls) { self.calls = calls }

    func handled(_ entry: Entry) {
        state.withLock { $0.release(entry.id) }
        calls.handled(entry)
    }

    func brokeOff(_ entry: Entry) { calls.brokeOff(entry) }

    /// The app does not have the firing any more, and was not done with it.
    func released(_ entry: Entry) { state.withLock { $0.release(entry.id) } }

    /// Whether the app has a firing, and is not done with it.
    func isInHand(_ id: String) -> Bool { state.withLock { $0.inHand[id] != nil } }

    /// Returns the starts that ended with the process before the firing came; nil if it did not come in this process. A start of this process has
    /// not ended with it.
    func starts(of id: String) -> Int? { state.withLock { $0.inHand[id]?.starts ?? $0.notified[id]?.starts } }

    /// Returns the firing with which the listeners of its subscription are called; nil if they were called when the firing came before.
    func notifies(_ firing: SubscriptionFiring, starts: Int) -> Entry? {
        state.withLock { state in
            guard state.notified[firing.id] == nil else { return nil }
            if state.notified.count >= Self.notifiedLimit,
                let oldest = state.notified.min(by: { $0.value.number < $1.value.number })?.key
            {
                state.notified[oldest] = nil
            }
            state.lastNotified += 1
            state.notified[firing.id] = Notified(number: state.lastNotified, starts: starts)
            return Entry(firing: firing, starts: starts, owner: state.owner)
        }
    }

    /// Forgets a firing when the server is answered, or when no listener was called with it.
    func forget(_ id: String) { state.withLock { $0.notified[id] = nil } }

    /// Returns whether the firing was added. A firing that waits, that the app has, or that exceeds a limit is not added, and the server sends it
    /// again.
    ///
    /// - Parameter starts: The starts of the app's code for the firing that ended with the process.
    @discardableResult func add(_ firing: SubscriptionFiring, starts: Int = 0) -> Bool {
        let (entry, isNew, reader) = state.withLock { state -> (Entry, Bool, CheckedContinuation<Entry?, Never>?) in
            let entry = Entry(firing: firing, starts: starts, owner: state.owner)
            guard state.inHand[entry.id] == nil, !state.waiting.contains(where: { $0.id == entry.id }) else {
                return (entry, false, nil)
            }
            guard state.waiting.count + state.inHand.count < Self.limit,
                state.bytes == 0 || state.bytes + firing.bytes <= Self.byteLimit
            else { return (entry, false, nil) }
            state.bytes += firing.bytes
            guard !state.readers.isEmpty else {
                state.waiting.append(entry)
                return (entry, true, nil)
            }
            state.inHand[entry.id] = entry
            return (entry, true, state.readers.removeFirst().continuation)
        }
        reader?.resume(returning: entry)
        return isNew
    }

    /// Whether an iteration waits.
    var isAwaited: Bool { state.withLock { !$0.readers.isEmpty } }

    /// Ends the iterations that wait.
    func endIterations() {
        let readers = state.withLock { state in
            state.ends += 1
            defer { state.readers = [] }
            return state.readers
        }
        for reader in readers { reader.continuation.resume(returning: nil) }
        noteChange()
    }

    /// The number of times that iterations were ended.
    var ends: Int { state.withLock { $0.ends } }

    /// Drops the firings that wait. They come again with the next connection.
    func disconnected() { state.withLock { $0.dropWaiting() } }

    /// Drops the firings that came before, because the device has another user or was signed out.
    func ownerChanged() {
        state.withLock { state in
            state.owner += 1
            state.notified = [:]
            state.dropWaiting()
        }
        noteChange()
    }

    // MARK: Pauses

    /// Whether the app named another user and the server has not answered. The app does not receive firings then.
    var isPaused: Bool { state.withLock { $0.isPaused } }

    func setPaused(_ isPaused: Bool) {
        state.withLock { $0.isPaused = isPaused }
        noteChange()
    }

    /// Waits while firings are paused. Returns false if the task is cancelled or the iteration is over before.
    func isResumed(isOver: @Sendable () -> Bool) async -> Bool {
        while true {
            let (isPaused, changes) = state.withLock { ($0.isPaused, $0.changes) }
            guard isPaused else { return true }
            if Task.isCancelled || isOver() { return false }
            await change(after: changes)
        }
    }

    /// Waits until something changes, or the task is cancelled.
    private func change(after changes: Int) async {
        let number = state.withLock { state in
            state.lastReader += 1
            return state.lastReader
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
                let isReady = state.withLock { state in
                    if Task.isCancelled || state.changes != changes { return true }
                    state.pausedReaders[number] = continuation
                    return false
                }
                if isReady { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.pausedReaders.removeValue(forKey: number) }?.resume()
        }
    }

    private func noteChange() {
        let readers = state.withLock { state in
            state.changes += 1
            defer { state.pausedReaders = [:] }
            return Array(state.pausedReaders.values)
        }
        for reader in readers { reader.resume() }
    }

    // MARK: Reading

    /// Whether a firing belongs to the present owner of the device.
    func isCurrent(_ entry: Entry) -> Bool { state.withLock { $0.owner == entry.owner } }

    /// Waits for the next firing, and until the app may be given it. Returns nil when the task is cancelled, or the iteration is ended.
    func next() async -> Entry? {
        let ends = state.withLock { $0.ends }
        while let entry = await first(ends: ends) {
            let isOver: @Sendable () -> Bool = { [self] in
                state.withLock { $0.ends != ends || $0.owner != entry.owner }
            }
            let mayBeGiven = await calls.begins(entry, isOver)
            // The owner may have changed while a start was stored.
            let isFormer = !isCurrent(entry)
            if mayBeGiven, !isFormer { return entry }
            if mayBeGiven { brokeOff(entry) } else { released(entry) }
            guard isFormer else { return nil }
        }
        return nil
    }

    /// - Parameter ends: The number of ends when the iteration asked.
    private func first(ends: Int) async -> Entry? {
        let number = state.withLock { state in
            state.lastReader += 1
            return state.lastReader
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let ready: Entry?? = state.withLock { state in
                    if Task.isCancelled || state.ends != ends { return .some(nil) }
                    if !state.waiting.isEmpty {
                        let entry = state.waiting.removeFirst()
                        state.inHand[entry.id] = entry
                        return .some(entry)
                    }
                    state.readers.append((number, continuation))
                    return nil
                }
                if let ready { continuation.resume(returning: ready) }
            }
        } onCancel: {
            let reader = state.withLock { state -> CheckedContinuation<Entry?, Never>? in
                guard let place = state.readers.firstIndex(where: { $0.number == number }) else { return nil }
                return state.readers.remove(at: place).continuation
            }
            reader?.resume(returning: nil)
        }
    }
}

/// The place of one iteration in the firings.
final class FiringReading: Sendable {
    private let queue: FiringQueue
    /// The firing that the app was given last.
    private let present = Mutex<FiringQueue.Entry?>(nil)

    init(_ queue: FiringQueue) { self.queue = queue }

    /// The firing before counts as received.
    func next() async -> SubscriptionFiring? {
        if let before = present.withLock({ $0.take() }) { queue.handled(before) }
        let entry = await queue.next()
        present.withLock { $0 = entry }
        return entry?.firing
    }

    deinit {
        if let before = present.withLock({ $0.take() }) { queue.brokeOff(before) }
    }
}
