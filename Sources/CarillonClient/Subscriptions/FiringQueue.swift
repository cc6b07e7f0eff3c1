import Synchronization

/// The firings that wait for the app, and those that the app is handling. The server sends up to its window of unanswered
/// firings.
final class FiringQueue: Sendable {
    /// A firing, with the starts of the app's code for it that ended with the process.
    struct Entry: CountedEntry {
        let firing: SubscriptionFiring
        let starts: Int
        /// The number of the device's owner in this process to which the firing belongs.
        var owner = 0

        var id: String { firing.id }
        var suspect: SuspectTurns.Entry { .firing(id) }
    }

    /// The calls that surround the app's handling of firings.
    struct Calls: Sendable {
        /// Called before a firing is delivered to the app. Returns false if the iteration is over.
        var begins: @Sendable (Entry, _ isOver: @Sendable () -> Bool) async -> Bool = { _, _ in true }
        /// Called when the app has handled a firing.
        var handled: @Sendable (Entry) -> Void = { _ in }
        /// Called when the iteration ended before the app had handled a firing. ``FiringQueue/released(_:)`` follows.
        var abandoned: @Sendable (Entry) -> Void = { _ in }
    }

    private struct Notified {
        let number: Int
        /// The starts that ended with the process before the firing arrived.
        let starts: Int
    }

    private struct State {
        var waiting: [Entry] = []
        /// The firings that were delivered to the app and are not handled yet.
        var unhandled: [String: Entry] = [:]
        /// The bytes of the firings that wait and of those that the app is handling.
        var bytes = 0
        var readers: [(number: Int, continuation: CheckedContinuation<Entry?, Never>)] = []
        var lastReader = 0
        /// The number of times that iterations were ended.
        var ends = 0
        /// Increases when the device gets another user, or is signed out.
        var owner = 0
        /// The firings that listeners of subscriptions received, until the server received the answer.
        var notified: [String: Notified] = [:]
        var lastNotified = 0
        /// Whether the app set another user and the server has not answered. Firings are not delivered to the app then.
        var isPaused = false
        /// Counts the changes for the callers that wait in ``FiringQueue/isResumed(isOver:)``.
        var changes = 0
        /// The readers that wait for a change, by their numbers.
        var pausedReaders: [Int: CheckedContinuation<Void, Never>] = [:]

        mutating func release(_ id: String) {
            if let entry = unhandled.removeValue(forKey: id) { bytes -= entry.firing.bytes }
        }

        mutating func dropWaiting() {
            bytes -= waiting.reduce(0) { $0 + $1.firing.bytes }
            waiting = []
        }
    }

    /// The most firings that wait or are being handled.
    static let limit = 1000
    /// The most bytes of these firings. A larger firing is accepted if there is no other.
    static let byteLimit = 8 << 20
    /// The most firings that are remembered because listeners of subscriptions received them.
    static let notifiedLimit = 1000

    private let state = Mutex(State())
    private let calls: Calls

    init(_ calls: Calls) { self.calls = calls }

    func handled(_ entry: Entry) {
        state.withLock { $0.release(entry.id) }
        calls.handled(entry)
    }

    func abandoned(_ entry: Entry) { calls.abandoned(entry) }

    /// Removes a firing that the app has not handled and does not have any more.
    func released(_ entry: Entry) { state.withLock { $0.release(entry.id) } }

    /// Whether the app has a firing, and has not handled it.
    func isUnhandled(_ id: String) -> Bool { state.withLock { $0.unhandled[id] != nil } }

    /// Returns the starts that ended with the process before the firing arrived; nil if it did not arrive in this process. The
    /// starts of this process are not counted.
    func starts(of id: String) -> Int? { state.withLock { $0.unhandled[id]?.starts ?? $0.notified[id]?.starts } }

    /// Returns the firing for the listeners of its subscription; nil if they received it before.
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

    /// Removes the record of a firing, after the server received the answer or when no listener received the firing.
    func removeRecord(_ id: String) { state.withLock { $0.notified[id] = nil } }

    /// Adds a firing, and returns whether it was added. A firing that waits already, that the app has, or that exceeds a limit is
    /// not added, and the server sends it again.
    ///
    /// - Parameter starts: The starts of the app's code for the firing that ended with the process.
    @discardableResult func add(_ firing: SubscriptionFiring, starts: Int = 0) -> Bool {
        let (entry, isNew, reader) = state.withLock { state -> (Entry, Bool, CheckedContinuation<Entry?, Never>?) in
            let entry = Entry(firing: firing, starts: starts, owner: state.owner)
            guard state.unhandled[entry.id] == nil, !state.waiting.contains(where: { $0.id == entry.id }) else {
                return (entry, false, nil)
            }
            guard state.waiting.count + state.unhandled.count < Self.limit,
                state.bytes == 0 || state.bytes + firing.bytes <= Self.byteLimit
            else { return (entry, false, nil) }
            state.bytes += firing.bytes
            guard !state.readers.isEmpty else {
                state.waiting.append(entry)
                return (entry, true, nil)
            }
            state.unhandled[entry.id] = entry
            return (entry, true, state.readers.removeFirst().continuation)
        }
        reader?.resume(returning: entry)
        return isNew
    }

    /// Whether an iteration waits.
    var hasReader: Bool { state.withLock { !$0.readers.isEmpty } }

    /// Ends the waiting iterations.
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

    /// Removes the waiting firings. The server sends them again after the next connection.
    func disconnected() { state.withLock { $0.dropWaiting() } }

    /// Removes the earlier firings, because the device has another user or was signed out.
    func ownerChanged() {
        state.withLock { state in
            state.owner += 1
            state.notified = [:]
            state.dropWaiting()
        }
        noteChange()
    }

    // MARK: Pauses

    /// Whether the app set another user and the server has not answered. Firings are not delivered to the app then.
    var isPaused: Bool { state.withLock { $0.isPaused } }

    func setPaused(_ isPaused: Bool) {
        state.withLock { $0.isPaused = isPaused }
        noteChange()
    }

    /// Waits while firings are paused. Returns false if the task is cancelled or the iteration is over first.
    func isResumed(isOver: @Sendable () -> Bool) async -> Bool {
        while true {
            let (isPaused, changes) = state.withLock { ($0.isPaused, $0.changes) }
            guard isPaused else { return true }
            if Task.isCancelled || isOver() { return false }
            await change(after: changes)
        }
    }

    /// Waits until the state changes, or the task is cancelled.
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

    /// Waits for the next firing, and until it can be delivered to the app. Returns nil when the task is cancelled, or the
    /// iteration is ended.
    func next() async -> Entry? {
        let ends = state.withLock { $0.ends }
        while let entry = await first(ends: ends) {
            let isOver: @Sendable () -> Bool = { [self] in
                state.withLock { $0.ends != ends || $0.owner != entry.owner }
            }
            let mayDeliver = await calls.begins(entry, isOver)
            // The owner may have changed while a start was stored.
            let isFormer = !isCurrent(entry)
            if mayDeliver, !isFormer { return entry }
            if mayDeliver { abandoned(entry) } else { released(entry) }
            guard isFormer else { return nil }
        }
        return nil
    }

    /// - Parameter ends: The value of ``ends`` at the beginning of the iteration's call.
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
                        state.unhandled[entry.id] = entry
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

/// The position of one iteration in the firings.
final class FiringReading: Sendable {
    private let queue: FiringQueue
    /// The firing that was delivered to the app last.
    private let present = Mutex<FiringQueue.Entry?>(nil)

    init(_ queue: FiringQueue) { self.queue = queue }

    /// Marks the firing before as handled, and waits for the next one.
    func next() async -> SubscriptionFiring? {
        if let before = present.withLock({ $0.take() }) { queue.handled(before) }
        let entry = await queue.next()
        present.withLock { $0 = entry }
        return entry?.firing
    }

    deinit {
        if let before = present.withLock({ $0.take() }) { queue.abandoned(before) }
    }
}
