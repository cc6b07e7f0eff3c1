import CarillonCore
import CarillonWire
import Logging
import Synchronization
import TestStores
import TestSupport
import Testing

/// The use of a home by others through `Homes`.
@Suite(.timeLimit(.minutes(5)))
struct HomesTests {
    private let sessions = LiveSessions()
    private let runtime: HomeRuntime
    private let homes: Homes

    init() async throws {
        let store = ScriptedInboxStore()
        let writer = InboxWriter(
            store: store, sessions: sessions, scheduler: Scheduler { _, _ in },
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        // The first position is of the next epoch.
        let positions = PositionSource(epoch: 1, after: 1 << 29 - 1)
        let inbox = Inbox(
            store: store, writer: writer, sessions: sessions, positions: positions, time: TimeSource { Sample.now },
            random: Sample.random)
        let runtime = HomeRuntime(inbox: inbox, sessions: sessions, store: try await stores.open())
        self.runtime = runtime
        homes = Homes(only: runtime)
    }

    @Test func `the only home is that of each device and each message, and has all shards`() {
        #expect(homes.localHome(of: DeviceSerial(1)) === runtime)
        #expect(homes.home(of: DeviceSerial(1)) === runtime)
        #expect(homes.home(of: DeviceName.credential(SecretHash(of: [1]))) === runtime)
        #expect(homes.here.count == 1 && homes.here[0] === runtime)
        #expect(homes.shards == .all && homes.isOne && homes.all().count == 1)
    }

    @Test(arguments: [HomeFault.moved(to: Shard(number: 7)), .unreachable, .outcomeUnknown])
    func `a session leaves after an arrival whose outcome is unknown, and after no other fault`(fault: HomeFault) async {
        let link = SilentHome(fault)
        let homes = Homes(only: runtime, reachedBy: link)
        let session = RecordingSession()
        let (load, hash) = (PageRequest(after: 0, limit: 9, bytes: 1000), SecretHash(of: [1]))
        await #expect(throws: fault) {
            try await homes.arrive(.credential(hash), .credential(hash), load, speaking: 1, as: session)
        }
        #expect(link.left == (fault == .outcomeUnknown ? [ObjectIdentifier(session)] : []))
        let device = DeviceSerial(1)
        let catcher = LogCatcher()
        let read = await homes.load(load, of: device, logger: catcher.logger)
        #expect(read == .failure(StoreFault(fault)))
        #expect(catcher.lines == ["warning cannot use home of device; ending connection reason=\(fault)"])
        #expect(homes.localHome(of: device) === runtime)
    }

    @Test func `values are divided by their homes, in their order`() {
        let places = [
            Homes.Place(SilentHome(.unreachable), local: nil), Homes.Place(SilentHome(.unreachable), local: nil),
            Homes.Place(runtime, local: runtime),
        ]
        let others = OtherHomes(Homes(places) { Int($0.number % 3) }, beside: runtime)
        let shards = [4, 3, 7, 0, 1, 9].map { Shard(number: $0) }
        let parts = others.parts(of: shards) { $0 }
        #expect(parts.map { $0.values.map(\.number) } == [[4, 7, 1], [3, 0, 9]])
        #expect(parts.map { $0.shard.number } == [4, 3])
    }

    @Test func `an arrival that is repeated at another home has the same opening time`() async {
        let (former, present) = (SilentHome(.moved(to: Shard(number: 1))), SilentHome(.unreachable))
        let homes = Homes([former, present].map { Homes.Place($0, local: nil) }) { $0.number == 1 ? 1 : 0 }
        let name = DeviceName.id(DeviceID(Bytes16(high: 1, low: 7)), credential: SecretHash(of: [1]))
        let load = PageRequest(after: 0, limit: 1, bytes: 1)
        await #expect(throws: HomeFault.unreachable) {
            try await homes.arrive(name, .credential(SecretHash(of: [1])), load, speaking: 1, as: RecordingSession())
        }
        #expect(former.arrivals.count == 1 && former.arrivals == present.arrivals)
    }

    @Test func `a session that arrives again leaves if the outcome is unknown`() async {
        let link = SilentHome(.outcomeUnknown)
        let homes = Homes(only: runtime, reachedBy: link)
        let (session, hash) = (RecordingSession(), SecretHash(of: [1]))
        let arrived = await homes.arriveAgain(
            .credential(hash), .credential(hash), speaking: 1, openedAt: .now(), as: session)
        guard case .failed = arrived else {
            Issue.record("it has joined")
            return
        }
        #expect(link.left == [ObjectIdentifier(session)])
    }

    @Test func `the epoch of a home is the present one, and not that of its start`() async {
        let device = DeviceSerial(1)
        #expect(runtime.epoch == 1)
        let delivered = await runtime.deliver(to: device, .kept) { id in
            var envelope = Sample.envelope(1)
            envelope.id = id
            return envelope
        }
        #expect(delivered == .stored(replaced: nil))
        #expect(runtime.epoch == 2)
    }

    @Test func `the sessions and the waiting polls of each named device end, and no others`() {
        let (first, second, poll, other) = (
            RecordingSession(), RecordingSession(), RecordingSession(), RecordingSession()
        )
        sessions.join(first, device: DeviceSerial(1))
        sessions.join(second, device: DeviceSerial(2))
        sessions.addWaiter(poll, for: DeviceSerial(2))
        sessions.join(other, device: DeviceSerial(3))
        let home: any LocalHome = runtime
        home.end([DeviceSerial(1), DeviceSerial(2)], because: .deviceGone)
        for session in [first, second, poll] { #expect(session.events == [.ended(.deviceGone)]) }
        #expect(other.events.isEmpty)
    }

    @Test func `a device with a session is connected, and a device with a waiting poll is only present`() {
        let (session, poll) = (RecordingSession(), RecordingSession())
        let home: any LocalHome = runtime
        sessions.join(session, device: DeviceSerial(1), of: AppSerial(1))
        home.addWaiter(poll, for: DeviceSerial(2))
        let devices = (Int64(1)...3).map { DeviceSerial($0) }
        #expect(devices.map { home.isConnected($0) } == [true, false, false])
        #expect(devices.map { home.isPresent($0) } == [true, true, false])
        #expect(home.population == (1, 1))
        runtime.leave(session, of: DeviceSerial(1))
        home.removeWaiter(poll, for: DeviceSerial(2))
        #expect(devices.allSatisfy { !home.isConnected($0) && !home.isPresent($0) })
        #expect(home.population == (0, 0))
    }

    @Test func `a withdrawal from all devices of an app names those that are connected, and is noted`() {
        let home: any LocalHome = runtime
        for (number, app) in [(1, 1), (2, 2), (3, nil)] as [(Int64, Int64?)] {
            sessions.join(RecordingSession(), device: DeviceSerial(number), of: app.map { AppSerial($0) })
        }
        home.addWaiter(RecordingSession(), for: DeviceSerial(4))
        let moment = home.beginVisit()
        let devices = Set(home.noteWithdrawal(fromAllOf: AppSerial(1)))
        #expect(devices == [DeviceSerial(1), DeviceSerial(3)])
        #expect(sessions.changes.mayHaveChanged(allOf: AppSerial(1), since: moment))
        #expect(!home.isOutdated(DeviceSerial(1), readAfter: moment))
    }

    @Test func `an envelope that expired is withdrawn from the session, and no read becomes outdated`() {
        let session = RecordingSession()
        let home: any LocalHome = runtime
        sessions.join(session, device: DeviceSerial(1), of: nil)
        let moment = home.beginVisit()
        home.expired(7, of: DeviceSerial(1))
        home.expired(8, of: DeviceSerial(2))
        #expect(session.events == [.withdrew(.envelope(7))])
        #expect(!home.isOutdated(DeviceSerial(1), readAfter: moment))
        home.withdraw(.envelope(9), from: DeviceSerial(1)) {}
        #expect(home.isOutdated(DeviceSerial(1), readAfter: moment))
    }
}

/// A home that answers no call.
private final class SilentHome: Home {
    private let fault: HomeFault
    private let leaves = Mutex<[ObjectIdentifier]>([])
    private let times = Mutex<[OpeningTime]>([])

    /// The opening times of the sessions that wanted to arrive.
    var arrivals: [OpeningTime] { times.withLock { $0 } }

    /// The sessions that leave by the names of their devices.
    var left: [ObjectIdentifier] { leaves.withLock { $0 } }

    init(_ fault: HomeFault) { self.fault = fault }

    func arrive(
        _ name: DeviceName, _ proof: DeviceProof, _ load: PageRequest, speaking version: Int, openedAt: OpeningTime,
        as session: any LiveSession
    ) async throws(HomeFault) -> Arrived {
        times.withLock { $0.append(openedAt) }
        throw fault
    }

    func read(_ load: PageRequest, of device: DeviceSerial) async throws(HomeFault) -> Result<InboxRead, StoreFault> {
        throw fault
    }

    func finish(_ answer: EnvelopeAnswer, of device: DeviceSerial) {}
    func leave(_ session: any LiveSession, of device: DeviceSerial) {}
    func leave(_ session: any LiveSession, of name: DeviceName) {
        leaves.withLock { $0.append(ObjectIdentifier(session)) }
    }
    func handle(_ request: HomeRequest) async throws(HomeFault) -> HomeResponse { throw fault }
    func ask<Question: HomeQuestion>(
        _ question: Question
    ) async throws(HomeFault) -> Result<Question.Answer, any Error> { throw fault }
}
