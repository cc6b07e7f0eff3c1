import CarillonBasics
import CarillonCore
import CarillonWire
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5)))
struct RequestLimiterTests {
    /// Runs scheduled work when the test starts it.
    private final class Later: Sendable {
        private let works = Mutex<[(after: Duration, work: @Sendable () -> Void)]>([])

        var scheduler: Scheduler { Scheduler { after, work in self.works.withLock { $0.append((after, work)) } } }
        var waits: [Duration] { works.withLock { $0.map(\.after) } }

        func run() {
            for work in works.withLock({ works in
                defer { works = [] }
                return works
            }) { work.work() }
        }
    }

    private let later = Later()

    /// Takes a turn and keeps it until the stream ends.
    private func hold(_ turns: RequestLimiter, _ app: AppSerial) async -> (
        AsyncStream<Void>.Continuation, Task<Void, any Error>
    ) {
        let (stream, end) = AsyncStream<Void>.makeStream()
        let (begun, begins) = AsyncStream<Void>.makeStream()
        let task = Task {
            try await turns.take(of: app) {
                begins.finish()
                for await _ in stream {}
            }
        }
        for await _ in begun {}
        return (end, task)
    }

    @Test func `a second preview of an app waits for the first, and another app does not`() async throws {
        let turns = RequestLimiter(of: .preview, scheduler: later.scheduler)
        let (end, first) = await hold(turns, AppSerial(1))
        #expect(try await turns.take(of: AppSerial(2)) { 2 } == 2)
        let second = Task { try await turns.take(of: AppSerial(1)) { 1 } }
        while later.waits.isEmpty { await Task.yield() }
        #expect(later.waits == [.seconds(2)])
        end.finish()
        try await first.value
        #expect(try await second.value == 1)
        later.run()
        #expect(try await turns.take(of: AppSerial(1)) { 3 } == 3)
    }

    @Test func `a request that waits too long is refused, with the time after which to send it again`() async throws {
        let turns = RequestLimiter(of: .listing, scheduler: later.scheduler)
        let (end, first) = await hold(turns, AppSerial(1))
        let second = Task { () -> Refusal? in
            do {
                try await turns.take(of: AppSerial(1)) {}
                return nil
            } catch { return error as? Refusal }
        }
        while later.waits.isEmpty { await Task.yield() }
        later.run()
        let refusal = try #require(await second.value)
        #expect(refusal.code == .rateLimited && refusal.retryAfterSeconds == 2)
        end.finish()
        try await first.value
        #expect(try await turns.take(of: AppSerial(1)) { true })
    }

    @Test(.timeLimit(.minutes(5))) func `a turn ends also where its work fails`() async throws {
        let turns = RequestLimiter(of: .preview, scheduler: later.scheduler)
        for _ in 1...3 {
            await #expect(throws: Refusal.self) {
                try await turns.take(of: AppSerial(1)) { throw Refusal(.fieldInvalid, "") }
            }
        }
    }
}
