import Testing

@testable import CarillonClient

@Suite(.timeLimit(.minutes(5)))
struct SuspectTurnsTests {
    private let start = ContinuousClock.now

    @Test func `one entry has its turn at a time, and can begin more than one part`() {
        let turns = SuspectTurns()
        #expect(turns.begin(.update(1), at: start))
        #expect(turns.begin(.update(1), at: start))
        #expect(!turns.begin(.update(2), at: start))
        turns.end(.update(2))
        #expect(!turns.begin(.update(2), at: start), "only its own end ends a turn")
        turns.end(.update(1))
        #expect(turns.begin(.update(2), at: start))
        #expect(!turns.begin(.update(1), at: start))
        #expect(!turns.begin(.message(2), at: start), "each kind has its own numbers")
        #expect(!turns.begin(.request(2), at: start))
        #expect(!turns.begin(.result("2"), at: start))
        #expect(!turns.begin(.firing("2"), at: start))
        turns.end(.message(2))
        #expect(!turns.begin(.message(2), at: start))
    }

    @Test func `a slow entry does not stop the others`() {
        let turns = SuspectTurns()
        #expect(turns.begin(.update(1), at: start))
        #expect(!turns.begin(.update(2), at: start + SuspectTurns.longest - .milliseconds(1)))
        #expect(turns.begin(.update(2), at: start + SuspectTurns.longest))
        turns.end(.update(1))
        #expect(!turns.begin(.update(3), at: start + SuspectTurns.longest), "the turn is another's by now")
    }

    @Test func `a waiter for a turn gets it, or is cancelled`() async throws {
        let turns = SuspectTurns()
        try await turns.wait(for: .update(1))
        let cancelled = Task { try await turns.wait(for: .update(2)) }
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        let waiting = Task { try await turns.wait(for: .update(3)) }
        turns.end(.update(1))
        try await waiting.value
        #expect(!turns.begin(.update(4), at: .now))
    }

    @Test func `ten starts that ended with the process are too many`() {
        #expect(!HandlerStarts.isCrashing(9))
        #expect(HandlerStarts.isCrashing(10))
    }
}
