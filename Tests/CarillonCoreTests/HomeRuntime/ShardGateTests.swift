import CarillonCore
import Synchronization
import Testing

/// Calls and moves of a shard.
@Suite(.timeLimit(.minutes(5)))
struct ShardGateTests {
    private let shard = Shard(number: 7)
    private let clock = HandClock()
    private let gate: ShardGate

    init() {
        gate = ShardGate(ShardSet([Shard(number: 7), Shard(number: 8)]), scheduler: clock.scheduler, mostWaiting: 3)
    }

    /// Runs scheduled work when the test starts it.
    private final class HandClock: Sendable {
        private let waiting = Mutex<[@Sendable () -> Void]>([])

        var scheduler: Scheduler { Scheduler { [self] _, work in waiting.withLock { $0.append(work) } } }

        var count: Int { waiting.withLock { $0.count } }

        func elapse() {
            let work = waiting.withLock { waiting in
                defer { waiting = [] }
                return waiting
            }
            for work in work { work() }
        }
    }

    private func hasWaiter(_ count: Int = 1) async {
        while clock.count < count { await Task.yield() }
    }

    @Test func `a call of a shard of another home fails with a move`() async {
        let other = Shard(number: 9)
        await #expect(throws: HomeFault.moved(to: other)) { try await gate.enter(other) }
        #expect(!gate.enterNow(other) && !gate.has(other))
    }

    @Test func `a shard without calls closes at once, and admits no calls`() async throws {
        #expect(await gate.close(shard, atMost: .zero))
        #expect(!gate.enterNow(shard) && gate.has(shard))
        #expect(gate.openShards == ShardSet([Shard(number: 8)]))
        try await gate.enter(Shard(number: 8))
        gate.reopen(shard)
        #expect(gate.openShards.shards.count == 2)
        try await gate.enter(shard)
    }

    @Test func `a shard closes when the last call and its parts have left`() async throws {
        try await gate.enter(shard)
        let closed = Task { await gate.close(shard, atMost: .seconds(1)) }
        await hasWaiter()
        // A part of the call that is under way.
        #expect(gate.isOpen(shard) && gate.enterNow(shard))
        gate.leave(shard)
        gate.leave(shard)
        #expect(await closed.value)
        #expect(!gate.isOpen(shard) && !gate.enterNow(shard))
    }

    @Test func `a shard whose calls do not end in time opens again`() async throws {
        try await gate.enter(shard)
        let closed = Task { await gate.close(shard, atMost: .seconds(1)) }
        await hasWaiter()
        clock.elapse()
        #expect(await closed.value == false)
        try await gate.enter(shard)
        gate.leave(shard)
        gate.leave(shard)
        #expect(await gate.close(shard, atMost: .zero))
    }

    @Test func `a shard that closes is not closed a second time`() async {
        #expect(await gate.close(shard, atMost: .zero))
        #expect(await gate.close(shard, atMost: .zero) == false)
        #expect(await gate.close(Shard(number: 9), atMost: .zero) == false)
    }

    @Test func `a waiting call is informed of the move`() async {
        #expect(await gate.close(shard, atMost: .zero))
        let call = Task { () async -> HomeFault? in
            do throws(HomeFault) {
                try await gate.enter(shard)
                return nil
            } catch {
                return error
            }
        }
        await hasWaiter()
        gate.remove(shard)
        #expect(await call.value == .moved(to: shard))
        #expect(!gate.has(shard))
        gate.take(shard)
        #expect(gate.enterNow(shard))
    }

    @Test func `a waiting call is admitted when the move is abandoned`() async throws {
        #expect(await gate.close(shard, atMost: .zero))
        let call = Task { try await gate.enter(shard) }
        await hasWaiter()
        gate.reopen(shard)
        try await call.value
        gate.leave(shard)
        #expect(await gate.close(shard, atMost: .zero))
    }

    @Test func `a call that waited too long is not let in, and leaves its place`() async throws {
        #expect(await gate.close(shard, atMost: .zero))
        for _ in 0..<5 {
            let calls = (0..<3).map { _ in Task { try await gate.enter(shard) } }
            await hasWaiter(3)
            // All places are taken.
            await #expect(throws: HomeFault.unreachable) { try await gate.enter(shard) }
            clock.elapse()
            for call in calls { await #expect(throws: HomeFault.unreachable) { try await call.value } }
        }
    }

    @Test(arguments: [true, false])
    func `the places of calls that waited for a move are free after it`(isGiven: Bool) async throws {
        for _ in 0..<2 {
            #expect(await gate.close(shard, atMost: .zero))
            for _ in 0..<2 {
                let isKept = gate.whenDecided(shard) {}
                try #require(isKept)
            }
            let call = Task { () async -> HomeFault? in
                do throws(HomeFault) {
                    try await gate.enter(shard)
                    return nil
                } catch {
                    return error
                }
            }
            await hasWaiter()
            // Beyond the limit.
            let isKept = gate.whenDecided(shard) {}
            #expect(!isKept)
            if isGiven { gate.remove(shard) } else { gate.reopen(shard) }
            #expect(await call.value == (isGiven ? .moved(to: shard) : nil))
            // The call does not wait any more, and has no place.
            clock.elapse()
            if isGiven { gate.take(shard) } else { gate.leave(shard) }
        }
    }

    @Test func `work for a decision is done at once, after the decision, and in its order`() async {
        let done = Mutex<[Int]>([])
        gate.whenDecided(shard) { done.withLock { $0.append(0) } }
        #expect(done.withLock { $0 } == [0])
        #expect(await gate.close(shard, atMost: .zero))
        for number in 1...3 { gate.whenDecided(shard) { done.withLock { $0.append(number) } } }
        // Beyond the limit.
        let isKept = gate.whenDecided(shard) { done.withLock { $0.append(9) } }
        #expect(!isKept)
        #expect(done.withLock { $0 } == [0])
        gate.remove(shard)
        #expect(done.withLock { $0 } == [0, 1, 2, 3])
    }
}
