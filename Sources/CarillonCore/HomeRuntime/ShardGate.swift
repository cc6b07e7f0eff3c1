import Synchronization

/// Admits calls that concern a shard of the home. A move of the shard waits for the calls that are under way.
///
/// A shard is open, closing or absent. While it is closing, new calls wait for at most ``longestWait``, and parts of the calls
/// that are under way are admitted. When no call is under way any more, the shard is closed, and no call is admitted. A closed
/// shard is then moved to another home, or opened again.
package final class ShardGate: Sendable {
    private typealias Waiter = @Sendable () -> Void

    private struct State {
        var owned: ShardSet
        var closing: [Shard: Closing] = [:]
        /// The number of calls under way for each shard.
        var underWay = [Int](repeating: 0, count: Shard.count)
        var waiting = 0
        var nextWaiter = 0

        func entry(to shard: Shard, isPart: Bool) -> Entry {
            guard owned.contains(shard) else { return .absent }
            guard let closing = closing[shard] else { return .entered }
            return isPart && !closing.isClosed && underWay[Int(shard.number)] > 0 ? .entered : .closing
        }

        mutating func enter(_ shard: Shard, isPart: Bool) -> Entry {
            let entry = entry(to: shard, isPart: isPart)
            if entry == .entered { underWay[Int(shard.number)] += 1 }
            return entry
        }
    }

    private struct Closing {
        var waiters: [Int: Waiter] = [:]
        /// Called once, when no call is under way.
        var drained: Waiter?
        var isClosed = false
    }

    /// The longest time in which a call waits for a shard that is closing.
    package static let longestWait = Duration.milliseconds(500)
    /// The number of calls that can wait at one time. A further call is rejected.
    package static let mostWaiting = 10_000

    private let state: Mutex<State>
    private let scheduler: Scheduler
    private let mostWaiting: Int
    private let longestWait: Duration

    package init(
        _ shards: ShardSet, scheduler: Scheduler, mostWaiting: Int = ShardGate.mostWaiting,
        longestWait: Duration = ShardGate.longestWait
    ) {
        state = Mutex(State(owned: shards))
        self.scheduler = scheduler
        self.mostWaiting = mostWaiting
        self.longestWait = longestWait
    }

    /// The shards of the home, except shards that are closing.
    package var openShards: ShardSet {
        state.withLock { state in
            guard !state.closing.isEmpty else { return state.owned }
            return ShardSet(state.owned.shards.filter { state.closing[$0] == nil })
        }
    }

    /// Whether the home has the shard, also if the shard is closing.
    package func has(_ shard: Shard) -> Bool { state.withLock { $0.owned.contains(shard) } }

    // MARK: Calls

    /// Admits a call. The caller must call ``leave(_:)`` when the call ends.
    ///
    /// - Throws: ``HomeFault/moved(to:)`` if the home does not have the shard; ``HomeFault/unreachable`` if the shard is still
    ///   closing after ``longestWait``, or too many calls wait.
    package func enter(_ shard: Shard) async throws(HomeFault) {
        let deadline = ContinuousClock.now + longestWait
        while true {
            switch state.withLock({ $0.enter(shard, isPart: false) }) {
            case .entered: return
            case .absent: throw .moved(to: shard)
            case .closing: break
            }
            let left = deadline - .now
            guard left > .zero, await wait(for: shard, atMost: left) else { throw .unreachable }
        }
    }

    /// Admits a part of a call, or work of the home itself. The caller must call ``leave(_:)`` when the part or the work ends.
    ///
    /// - Returns: Whether it is admitted. If the shard is closing, it is admitted while another call is under way.
    package func enterNow(_ shard: Shard) -> Bool {
        state.withLock { $0.enter(shard, isPart: true) == .entered }
    }

    /// Whether ``enterNow(_:)`` would admit a call.
    package func isOpen(_ shard: Shard) -> Bool {
        state.withLock { $0.entry(to: shard, isPart: true) == .entered }
    }

    package func leave(_ shard: Shard) {
        let drained = state.withLock { state -> Waiter? in
            state.underWay[Int(shard.number)] -= 1
            precondition(state.underWay[Int(shard.number)] >= 0, "A call must enter the gate before it leaves.")
            guard state.underWay[Int(shard.number)] == 0, let closing = state.closing[shard] else { return nil }
            state.closing[shard]?.drained = nil
            state.closing[shard]?.isClosed = true
            return closing.drained
        }
        drained?()
    }

    /// Calls `work` when the shard is not closing: at once, or after the move.
    ///
    /// - Returns: False if too many calls wait. Then `work` is never called.
    @discardableResult
    package func whenDecided(_ shard: Shard, _ work: @escaping @Sendable () -> Void) -> Bool {
        let isKept = state.withLock { state -> Bool? in
            guard state.closing[shard] != nil else { return nil }
            return Self.add(work, to: shard, &state, mostWaiting) != nil
        }
        guard let isKept else {
            work()
            return true
        }
        return isKept
    }

    private enum Entry { case entered, closing, absent }

    /// Returns the key of the waiter; nil if too many calls wait.
    private static func add(_ waiter: @escaping Waiter, to shard: Shard, _ state: inout State, _ most: Int) -> Int? {
        guard state.waiting < most else { return nil }
        state.waiting += 1
        state.nextWaiter += 1
        state.closing[shard]?.waiters[state.nextWaiter] = waiter
        return state.nextWaiter
    }

    /// Waits while the shard is closing. Returns false after the time, or if too many calls wait.
    private func wait(for shard: Shard, atMost time: Duration) async -> Bool {
        await withCheckedContinuation { continuation in
            let once = Once(continuation)
            let key = state.withLock { state -> Int?? in
                guard state.closing[shard] != nil else { return .none }
                return .some(Self.add({ once.resume(true) }, to: shard, &state, mostWaiting))
            }
            switch key {
            case .none: once.resume(true)
            case .some(nil): once.resume(false)
            case .some(let key?):
                scheduler.run(time) { [self] in
                    state.withLock { state in
                        if state.closing[shard]?.waiters.removeValue(forKey: key) != nil { state.waiting -= 1 }
                    }
                    once.resume(false)
                }
            }
        }
    }

    private final class Once: Sendable {
        private let continuation: Mutex<CheckedContinuation<Bool, Never>?>
        init(_ continuation: CheckedContinuation<Bool, Never>) { self.continuation = Mutex(continuation) }
        var isResumed: Bool { continuation.withLock { $0 == nil } }
        func resume(_ value: Bool) {
            let waiting = continuation.withLock { continuation in
                defer { continuation = nil }
                return continuation
            }
            waiting?.resume(returning: value)
        }
    }

    // MARK: Moves

    /// Closes a shard of the home: admits no new call, and waits for the calls that are under way.
    ///
    /// - Returns: Whether the shard is closed. It is not closed if calls are still under way after the time, or another move has
    ///   the shard.
    package func close(_ shard: Shard, atMost time: Duration) async -> Bool {
        let isMine = state.withLock { state in
            guard state.owned.contains(shard), state.closing[shard] == nil else { return false }
            state.closing[shard] = Closing(isClosed: state.underWay[Int(shard.number)] == 0)
            return true
        }
        guard isMine else { return false }
        let isClosed = await waits(atMost: time) { done in
            let isClosed = state.withLock { state in
                if state.closing[shard]?.isClosed == true { return true }
                state.closing[shard]?.drained = done
                return false
            }
            if isClosed { done() }
        }
        if !isClosed { reopen(shard) }
        return isClosed
    }

    /// Calls `begin`, and waits until `done` is called.
    ///
    /// - Returns: Whether `done` was called in time.
    func waits(atMost time: Duration, for begin: (_ done: @escaping @Sendable () -> Void) -> Void) async -> Bool {
        await withCheckedContinuation { continuation in
            let once = Once(continuation)
            begin { once.resume(true) }
            if !once.isResumed { scheduler.run(time) { once.resume(false) } }
        }
    }

    /// Opens a closed shard again.
    package func reopen(_ shard: Shard) { decide(shard) { _ in } }

    /// Removes the closed shard from the home. Waiting calls throw ``HomeFault/moved(to:)``.
    package func remove(_ shard: Shard) { decide(shard) { $0.remove(shard) } }

    /// Adds a shard to the home.
    package func take(_ shard: Shard) { state.withLock { $0.owned.insert(shard) } }

    private func decide(_ shard: Shard, _ change: (inout ShardSet) -> Void) {
        let waiters = state.withLock { state -> [Waiter] in
            guard let closing = state.closing.removeValue(forKey: shard) else { return [] }
            change(&state.owned)
            state.waiting -= closing.waiters.count
            return closing.waiters.sorted { $0.key < $1.key }.map(\.value)
        }
        for waiter in waiters { waiter() }
    }
}
