import CarillonCore
import Synchronization
import Testing

struct LiveSessionsTests {
    private let sessions = LiveSessions(shardCount: 2)
    private let device = DeviceSerial(1)

    private func current() -> (any LiveSession)? { sessions.session(of: device) }

    @Test func `the newest session of a device ends the one before it, which does not take it along`() {
        let first = RecordingSession()
        let second = RecordingSession()
        sessions.join(first, device: device)
        sessions.join(second, device: device)
        #expect(first.events == [.ended(.replaced)])
        #expect(second.events.isEmpty)
        sessions.leave(first, device: device)
        #expect(current() === second)
        sessions.leave(second, device: device)
        #expect(current() == nil)
    }

    @Test func `a session that joins twice is not ended`() {
        let session = RecordingSession()
        sessions.join(session, device: device)
        sessions.join(session, device: device)
        #expect(session.events.isEmpty)
    }

    @Test func `devices in one shard are strangers`() {
        let session = RecordingSession()
        sessions.join(session, device: DeviceSerial(3))
        #expect(current() == nil)
        sessions.end([device], because: .deviceGone)
        #expect(session.events.isEmpty)
    }

    @Test func `waiters are called for each append, and not after they were removed`() {
        let calls = Mutex(0)
        let waiter = sessions.addWaiter(for: device) { calls.withLock { $0 += 1 } }
        sessions.appending(to: device) { _ in }
        sessions.appending(to: DeviceSerial(2)) { _ in }
        #expect(calls.withLock { $0 } == 1)
        sessions.removeWaiter(waiter, for: device)
        sessions.appending(to: device) { _ in }
        #expect(calls.withLock { $0 } == 1)
    }

    @Test func `when a device is deleted, its session ends and its waiters look again`() {
        let calls = Mutex(0)
        let session = RecordingSession()
        sessions.join(session, device: device)
        _ = sessions.addWaiter(for: device) { calls.withLock { $0 += 1 } }
        sessions.end([device], because: .deviceGone)
        #expect(session.events == [.ended(.deviceGone)])
        #expect(calls.withLock { $0 } == 1)
    }

    @Test func `a stop reaches every session and every waiter`() {
        let calls = Mutex(0)
        let all = (Int64(1)...10).map { number in
            let session = RecordingSession()
            sessions.join(session, device: DeviceSerial(number))
            _ = sessions.addWaiter(for: DeviceSerial(number + 100)) { calls.withLock { $0 += 1 } }
            return session
        }
        sessions.endAll(because: .serverStops)
        #expect(all.allSatisfy { $0.events == [.ended(.serverStops)] })
        #expect(calls.withLock { $0 } == 10)
    }

    @Test func `who withdraws is told, whether there is a session or not`() {
        let done = Mutex(0)
        sessions.withdraw(.envelope(1), from: device) { done.withLock { $0 += 1 } }
        let session = RecordingSession()
        sessions.join(session, device: device)
        sessions.withdraw(.envelope(2), from: device) { done.withLock { $0 += 1 } }
        #expect(done.withLock { $0 } == 2)
        #expect(session.events == [.withdrew(.envelope(2))])
    }
}
