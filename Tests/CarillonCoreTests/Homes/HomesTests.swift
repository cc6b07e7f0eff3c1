import CarillonCore
import Logging
import Testing

/// What registrars use of the connections of any home.
struct HomesTests {
    private let sessions = LiveSessions()
    private let homes: Homes

    init() {
        let store = ScriptedInboxStore()
        let writer = InboxWriter(
            store: store, sessions: sessions, scheduler: Scheduler { _, _ in },
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let inbox = Inbox(
            store: store, writer: writer, sessions: sessions, positions: PositionSource(epoch: 1),
            time: TimeSource { Sample.now }, random: Sample.random)
        homes = Homes(only: Home(inbox: inbox, sessions: sessions))
    }

    @Test func `the sessions and the waiting polls of each given device end, and no others`() {
        let (first, second, poll, other) = (
            RecordingSession(), RecordingSession(), RecordingSession(), RecordingSession()
        )
        sessions.join(first, device: DeviceSerial(1))
        sessions.join(second, device: DeviceSerial(2))
        sessions.addWaiter(poll, for: DeviceSerial(2))
        sessions.join(other, device: DeviceSerial(3))
        homes.end([DeviceSerial(1), DeviceSerial(2)], because: .deviceGone)
        for session in [first, second, poll] { #expect(session.events == [.ended(.deviceGone)]) }
        #expect(other.events.isEmpty)
    }

    @Test func `a device with a session is connected, and a device with a waiting poll is not`() {
        let session = RecordingSession()
        sessions.join(session, device: DeviceSerial(1))
        sessions.addWaiter(RecordingSession(), for: DeviceSerial(2))
        #expect(homes.isConnected(DeviceSerial(1)))
        #expect(!homes.isConnected(DeviceSerial(2)))
        sessions.leave(session, device: DeviceSerial(1))
        #expect(!homes.isConnected(DeviceSerial(1)))
    }
}
