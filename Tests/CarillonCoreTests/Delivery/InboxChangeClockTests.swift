import CarillonCore
import Testing

struct InboxChangeClockTests {
    private let clock = InboxChangeClock()
    private let device = DeviceSerial(1)

    @Test func `a change is found by a read that began before it, and by no later one`() {
        let before = clock.now()
        #expect(!clock.mayHaveChanged(device, since: before))
        clock.note(device)
        #expect(clock.mayHaveChanged(device, since: before))
        #expect(!clock.mayHaveChanged(device, since: clock.now()))
        clock.note(DeviceSerial(2))
        #expect(clock.mayHaveChanged(device, since: before), "a change of another device hides none")
    }

    @Test func `unchanged devices appear unchanged, unless they use one slot`() {
        let before = clock.now()
        for serial in Int64(1)...100 { clock.note(DeviceSerial(serial)) }
        let others = (Int64(101)...262_144).filter { clock.mayHaveChanged(DeviceSerial($0), since: before) }
        #expect(others.isEmpty)
    }

    @Test func `devices whose serials end with one shard are distributed over all slots`() {
        func serial(_ number: Int64) -> DeviceSerial { DeviceSerial(1 << 40 + number << 10 + 7) }
        let before = clock.now()
        for number in Int64(0)..<1000 { clock.note(serial(number)) }
        #expect((Int64(0)..<1000).allSatisfy { clock.mayHaveChanged(serial($0), since: before) })
        let others = (Int64(1000)..<101_000).count { clock.mayHaveChanged(serial($0), since: before) }
        #expect(others < 1000, "about 1 of 262 has the place of one that changed")
    }

    @Test func `a change of all inboxes is found for each device`() {
        let before = clock.now()
        clock.noteAll()
        #expect(clock.mayHaveChanged(device, since: before) && clock.mayHaveChanged(DeviceSerial(1 << 41), since: before))
        #expect(!clock.mayHaveChanged(device, since: clock.now()))
    }

    @Test func `a change of all devices of an app is found, and none of another app`() {
        let (before, app) = (clock.now(), AppSerial(1))
        clock.note(allOf: app)
        #expect(clock.mayHaveChanged(allOf: app, since: before))
        #expect(!clock.mayHaveChanged(allOf: AppSerial(2), since: before))
        #expect(!clock.mayHaveChanged(allOf: app, since: clock.now()))
        #expect(!clock.mayHaveChanged(device, since: before))
    }

    @Test func `a session that joins later is found to have missed a withdrawal, and an end`() {
        let sessions = LiveSessions()
        let before = sessions.changes.now()
        sessions.withdraw(.envelope(7), from: device) {}
        #expect(sessions.changes.mayHaveChanged(device, since: before))
        let between = sessions.changes.now()
        sessions.end([device], because: .deviceGone)
        #expect(sessions.changes.mayHaveChanged(device, since: between))
    }
}
