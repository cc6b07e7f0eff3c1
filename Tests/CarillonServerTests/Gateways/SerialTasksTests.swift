import CarillonCore
import CarillonWire
import Synchronization
import TestSupport
import Testing

@testable import CarillonServer

@Suite(.timeLimit(.minutes(5)))
struct SerialTasksTests {
    private final class Seen: Sendable {
        let counts = Mutex((underWay: 0, most: 0, done: 0))
    }

    @Test func `work is done in order, and work that has begun completes even if nobody waits for it`() async throws {
        let tasks = SerialTasks()
        let seen = Seen()
        let work: @Sendable () async throws -> Void = {
            seen.counts.withLock { counts in
                counts.underWay += 1
                counts.most = max(counts.most, counts.underWay)
            }
            await Task.yield()
            seen.counts.withLock { counts in
                counts.underWay -= 1
                counts.done += 1
            }
        }
        await withTaskGroup { group in
            for number in 0..<50 {
                group.addTask {
                    let caller = Task { try await tasks.run(work) }
                    if number % 2 == 0 { caller.cancel() }
                    _ = await caller.result
                }
            }
        }
        try await eventually { seen.counts.withLock { $0.done } == 50 }
        #expect(seen.counts.withLock { $0.most } == 1)
    }

    @Test func `a failure delays no other work, and its caller receives it`() async throws {
        let tasks = SerialTasks()
        await #expect(throws: Refusal.self) { try await tasks.run { throw Refusal(.internalError, "x") } }
        #expect(try await tasks.run { 7 } == 7)
    }
}
