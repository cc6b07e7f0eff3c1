import Metrics
import Synchronization

/// Schedules outgoing calls. An item of work is due at a time, is leased with a fence, and is then done or due again. Apps,
/// devices and hosts share the slots fairly.
///
/// The store contains the due work and the leases, so that a restart neither loses work nor does all of it at once. This class
/// keeps only the owners of the work in progress, and results that could not be written yet. The ``WorkUser`` makes the
/// call of an item and applies its result.
package final class LeasedWork<User: WorkUser>: Sendable {
    /// Work that must be done now.
    @dynamicMemberLookup
    package struct Begun: Sendable {
        package let job: User.Job
        let item: LeasedItem<User.Subject>
        let begunAt: Timestamp

        package subscript<Value>(dynamicMember path: KeyPath<User.Job, Value>) -> Value { job[keyPath: path] }
    }

    /// Work that ended at a moment.
    private struct Ended: LeaseResult {
        var item: LeasedItem<User.Subject>
        var result: CallResult
        var begunAt: Timestamp
        var at: Timestamp
        var leaseEnd: Timestamp { begunAt.adding(seconds: WorkLease.seconds) }
    }

    private struct State {
        var slots: WorkSlots
        var pace: WorkPace
        /// Results that the store could not write. Their work is not done again until they are written.
        var unwritten = UnwrittenResults<Ended>(limit: WorkBounds.unwritten)
    }

    private let store: any LeasedWorkStore
    private let shards: @Sendable () -> ShardSet
    private let user: User
    private let time: TimeSource
    private let steps = BackwardSteps()
    private let state: Mutex<State>

    /// - Parameter shards: Returns the present shards of the home.
    package init(
        store: any LeasedWorkStore, shards: @escaping @Sendable () -> ShardSet = { .all }, user: User,
        limits: WorkPace.Limits = .init(), time: TimeSource
    ) {
        self.store = store
        self.shards = shards
        self.user = user
        self.time = time
        state = Mutex(State(slots: WorkSlots(slots: limits.underWay), pace: WorkPace(limits: limits)))
    }

    package var underWay: Int { state.withLock { $0.slots.underWay } }

    /// Prepares the work. This must be called once, before the first round.
    package func begin() async throws {
        let now = time.now()
        try await followClock(now)
        try await user.beganAfterPause(at: now)
    }

    /// Returns the work that must be done now, each item with another peer. The caller must call ``ended(_:_:)`` for each item.
    package func due() async throws -> [Begun] {
        let now = time.now()
        try await followClock(now)
        await writeUnwritten()
        var all: [Begun] = []
        for _ in 0..<WorkBounds.looks {
            do {
                let more = try await begin(at: now)
                all += more.begun
                if more.isAll { break }
            } catch {
                // Work that was leased before the fault must still be done.
                guard !all.isEmpty else { throw error }
                break
            }
        }
        return all
    }

    /// - Throws: The fault if the result could not be written. Each round tries to write it again.
    package func ended(_ begun: Begun, _ result: CallResult) async throws {
        free(begun.item)
        try await finish(Ended(item: begun.item, result: result, begunAt: begun.begunAt, at: time.now()))
    }

    // MARK: Beginning

    private func begin(at now: Timestamp) async throws -> (begun: [Begun], isAll: Bool) {
        let (freeSlots, busySets) = state.withLock { state in
            (
                state.pace.freeSlots(at: now),
                BusyPeerSets(
                    proven: state.slots.busy(onTrial: false), onTrial: state.slots.busy(onTrial: true))
            )
        }
        guard freeSlots > 0 else { return ([], true) }
        let due = try await store.dueWork(in: shards(), at: now, besides: busySets, limit: max(8, 2 * freeSlots))
        let (candidates, chosen) = state.withLock { state in
            let answered = Set(state.unwritten.results.map(\.item.due.serial))
            let candidates = due.filter { !answered.contains($0.serial) }
            let chosen = state.slots.begin(candidates, freeSlots: freeSlots)
            state.pace.began(chosen.count)
            return (candidates, chosen)
        }
        guard !chosen.isEmpty else { return ([], true) }
        var begun: [Begun] = []
        for item in try await lease(chosen, at: now) {
            switch user.job(for: item) {
            case .possible(let job):
                begun.append(Begun(job: job, item: item, begunAt: now))
            case .impossible(let reason):
                free(item)
                // If this result cannot be written, the other items, which are leased, must still be done.
                try? await finish(Ended(item: item, result: .impossible(reason: reason), begunAt: now, at: now))
            }
        }
        return (begun, chosen.count == freeSlots || chosen.count == candidates.count)
    }

    private func lease(_ chosen: [DueWork], at now: Timestamp) async throws -> [LeasedItem<User.Subject>] {
        var notLeased = Dictionary(chosen.map { ($0.serial, $0) }, uniquingKeysWith: { first, _ in first })
        defer {
            state.withLock { state in
                for work in notLeased.values {
                    state.slots.ended(work)
                    state.pace.ended()
                }
            }
        }
        let leased = try await user.lease(chosen, at: now, until: now.adding(seconds: WorkLease.seconds))
        WorkBounds.unreadable.increment(by: leased.unreadable)
        for item in leased.items { notLeased[item.due.serial] = nil }
        if !leased.items.isEmpty { dropUnwritten(at: now) }
        return leased.items
    }

    private func free(_ item: LeasedItem<User.Subject>) {
        state.withLock { state in
            state.slots.ended(item.due)
            state.pace.ended()
        }
    }

    // MARK: Ending

    private func finish(_ ended: Ended) async throws {
        var health = ended.item.health
        let rests = health.called(ended.result, begunAt: ended.begunAt, at: ended.at)
        let end = WorkEnd(of: ended.item, at: ended.at, health: health, peerRestsUntil: rests)
        do {
            try await user.ended(ended.item.subject, ended.result, end)
        } catch {
            keep(ended)
            throw error
        }
    }

    private func keep(_ ended: Ended) {
        let dropped = state.withLock { $0.unwritten.keep([ended], isNext: false) }
        WorkBounds.resultsDropped.increment(by: dropped)
    }

    /// Writes pending results, so that completed work is not repeated if the store was full for a while.
    private func writeUnwritten() async {
        let ended = state.withLock { $0.unwritten.take(atMost: WorkBounds.writesAtOnce) }
        // A result that fails again goes behind the others. Its first failure was reported.
        for ended in ended { try? await finish(ended) }
    }

    /// Drops results whose lease has ended. The store can write other data, so it will never accept them. The work is done again.
    private func dropUnwritten(at now: Timestamp) {
        let dropped = state.withLock { $0.unwritten.dropEnded(at: now) }
        WorkBounds.resultsDropped.increment(by: dropped)
    }

    // MARK: The clock

    private func followClock(_ now: Timestamp) async throws {
        // The clock is corrected in all shards: see ``LocalHome/shards``.
        try await steps.follow(now) { _ in try await store.bringBackWork(in: .all, at: now) }
    }
}

private enum WorkBounds {
    static let unwritten = 1024
    static let writesAtOnce = 64
    /// The number of reads of the store in one round. The first items can all belong to one device.
    static let looks = 3

    static let resultsDropped = ServerMetric.callResultsDropped.counter()
    static let unreadable = ServerMetric.callsUnreadable.counter()
}
