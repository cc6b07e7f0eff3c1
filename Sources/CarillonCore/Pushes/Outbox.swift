import CarillonWire
package import Metrics
import Synchronization

/// Leases due pushes of open push queues from the store, and writes the results of pushes to the store.
///
/// The store keeps the due pushes and their leases. The outbox keeps in memory the state that ends with the work under way: the
/// state of the push queues, and results that are not written yet. Many results are written in one transaction. Results that
/// arrive during a transaction make the next one.
package final class Outbox: Sendable {
    package struct Limits: Equatable, Sendable {
        /// The limit of pushes under way in all push queues together. A push queue can take half of the free number.
        package var underWay: Int
        /// The limit of pushes that are leased in one transaction.
        package var atOnce: Int

        package init(underWay: Int = 4000, atOnce: Int = 256) {
            self.underWay = underWay
            self.atOnce = atOnce
        }
    }

    private struct State {
        var queues: [PushQueue: GatewayBreaker] = [:]
        /// The number of times that the push credentials of a push queue were changed.
        var generations: [PushQueue: Int] = [:]
        var underWay = 0
        var unwritten = UnwrittenResults<PushEnd>(limit: OutboxBounds.unwritten)
        var isWriting = false
        /// The index of the push queue with which the next round begins.
        var turn = 0
    }

    private let store: any PushStore
    private let shards: @Sendable () -> ShardSet
    private let limits: Limits
    private let time: TimeSource
    private let steps = BackwardSteps()
    private let state = Mutex(State())
    private let results: [PushState: Counter]
    private let resultsDropped: Counter

    /// - Parameters:
    ///   - shards: Returns the present shards of the home.
    ///   - factory: The factory of the metrics.
    package init(
        store: any PushStore, shards: @escaping @Sendable () -> ShardSet = { .all }, limits: Limits = .init(),
        time: TimeSource, countingBy factory: any MetricsFactory = MetricsSystem.factory
    ) {
        self.store = store
        self.shards = shards
        self.limits = limits
        self.time = time
        let ended = PushState.allCases.filter { $0 != .leased }
        results = Dictionary(
            uniqueKeysWithValues: ended.map { ($0, ServerMetric.pushes.counter($0.result, by: factory)) })
        resultsDropped = ServerMetric.pushResultsDropped.counter(by: factory)
    }

    package var underWay: Int { state.withLock { $0.underWay } }

    /// The push queues that are paused, and why.
    package var faults: [PushQueue: GatewayBreaker.Fault] { state.withLock { $0.queues.compactMapValues(\.fault) } }

    /// Prepares the outbox. Call it once, before the first round.
    package func begin() async throws { try await followClock(time.now()) }

    /// Notes that the push credentials of a push queue were set or removed.
    package func renewed(_ queue: PushQueue) {
        state.withLock { state in
            state.queues[queue]?.renewed()
            state.generations[queue, default: 0] += 1
        }
    }

    // MARK: Beginning

    /// Leases the pushes that must be sent now. The caller must call ``ended(_:_:hasOther:)`` for each of them.
    ///
    /// - Parameter isConfigured: Whether there is a gateway for a push queue.
    package func due(_ isConfigured: (PushQueue) -> Bool) async throws -> LeasedPushes {
        let now = time.now()
        try await followClock(now)
        var all = LeasedPushes()
        for queue in turned(try await store.dueQueues(in: shards(), at: now).filter(isConfigured)) {
            let room = state.withLock { state in
                let free = limits.underWay - state.underWay
                let share = free > 0 ? max(1, free / 2) : 0
                return min(state.queues[queue, default: GatewayBreaker()].room(at: now), share, limits.atOnce)
            }
            guard room > 0 else { continue }
            do {
                let leased = try await store.leasePushes(
                    of: queue, in: shards(), limit: room, at: now, until: now.adding(seconds: LeasedPush.leaseSeconds))
                let generation = state.withLock { state in
                    state.underWay += leased.pushes.count
                    state.queues[queue, default: GatewayBreaker()].began(leased.pushes.count)
                    return state.generations[queue, default: 0]
                }
                for var push in leased.pushes {
                    push.generation = generation
                    all.pushes.append(push)
                }
                all.areMoreDue = all.areMoreDue || leased.areMoreDue
            } catch {
                // Pushes that were leased before the fault are sent.
                guard !all.pushes.isEmpty else { throw error }
                break
            }
        }
        return all
    }

    private func turned(_ queues: [PushQueue]) -> [PushQueue] {
        guard queues.count > 1 else { return queues }
        let turn = state.withLock { state in
            state.turn = (state.turn + 1) % queues.count
            return state.turn
        }
        return Array(queues[turn...] + queues[..<turn])
    }

    // MARK: Ending

    /// The change of a push queue that a result caused.
    package enum Turn: Equatable, Sendable {
        case opened
        case paused(GatewayBreaker.Fault)
    }

    /// Notes the answer to a leased push. Returns nil if the push queue was neither opened nor paused.
    ///
    /// - Parameter hasOther: Whether there is a gateway for the other environment.
    package func ended(_ push: LeasedPush, _ answer: PushAnswer, hasOther: Bool) async -> Turn? {
        let now = time.now()
        let verdict = PushRules.verdict(
            on: answer, attempt: push.attempt, isElsewhere: push.isElsewhere, hasOther: hasOther,
            spread: push.id.low, at: now)
        let (turn, isFirst) = state.withLock { state -> (Turn?, Bool) in
            state.underWay -= 1
            var queue = state.queues[push.queue, default: GatewayBreaker()]
            let isOfNow = push.generation == state.generations[push.queue, default: 0]
            let hasTurned = queue.ended(isOfNow ? answer : nil, of: push.id, at: now)
            let turn: Turn? = hasTurned ? queue.fault.map { .paused($0) } ?? .opened : nil
            // An open push queue without work has the same state as a new one.
            state.queues[push.queue] = queue == GatewayBreaker() ? nil : queue
            state.unwritten.add(PushEnd(push, verdict, at: now))
            defer { state.isWriting = true }
            return (turn, !state.isWriting)
        }
        if isFirst { await write() }
        return turn
    }

    private func write() async {
        while true {
            let ends = state.withLock { state -> [PushEnd] in
                let ends = state.unwritten.take(atMost: OutboxBounds.writtenAtOnce)
                if ends.isEmpty { state.isWriting = false }
                return ends
            }
            guard !ends.isEmpty else { return }
            do {
                let states = try await store.endPushes(ends)
                for (state, all) in Dictionary(grouping: states, by: { $0 }) { results[state]?.increment(by: all.count) }
            } catch {
                keep(ends)
                return
            }
        }
    }

    /// Keeps results that could not be written. They are written with the next round. When a lease ends before that, its push is
    /// sent again and its result is dropped.
    private func keep(_ ends: [PushEnd]) {
        let now = time.now()
        let dropped = state.withLock { state in
            state.isWriting = false
            return state.unwritten.keep(ends, isNext: true) + state.unwritten.dropEnded(at: now)
        }
        resultsDropped.increment(by: dropped)
    }

    private func writeUnwritten() async {
        let isFirst = state.withLock { state in
            guard !state.isWriting, !state.unwritten.results.isEmpty else { return false }
            state.isWriting = true
            return true
        }
        if isFirst { await write() }
    }

    // MARK: The clock

    private func followClock(_ now: Timestamp) async throws {
        await writeUnwritten()
        // The clock concerns all shards: see ``LocalHome/shards``.
        try await steps.follow(now) { _ in try await store.bringBackPushes(in: .all, at: now) }
    }
}

private enum OutboxBounds {
    static let writtenAtOnce = 512
    static let unwritten = 8192
}

extension PushEnd: LeaseResult {
    var leaseEnd: Timestamp { at.adding(seconds: LeasedPush.leaseSeconds) }
}
