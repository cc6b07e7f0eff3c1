import Synchronization
import Testing

@testable import CarillonCore

/// The sessions of a home while a shard moves.
struct MovingSessionsTests {
    private let sessions = LiveSessions()
    private let shard = Shard(number: 7)

    /// A device of a shard.
    private func device(_ number: Int64, in shard: Shard) -> DeviceSerial {
        DeviceSerial(Shard.firstWithShard + number * Int64(Shard.count) + Int64(shard.number))
    }

    /// Begins a move. Returns an object that records that all sessions have answered.
    private func begin() -> Done {
        let done = Done()
        sessions.moving(shard) { done.note() }
        return done
    }

    private final class Done: Sendable {
        private let state = Mutex(false)
        var isNoted: Bool { state.withLock { $0 } }
        func note() { state.withLock { $0 = true } }
    }

    @Test func `sessions of the shard are informed of the move, and others are not`() {
        let (own, another, elsewhere) = (MovingSession(), MovingSession(), MovingSession())
        sessions.join(own, device: device(1, in: shard))
        sessions.join(another, device: device(2, in: shard))
        sessions.join(elsewhere, device: device(1, in: Shard(number: 8)))
        #expect(begin().isNoted)
        sessions.moved(shard, isReleased: true)
        #expect(own.events == [.moving, .gone] && another.events == [.moving, .gone])
        #expect(elsewhere.events == [])
        #expect(sessions.population == (1, 0))
        #expect(sessions.session(of: device(1, in: Shard(number: 8))) === elsewhere)
    }

    @Test func `a move without sessions waits for nothing`() {
        sessions.join(MovingSession(), device: device(1, in: Shard(number: 8)))
        #expect(begin().isNoted)
    }

    @Test func `the move waits for each session`() {
        let (quick, silent) = (MovingSession(), MovingSession(answersMoves: false))
        sessions.join(quick, device: device(1, in: shard))
        sessions.join(silent, device: device(2, in: shard))
        #expect(!begin().isNoted)
        sessions.moved(shard, isReleased: false)
        #expect(quick.events == [.moving, .stays] && silent.events == [.moving, .stays])
        #expect(sessions.population == (2, 0))
    }

    @Test func `a device whose session is expected is connected, until it has joined and left or the time is over`() {
        let (phone, late) = (device(1, in: shard), device(2, in: shard))
        func isAwaited(_ device: DeviceSerial) -> Bool {
            sessions.appending(to: device) { _, isAwaited in (isAwaited, nil) }
        }
        #expect(!sessions.isConnected(phone) && !isAwaited(phone))
        sessions.expect([phone], for: .seconds(1000))
        sessions.expect([late], for: .zero)
        #expect(sessions.isConnected(phone) && isAwaited(phone))
        #expect(!sessions.isConnected(late) && !isAwaited(late))
        #expect(sessions.session(of: phone) == nil && sessions.population == (0, 0))
        let session = MovingSession()
        sessions.join(session, device: phone)
        #expect(sessions.isConnected(phone))
        sessions.leave(session, device: phone)
        #expect(!sessions.isConnected(phone) && !isAwaited(phone))
    }

    @Test(arguments: [true, false])
    func `the move waits also for a session that ended because of a newer one`(answers: Bool) {
        let (older, newer) = (MovingSession(answersMoves: answers), MovingSession())
        sessions.join(older, device: device(1, in: shard))
        sessions.join(newer, device: device(1, in: shard))
        #expect(begin().isNoted == answers)
        sessions.moved(shard, isReleased: true)
        #expect(older.events == [.ended(.replaced), .moving, .gone] && newer.events == [.moving, .gone])
        #expect(begin().isNoted)
    }

    @Test func `waiting polls end, and those of other shards stay`() {
        let (poll, elsewhere) = (RecordingSession(), RecordingSession())
        sessions.addWaiter(poll, for: device(1, in: shard))
        sessions.addWaiter(elsewhere, for: device(1, in: Shard(number: 8)))
        #expect(begin().isNoted)
        #expect(poll.events == [.ended(.moved)] && elsewhere.events == [])
        let late = RecordingSession()
        sessions.addWaiter(late, for: device(1, in: shard))
        sessions.moved(shard, isReleased: true)
        #expect(late.events == [.ended(.moved)])
        #expect(sessions.population == (0, 1))
    }
}
