import CarillonCore
import Synchronization
import Testing

struct LiveSessionsTests {
    private let sessions = LiveSessions(shardCount: 2)
    private let device = DeviceSerial(1)

    private func current() -> (any LiveSession)? { sessions.session(of: device) }

    private func append(to device: DeviceSerial) { sessions.appending(to: device) { _, _ in ((), nil) } }

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

    @Test func `a session whose connection came earlier does not replace a newer one`() {
        let (older, newer) = (RecordingSession(), RecordingSession())
        let (early, between) = (OpeningTime(nanoseconds: 1), OpeningTime(nanoseconds: 2))
        #expect(sessions.join(newer, device: device, openedAt: OpeningTime(nanoseconds: 3)))
        #expect(!sessions.join(older, device: device, openedAt: early))
        #expect(older.events == [.ended(.replaced)] && newer.events.isEmpty)
        #expect(current() === newer)
        #expect(sessions.join(newer, device: device, openedAt: early), "it has the place already")
        #expect(!sessions.join(older, device: device, openedAt: between), "the place keeps the later time")
        sessions.leave(newer, device: device)
        #expect(sessions.join(older, device: device, openedAt: early), "no session is left")
        #expect(current() === older)
    }

    @Test func `a session that joins without a time is the newest`() {
        let (older, newer) = (RecordingSession(), RecordingSession())
        sessions.join(older, device: device, openedAt: .now())
        #expect(sessions.join(newer, device: device))
        #expect(older.events == [.ended(.replaced)] && current() === newer)
    }

    @Test func `a session that joins twice is not ended`() {
        let session = RecordingSession()
        sessions.join(session, device: device)
        sessions.join(session, device: device)
        #expect(session.events.isEmpty)
    }

    @Test func `connected devices are found by their app, or if their app is not known`() {
        let (first, second, waiter) = (RecordingSession(), RecordingSession(), RecordingSession())
        sessions.join(first, device: DeviceSerial(1), of: AppSerial(1))
        sessions.join(second, device: DeviceSerial(2), of: AppSerial(2))
        sessions.join(RecordingSession(), device: DeviceSerial(3))
        sessions.addWaiter(waiter, for: DeviceSerial(4))
        #expect(Set(sessions.devices(of: AppSerial(1))) == [DeviceSerial(1), DeviceSerial(3)])
        sessions.leave(first, device: DeviceSerial(1))
        #expect(sessions.devices(of: AppSerial(1)) == [DeviceSerial(3)])
    }

    @Test func `devices in one shard are independent`() {
        let session = RecordingSession()
        sessions.join(session, device: DeviceSerial(3))
        #expect(current() == nil)
        sessions.end([device], because: .deviceGone)
        #expect(session.events.isEmpty)
    }

    @Test func `waiters are called for each append, and not after they were removed`() {
        let waiter = RecordingSession()
        sessions.addWaiter(waiter, for: device)
        let hasSession = sessions.appending(to: device) { hasSession, _ in (hasSession, nil) }
        #expect(!hasSession)
        append(to: DeviceSerial(2))
        #expect(waiter.events == [.storedMore])
        sessions.removeWaiter(waiter, for: device)
        append(to: device)
        #expect(waiter.events == [.storedMore])
    }

    @Test func `when a device is deleted, its session ends and so do its waiters`() {
        let (session, waiters) = (RecordingSession(), [RecordingSession(), RecordingSession()])
        sessions.join(session, device: device)
        for waiter in waiters { sessions.addWaiter(waiter, for: device) }
        sessions.end([device], because: .deviceGone)
        for one in waiters + [session] { #expect(one.events == [.ended(.deviceGone)]) }
    }

    @Test func `a stop reaches every session and every waiter`() {
        let all = (Int64(1)...10).flatMap { number in
            let (session, waiter) = (RecordingSession(), RecordingSession())
            sessions.join(session, device: DeviceSerial(number))
            sessions.addWaiter(waiter, for: DeviceSerial(number + 100))
            return [session, waiter]
        }
        #expect(sessions.population == (10, 10))
        sessions.endAll(because: .serverStops)
        #expect(all.allSatisfy { $0.events == [.ended(.serverStops)] })
    }

    @Test(arguments: [true, false])
    func `a withdrawal reaches also a session that ended because of a newer one, until it leaves`(isOlderLast: Bool) {
        let (older, newer) = (RecordingSession(), RecordingSession())
        let joins = [(older, Int64(1)), (newer, 2)]
        for (session, time) in isOlderLast ? joins.reversed() : joins {
            sessions.join(session, device: device, of: AppSerial(1), openedAt: OpeningTime(nanoseconds: time))
        }
        let done = Mutex(0)
        sessions.withdraw(.envelope(1), from: device) { done.withLock { $0 += 1 } }
        #expect(older.events == [.ended(.replaced), .withdrew(.envelope(1))] && newer.events == [.withdrew(.envelope(1))])
        sessions.leave(newer, device: device)
        #expect(current() == nil && sessions.population == (0, 0))
        #expect(sessions.devices(of: AppSerial(1)) == [device])
        sessions.withdraw(.envelope(2), from: device) { done.withLock { $0 += 1 } }
        #expect(older.events.last == .withdrew(.envelope(2)) && newer.events.count == 1)
        sessions.leave(older)
        #expect(sessions.devices(of: AppSerial(1)).isEmpty)
        sessions.withdraw(.envelope(3), from: device) { done.withLock { $0 += 1 } }
        #expect(done.withLock { $0 } == 3 && older.events.last == .withdrew(.envelope(2)))
    }

    @Test func `a session that joins again, when the newer one has left, is there once`() {
        let (older, newer) = (RecordingSession(), RecordingSession())
        sessions.join(older, device: device)
        sessions.join(newer, device: device)
        sessions.leave(newer, device: device)
        sessions.join(older, device: device)
        sessions.withdraw(.envelope(1), from: device) {}
        #expect(older.events == [.ended(.replaced), .withdrew(.envelope(1))])
        sessions.leave(older, device: device)
        sessions.withdraw(.envelope(2), from: device) {}
        #expect(older.events.count == 2)
    }

    @Test func `a withdrawal returns a result with and without a session`() {
        let done = Mutex(0)
        sessions.withdraw(.envelope(1), from: device) { done.withLock { $0 += 1 } }
        let session = RecordingSession()
        sessions.join(session, device: device)
        sessions.withdraw(.envelope(2), from: device) { done.withLock { $0 += 1 } }
        #expect(done.withLock { $0 } == 2)
        #expect(session.events == [.withdrew(.envelope(2))])
    }
}
