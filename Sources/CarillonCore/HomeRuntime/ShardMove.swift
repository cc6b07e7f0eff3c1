import CarillonWire
import Metrics
import Synchronization

/// Moves shards from a home of this process to another one, while both serve their devices.
///
/// A move that fails changes nothing: the shard stays open at its home.
package struct ShardMove: Sendable {
    package enum Result: Equatable, Sendable {
        case moved
        /// Calls under way or the work of a feature did not end in time, a session did not answer, a change cannot be written
        /// now, or the store was too slow.
        case busy
    }

    /// A home that releases or takes over shards.
    package struct Participant: Sendable {
        package var home: HomeRuntime
        package var node: NodeNumber
        /// The place of the home in ``Homes``.
        package var place: Int
        /// Ends the work of the home's features on a closed shard, writes the data of the shard that is only in their memory, and
        /// removes the other data from memory. Returns whether that was done in time. It can be called again before it has
        /// returned.
        package var release: @Sendable (Shard) async -> Bool
        /// Begins the work of the home's features for a shard that the home has from now on.
        package var took: @Sendable (Shard) async -> Void

        package init(
            _ home: HomeRuntime, node: NodeNumber, place: Int, release: @escaping @Sendable (Shard) async -> Bool,
            took: @escaping @Sendable (Shard) async -> Void
        ) {
            self.home = home
            self.node = node
            self.place = place
            self.release = release
            self.took = took
        }
    }

    private let homes: Homes
    private let store: any NodeStore & ServerStore

    /// The longest time between the closing of the shard and the write of its new home. The rest of ``ShardGate/longestWait`` is
    /// for the write. Therefore, the calls that wait for the shard continue in time, whether the shard moves or stays.
    package static let longestClosing = ShardGate.longestWait - .milliseconds(150)
    /// The longest wait for calls under way.
    package static let longestDrain = Duration.milliseconds(300)
    /// The longest wait for the work of features, and until everything is written.
    package static let longestRelease = Duration.milliseconds(200)
    /// The longest wait for sessions.
    package static let longestSessionPause = Duration.milliseconds(100)

    private let longestClosing: Duration

    package init(
        homes: Homes, store: any NodeStore & ServerStore, longestClosing: Duration = ShardMove.longestClosing
    ) {
        self.homes = homes
        self.store = store
        self.longestClosing = longestClosing
    }

    /// Moves a shard. Only one move at a time can run in a server.
    ///
    /// - Throws: ``StoreFault``. The shard stays at its home.
    package func move(_ shard: Shard, from source: Participant, to target: Participant) async throws -> Result {
        do {
            let result = try await moveNow(shard, from: source, to: target)
            ServerMetric.shardMoves.counter(result == .moved ? "moved" : "busy").increment()
            return result
        } catch {
            ServerMetric.shardMoves.counter("failed").increment()
            throw error
        }
    }

    private func moveNow(_ shard: Shard, from source: Participant, to target: Participant) async throws -> Result {
        guard let gate = source.home.gate, target.home.gate != nil else {
            preconditionFailure("A home that has all shards cannot move shards.")
        }
        let end = ContinuousClock.now + longestClosing
        guard await gate.close(shard, atMost: Self.time(until: end, atMost: Self.longestDrain)) else { return .busy }
        guard await hasReleased(shard, source, gate, before: end) else {
            gate.reopen(shard)
            return .busy
        }
        // An envelope that a session read at the former home must not be delivered after its sender withdrew it at the new home.
        let sessions = source.home.sessions
        let arePaused = await gate.waits(atMost: Self.time(until: end, atMost: Self.longestSessionPause)) { done in
            sessions.moving(shard, done: done)
        }
        do {
            guard arePaused, try await assign(shard, from: source, to: target, before: end) else {
                stay(shard, at: source, gate)
                return .busy
            }
        } catch {
            stay(shard, at: source, gate)
            throw error
        }
        // Calls that waited for the shard run at the new home before its sessions have arrived.
        target.home.sessions.expect(sessions.devices(in: shard))
        target.home.take(shard)
        homes.move(ShardSet([shard]), to: target.place)
        gate.remove(shard)
        sessions.moved(shard, isReleased: true)
        await target.took(shard)
        return .moved
    }

    /// Returns the time for a step of the move.
    private static func time(until end: ContinuousClock.Instant, atMost longest: Duration) -> Duration {
        let left: Duration = end - .now
        return min(max(left, .zero), longest)
    }

    /// Returns whether the features of the home released the shard, and everything is written. If that takes too long, it
    /// continues while the shard is open again: data that is removed from memory then is read again.
    private func hasReleased(
        _ shard: Shard, _ source: Participant, _ gate: ShardGate, before end: ContinuousClock.Instant
    ) async -> Bool {
        let outcome = Outcome()
        _ = await gate.waits(atMost: Self.time(until: end, atMost: Self.longestRelease)) { done in
            // Ends with the work.
            Task {
                if await source.release(shard), await source.home.hasWritten() { outcome.isDone.withLock { $0 = true } }
                done()
            }
        }
        return outcome.isDone.withLock { $0 }
    }

    private final class Outcome: Sendable {
        let isDone = Mutex(false)
    }

    private func stay(_ shard: Shard, at source: Participant, _ gate: ShardGate) {
        gate.reopen(shard)
        source.home.sessions.moved(shard, isReleased: false)
    }

    /// Writes the new home of the shard. Positions that the new home assigns are later than those of the former home.
    ///
    /// - Returns: False if the time was over before the write began. The former home is the owner then.
    private func assign(
        _ shard: Shard, from source: Participant, to target: Participant, before end: ContinuousClock.Instant
    ) async throws -> Bool {
        var epoch = try await store.claimEpoch()
        // The store has no positions of messages that were not stored.
        while epoch <= source.home.epoch { epoch = try await store.claimEpoch() }
        target.home.raise(to: epoch)
        let place = ShardMap.Place(node: target.node, epoch: epoch)
        while true {
            let version = try await store.shardMap().version
            guard ContinuousClock.now < end else { return false }
            if try await source.home.store.changeShards(ShardSet([shard]), to: place, from: version) != nil { return true }
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

    /// Adds a shard that another home had.
    func take(_ shard: Shard) {
        // Before the shard is open: earlier reads of its devices can be outdated.
        sessions.changes.noteAll()
        gate?.take(shard)
    }

    /// Assigns positions in this epoch from now on, if it is later than the present one.
    func raise(to epoch: Int64) { inbox.raise(to: epoch) }
}
