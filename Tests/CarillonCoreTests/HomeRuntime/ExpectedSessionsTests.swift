import Dispatch
import Foundation
import Testing

@testable import CarillonCore

/// Devices that a home expects after a move, and the parts of its sessions.
@Suite(.timeLimit(.minutes(5)))
struct ExpectedSessionsTests {
    private let expected = ExpectedSessions()
    private let start = ContinuousClock.now
    private let phone = DeviceSerial(1)
    private let tablet = DeviceSerial(2)

    @Test func `a device is expected until its time is over`() {
        expected.expect(phone, until: start + .seconds(2))
        expected.expect(tablet, until: start + .seconds(4))
        #expect(expected.contains(phone, at: start + .seconds(1)))
        #expect(!expected.contains(phone, at: start + .seconds(2)))
        #expect(expected.contains(tablet, at: start + .seconds(3)))
        #expect(!expected.contains(DeviceSerial(3), at: start))
    }

    @Test func `nothing is remembered after the end of all waits`() {
        expected.expect(tablet, until: start + .seconds(4))
        expected.expect(phone, until: start + .seconds(2))
        #expect(!expected.contains(phone, at: start + .seconds(3)))
        #expect(!expected.isEmpty)
        #expect(!expected.contains(phone, at: start + .seconds(4)))
        #expect(expected.isEmpty)
        expected.expect(phone, until: start + .seconds(6))
        #expect(expected.contains(phone, at: start + .seconds(5)))
    }

    @Test func `nothing is remembered when all devices have arrived`() {
        expected.expect(phone, until: start + .seconds(2))
        expected.expect(tablet, until: start + .seconds(2))
        expected.arrived(phone)
        #expect(!expected.contains(phone, at: start) && expected.contains(tablet, at: start))
        expected.arrived(tablet)
        #expect(expected.isEmpty && !expected.contains(tablet, at: start))
    }

    // MARK: Parts

    private static func device(in shard: UInt16) -> DeviceSerial { DeviceSerial(Shard.firstWithShard + Int64(shard)) }

    /// Calls a function while the part of a device is locked.
    private func locking(_ device: DeviceSerial, of sessions: LiveSessions, _ work: () -> Void) {
        sessions.appending(to: device) { _, _ in (work(), nil) }
    }

    @Test func `a move reads the part with the devices of its shard only`() {
        let sessions = LiveSessions()
        let session = MovingSession()
        sessions.join(session, device: Self.device(in: 7))
        locking(Self.device(in: 8), of: sessions) {
            let end = DispatchSemaphore(value: 0)
            Thread.detachNewThread {
                let shard = Shard(number: 7)
                sessions.expect(sessions.devices(in: shard))
                sessions.moving(shard) {}
                sessions.moved(shard, isReleased: true)
                end.signal()
            }
            #expect(end.wait(timeout: .now() + 20) == .success)
        }
        #expect(session.events == [.moving, .gone])
    }

    @Test func `devices of earlier versions are in the part of their shard`() {
        let sessions = LiveSessions()
        for number in Int64(1)...200 {
            let session = MovingSession()
            sessions.join(session, device: DeviceSerial(number))
            let shard = Shard(of: DeviceSerial(number))
            #expect(sessions.devices(in: shard).contains(DeviceSerial(number)))
            sessions.moved(shard, isReleased: true)
            #expect(session.events == [.gone])
        }
    }
}
