import CarillonWire
import Metrics
import Synchronization

/// Moves shards from a home of this process to another one, while both serve their devices.
///
/// A move that cannot be done changes nothing: the shard stays open at its home.
package struct ShardMove: Sendable {
    package enum Result: Equatable, Sendable {
        case moved
        /// Calls under way or the work of a feature did not end in time, a session did not answer, a change cannot be written now, or the
        /// store was too slow.
        case busy
    }

    /// A home that gives or takes shards.
    package struct Party: Sendable {
        package var home: HomeRuntime
        package var node: NodeNumber
        /// The place of the home in ``Homes``.
        package var place: Int
        /// Ends the work of the home's features on a shard that is closed, writes what only their memory has of it, and forgets the rest.
        /// Returns whether that was done in time. It can be called again before it has returned.
        package var giveUp: @Sendable (Shard) async -> Bool
        /// Begins what the home's features must do for a shard that it has from now on.
        package var took: @Sendable (Shard) async -> Void

        package init(
            _ home: HomeRuntime, node: NodeNumber, place: Int, giveUp: @escaping @Sendable (Shard) async -> Bool,
            took: @escaping @Sendable (Shard) async -> Void
        ) {
            self.home = home
            self.node = node
            self.place = place
            self.giveUp = giveUp
            self.took = took
        }
    }

    private let homes: Homes
    private let store: any NodeStore & ServerStore

    /// The longest time between the closing of the shard and the write of its new home. The rest of ``ShardGate/longestWait`` is for the
    /// write. So the calls that wait for the shard continue in time, whether the shard moves or stays.
    package static let longestClosing = ShardGate.longestWait - .milliseconds(150)
    /// The longest wait for calls under way.
    package static let longestDrain = Duration.milliseconds(300)
    /// The longest wait for the work of features, and until everything is written.
    package static let longestGiveUp = Duration.milliseconds(200)
    /// The longest wait for sessions.
    package static let longestHold = Duration.milliseconds(100)

    private let longestClosing: Duration

    package init(
        homes: Homes, store: any NodeStore & ServerStore, longestClosing: Duration = ShardMove.longestClosing
    ) {
        self.homes = homes
        self.store = store
        self.longestClosing = longestClosing
    }

    /// Moves a shard. One move at a time must run in a server.
    ///
    /// - Throws: ``StoreFault``. The shard stays at its home.
    package func move(_ shard: Shard, from giver: Party, to taker: Party) async throws -> Result {
        do {
            let result = try await moveNow(shard, from: giver, to: taker)
            ServerMetric.shardMoves.counter(result == .moved ? "moved" : "busy").increment()
            return result
        } catch {
            ServerMetric.shardMoves.counter("failed").increment()
            throw error
        }
    }

    private func moveNow(_ shard: Shard, from giver: Party, to taker: Party) async throws -> Result {
        guard let gate = giver.home.gate, taker.home.gate != nil else {
            preconditionFailure("A home that has all shards cannot move shards.")
        }
        let end = ContinuousClock.now + longestClosing
        guard await gate.close(shard, atMost: Self.time(until: end, atMost: Self.longestDrain)) else { return .busy }
        guard await hasGivenUp(shard, giver, gate, before: end) else {
            gate.reopen(shard)
            return .busy
        }
        // What a session read from the former home must not be given after a sender took it back at the new one.
        let sessions = giver.home.sessions
        let areHeld = await gate.waits(atMost: Self.time(until: end, atMost: Self.longestHold)) { done in
            sessions.moving(shard, done: done)
        }
        do {
            guard areHeld, try await assign(shard, from: giver, to: taker, before: end) else {
                stay(shard, at: giver, gate)
                return .busy
            }
        } catch {
            stay(shard, at: giver, gate)
            throw error
        }
        // Calls that waited for the shard run at the new home before its sessions have arrived.
        taker.home.sessions.expect(sessions.devices(in: shard))
        taker.home.take(shard)
        homes.move(ShardSet([shard]), to: taker.place)
        gate.give(shard)
        sessions.moved(shard, isGiven: true)
        await taker.took(shard)
        return .moved
    }

    /// Returns the time for a step of the move.
    private static func time(until end: ContinuousClock.Instant, atMost longest: Duration) -> Duration {
        let left: Duration = end - .now
        return min(max(left, .zero), longest)
    }

    /// Returns whether the features of the home gave the shard up, and everything is written. If that takes too long, it goes on while the
    /// shard is open again: what is forgotten then is read again.
    private func hasGivenUp(
        _ shard: Shard, _ giver: Party, _ gate: ShardGate, before end: ContinuousClock.Instant
    ) async -> Bool {
        let outcome = Outcome()
        _ = await gate.waits(atMost: Self.time(until: end, atMost: Self.longestGiveUp)) { done in
            // Ends with the work.
            Task {
                if await giver.giveUp(shard), await giver.home.hasWritten() { outcome.isDone.withLock { $0 = true } }
                done()
            }
        }
        return outcome.isDone.withLock { $0 }
    }

    private final class Outcome: Sendable {
        let isDone = Mutex(false)
    }

    private func stay(_ shard: Shard, at giver: Party, _ gate: ShardGate) {
        gate.reopen(shard)
        giver.home.sessions.moved(shard, isGiven: false)
    }

    /// Writes the new owner. Positions that the new home assigns are later than those of the former one.
    ///
    /// - Returns: False if the time was over before the write began. The former home is the owner then.
    private func assign(
        _ shard: Shard, from giver: Party, to taker: Party, before end: ContinuousClock.Instant
    ) async throws -> Bool {
        var epoch = try await store.claimEpoch()
        // The store does not know positions of messages that were not stored.
        while epoch <= giver.home.epoch { epoch = try await store.claimEpoch() }
        taker.home.raise(to: epoch)
        let place = ShardMap.Place(node: taker.node, epoch: epoch)
        while true {
            let version = try await store.shardMap().version
            guard ContinuousClock.now < end else { return false }
            if try await giver.home.store.changeShards(ShardSet([shard]), to: place, from: version) != nil { return true }
        }
    }
}

extension HomeRuntime {
    /// Waits until everything that was queued is on disk.
    ///
    /// - Returns: False if a change cannot be written now.
    func hasWritten() async -> Bool {
        await inbox.flush()
        return !inbox.hasUnwritten
    }

    /// The home has a further shard, which another home had.
    func take(_ shard: Shard) {
        // Before the shard is open: what was read of its devices before can be outdated.
        sessions.changes.noteAll()
        gate?.take(shard)
    }

    /// Positions are assigned in this epoch from now on, if it is later than the present one.
    func raise(to epoch: Int64) { inbox.raise(to: epoch) }
}
