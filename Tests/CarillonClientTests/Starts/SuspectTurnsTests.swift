import Testing

@testable import CarillonClient

@Suite(.timeLimit(.minutes(1)))
struct SuspectTurnsTests {
    private let start = ContinuousClock.now

    @Test func `one entry has its turn at a time, and may begin more than one part`() {
        let turns = SuspectTurns()
        #expect(turns.begin(1, at: start))
        #expect(turns.begin(1, at: start))
        #expect(!turns.begin(2, at: start))
        turns.end(2)
        #expect(!turns.begin(2, at: start), "only its own end ends a turn")
        turns.end(1)
        #expect(turns.begin(2, at: start))
        #expect(!turns.begin(1, at: start))
    }

    @Test func `an entry that takes long does not stop the others`() {
        let turns = SuspectTurns()
        #expect(turns.begin(1, at: start))
        #expect(!turns.begin(2, at: start + SuspectTurns.longest - .milliseconds(1)))
        #expect(turns.begin(2, at: start + SuspectTurns.longest))
        turns.end(1)
        #expect(!turns.begin(3, at: start + SuspectTurns.longest), "the turn is another's by now")
    }

    @Test func `who waits for a turn gets it, or is cancelled`() async throws {
        let turns = SuspectTurns()
        try await turns.wait(for: 1)
        let cancelled = Task { try await turns.wait(for: 2) }
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        let waiting = Task { try await turns.wait(for: 3) }
        turns.end(1)
        try await waiting.value
        #expect(!turns.begin(4, at: .now))
    }

    @Test func `ten starts that ended with the process are too many`() {
        #expect(!HandlerStarts.isCrashing(9))
        #expect(HandlerStarts.isCrashing(10))
    }
}
