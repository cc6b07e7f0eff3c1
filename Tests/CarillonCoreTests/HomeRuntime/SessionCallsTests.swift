import CarillonWire
import Synchronization
import Testing

@testable import CarillonCore

/// The order of calls to sessions of one device.
struct SessionCallsTests {
    private let session = RecordingSession()

    /// Makes the calls that wait.
    private func makeNext(_ calls: inout SessionCalls) -> Int {
        let next = calls.next() ?? []
        for waiting in next { waiting.call.make(to: waiting.session) }
        return next.count
    }

    private func add(_ calls: inout SessionCalls, _ call: SessionCall) -> SessionCalls.Added { calls.add(call, to: session) }

    @Test func `a call is made by its caller if no other call is being made, and waits otherwise`() {
        var calls = SessionCalls()
        let other = RecordingSession()
        #expect(calls.isIdle)
        #expect(add(&calls, .storedMore) == .begins)
        #expect(!calls.isIdle)
        #expect(add(&calls, .offer(Sample.envelope(1))) == .waits)
        #expect(calls.add(.finished([Sample.id(7)]), to: other) == .waits)
        #expect(add(&calls, .withdrew(.envelope(1), done: {})) == .waits)
        #expect(makeNext(&calls) == 3)
        #expect(session.events == [.offered(1), .withdrew(.envelope(1))] && other.events == [.finished(1)])
        #expect(add(&calls, .end(.serverStops)) == .waits, "the thread has not searched for further calls")
        #expect(makeNext(&calls) == 1)
        #expect(makeNext(&calls) == 0)
        #expect(calls.isIdle)
        #expect(add(&calls, .storedMore) == .begins)
    }

    @Test func `beyond the limit, an offer becomes storedMore, and an offer of TTL 0 is refused`() {
        var calls = SessionCalls()
        let most = Int64(SessionCalls.mostOffers)
        #expect(add(&calls, .storedMore) == .begins)
        for position in 1...most { #expect(add(&calls, .offer(Sample.envelope(position))) == .waits) }
        #expect(add(&calls, .offerVolatile(Sample.envelope(most + 1), answer: { _ in })) == .refused)
        for position in (most + 2)...(most + 9) { #expect(add(&calls, .offer(Sample.envelope(position))) == .waits) }
        #expect(add(&calls, .withdrew(.envelope(1), done: {})) == .waits)
        #expect(makeNext(&calls) == SessionCalls.mostOffers + 2)
        let offered = (1...most).map { RecordingSession.Event.offered($0) }
        #expect(session.events == offered + [.storedMore, .withdrew(.envelope(1))])
        #expect(add(&calls, .offer(Sample.envelope(most + 10))) == .waits)
        #expect(makeNext(&calls) == 1)
        #expect(session.events.last == .offered(most + 10))
    }

    @Test func `storedMore waits once for each session`() {
        var calls = SessionCalls()
        let other = RecordingSession()
        #expect(add(&calls, .storedMore) == .begins)
        for _ in 0..<3 { #expect(add(&calls, .storedMore) == .waits) }
        for _ in 0..<3 { #expect(calls.add(.storedMore, to: other) == .waits) }
        #expect(makeNext(&calls) == 2)
        #expect(session.events == [.storedMore] && other.events == [.storedMore])
    }
}
