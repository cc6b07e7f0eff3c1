import CarillonWire
import Synchronization
import Testing

@testable import CarillonCore

/// The time for which a move keeps a shard closed.
@Suite(.timeLimit(.minutes(5)))
struct ShardMoveTimeTests {
    /// Notes the waits of a move, and ends none.
    private final class Waits: Sendable {
        private let state = Mutex<[Duration]>([])

        var scheduler: Scheduler { Scheduler { [self] time, _ in state.withLock { $0.append(time) } } }
        var times: [Duration] { state.withLock { $0 } }

        func has(_ count: Int) async {
            while times.count < count { await Task.yield() }
        }
    }

    private func move(
        in world: GatedHomes, within time: Duration, release: @escaping @Sendable (Shard) async -> Bool = { _ in true }
    ) async throws -> ShardMove.Result {
        let parties = (0..<2).map { place in
            ShardMove.Participant(
                world.runtimes[place], node: GatedHomes.node(place), place: place, release: release, took: { _ in })
        }
        let move = ShardMove(homes: world.homes, store: world.store, longestClosing: time)
        return try await move.move(world.shard, from: parties[0], to: parties[1])
    }

    @Test func `a shard stays if its time ends before its new home is written`() async throws {
        let world = try await GatedHomes(waits: Waits().scheduler)
        let before = try await world.store.shardMap()
        #expect(try await move(in: world, within: .zero) == .busy)
        #expect(try await world.store.shardMap().places == before.places)
        #expect(await world.deliver(at: world.first).result == .stored(replaced: nil))
        #expect(try await move(in: world, within: .seconds(100)) == .moved)
    }

    @Test func `the steps of a move have one time limit`() async throws {
        let waits = Waits()
        let world = try await GatedHomes(waits: waits.scheduler)
        let gate = try #require(world.first.gate)
        try await gate.enter(world.shard)
        let time = Duration.milliseconds(150)
        let result = Task {
            try await move(in: world, within: time) { _ in
                // The wait of this step has begun.
                await waits.has(2)
                return true
            }
        }
        await waits.has(1)
        let pause = Duration.milliseconds(20)
        try await Task.sleep(for: pause)
        gate.leave(world.shard)
        _ = try await result.value
        #expect(waits.times.count >= 2)
        #expect(waits.times[0] <= time && waits.times[1] <= time - pause)
    }

    @Test func `a call at a closing shard waits longer than the steps of the move take`() {
        #expect(ShardGate.longestWait == .milliseconds(500))
        #expect(ShardGate.longestWait - ShardMove.longestClosing >= .milliseconds(100))
    }
}
