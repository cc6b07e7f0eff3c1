import CarillonCore
import CarillonWire
import Logging
import Synchronization
import TestStores
import Testing

/// The changes of an inbox between the read of a device that arrives and the join of its session.
@Suite(.timeLimit(.minutes(5)))
struct HomeArrivalTests {
    private let store = ScriptedInboxStore()
    private let sessions = LiveSessions()
    private let session = RecordingSession()
    private let writer: InboxWriter
    private let home: HomeRuntime

    init() async throws {
        let writer = InboxWriter(
            store: store, sessions: sessions, scheduler: Scheduler { _, _ in },
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let inbox = Inbox(
            store: store, writer: writer, sessions: sessions, positions: PositionSource(epoch: 1),
            time: TimeSource { Sample.now }, random: Sample.random)
        self.writer = writer
        home = HomeRuntime(inbox: inbox, sessions: sessions, store: try await stores.open())
        store.found = .success(try Self.arrival([]))
    }

    private static let credential = SecretHash(of: [1])

    private static func arrival(
        _ envelopes: [Envelope]?, _ hash: SecretHash = HomeArrivalTests.credential
    ) throws -> Arrival {
        let app = try #require(AppID("com.example.app"))
        let device = Device(
            serial: Sample.device, id: DeviceID(Bytes16(high: 1, low: 1)), app: AppSerial(1), appID: app,
            credentialHash: hash, createdAt: Sample.now, isAnonymous: false, seenAt: Sample.now)
        return Arrival(device: device, envelopes: envelopes)
    }

    private func arrive(with credential: SecretHash = HomeArrivalTests.credential) async throws -> InboxPage? {
        let load = PageRequest(after: 0, limit: 9, bytes: 1000)
        let arrived = try await home.arrive(
            .credential(credential), .credential(credential), load, speaking: 1, as: session)
        switch arrived {
        case .device(let arrived): return arrived.page
        case .unknownDevice: return nil
        case .failed(let fault): throw fault
        }
    }

    private var isJoined: Bool { sessions.session(of: Sample.device) === session }

    private func page(_ envelopes: [Envelope]) -> InboxPage { InboxPage(envelopes: envelopes, isComplete: true) }

    @Test func `one read is enough if nothing happens`() async throws {
        store.found = .success(try Self.arrival([Sample.envelope(1)]))
        #expect(try await arrive() == page([Sample.envelope(1)]))
        #expect(isJoined && store.arrivals == 1)
    }

    @Test func `an envelope that is committed before the join is in the page`() async throws {
        let later = try Self.arrival([Sample.envelope(1)])
        store.onArrival { [store, writer] number in
            guard number == 1 else { return }
            store.found = .success(later)
            _ = writer.enqueue(.append(Sample.envelope(1), AppendRules()), urgency: .now)
            await writer.flush(Sample.device)
        }
        #expect(try await arrive() == page([Sample.envelope(1)]))
        #expect(isJoined && store.arrivals == 2)
    }

    @Test func `while an envelope is queued the page must be loaded`() async throws {
        let commit = store.hold()
        _ = writer.enqueue(.append(Sample.envelope(1), AppendRules()), urgency: .now)
        await commit.begun()
        #expect(try await arrive() == .unread)
        #expect(isJoined && store.arrivals == 1)
        commit.end()
        await writer.flush(Sample.device)
        #expect(try await arrive() == page([]))
        #expect(store.arrivals == 2)
    }

    @Test func `while an envelope is queued a second read has no page`() async throws {
        let commit = store.hold()
        _ = writer.enqueue(.append(Sample.envelope(2), AppendRules()), urgency: .now)
        await commit.begun()
        store.found = .success(try Self.arrival([Sample.envelope(1)]))
        store.onArrival { [sessions] number in
            if number == 1 { sessions.withdraw(.envelope(1), from: Sample.device) {} }
        }
        #expect(try await arrive() == .unread)
        #expect(isJoined && store.loads.map(\.limit) == [9, 0])
        commit.end()
        await writer.flush(Sample.device)
    }

    @Test func `an envelope that is withdrawn before the join is not in the page`() async throws {
        store.found = .success(try Self.arrival([Sample.envelope(1)]))
        let later = try Self.arrival([])
        store.onArrival { [store, sessions] number in
            guard number == 1 else { return }
            store.found = .success(later)
            sessions.withdraw(.envelope(1), from: Sample.device) {}
        }
        #expect(try await arrive() == page([]))
        #expect(isJoined && session.events.isEmpty)
    }

    @Test func `a change of another device has no effect`() async throws {
        store.onArrival { [sessions] _ in sessions.withdraw(.envelope(1), from: DeviceSerial(2)) {} }
        #expect(try await arrive() == page([]))
        #expect(store.arrivals == 1)
    }

    @Test func `a page that cannot be read must be loaded`() async throws {
        store.found = .success(try Self.arrival(nil))
        #expect(try await arrive() == .unread)
        #expect(isJoined)
    }

    @Test func `a device with a wrong proof takes no place`() async throws {
        let other = RecordingSession()
        sessions.join(other, device: Sample.device)
        #expect(try await arrive(with: SecretHash(of: [2])) == nil)
        store.found = .success(nil)
        #expect(try await arrive() == nil)
        #expect(sessions.session(of: Sample.device) === other && other.events.isEmpty)
    }

    @Test func `of two connections that arrive the newer one stays, also if it is read first`() async throws {
        store.found = .success(try Self.arrival([Sample.envelope(1)]))
        let newer = RecordingSession()
        let pages = Mutex<[InboxPage?]>([])
        let calls = listen()
        store.onArrival { [home] number in
            guard number == 1 else { return }
            do {
                let load = PageRequest(after: 0, limit: 9, bytes: 1000)
                let arrived = try await home.arrive(
                    .credential(Self.credential), .credential(Self.credential), load, speaking: 1, as: newer)
                pages.withLock { $0.append(arrived.device?.page) }
            } catch {
                Issue.record(error)
            }
        }
        #expect(try await arrive() == .unread)
        #expect(pages.withLock { $0 } == [page([Sample.envelope(1)])])
        #expect(sessions.session(of: Sample.device) === newer && newer.events.isEmpty)
        #expect(session.events == [.ended(.replaced)])
        // Both proofs are valid, and one device has arrived.
        #expect(
            calls.all == ["admitted, joined: false", "arrived, joined: true, version: 1", "admitted, joined: true"])
    }

    @Test func `a device that cannot be read takes no place`() async throws {
        let fault = StoreFault(.unavailable, "no")
        store.found = .failure(fault)
        await #expect(throws: fault) { try await arrive() }
        #expect(!isJoined && store.arrivals == 1)
    }

    @Test func `a user agent identifier of another device is no proof`() async throws {
        let load = PageRequest(after: 0, limit: 9, bytes: 1000)
        let proof = DeviceProof.userAgent(SecretHash(of: [2]))
        let arrived = try await home.arrive(.credential(Self.credential), proof, load, speaking: 1, as: session)
        #expect(arrived.device == nil)
        #expect(!isJoined)
    }

    // MARK: The listener

    /// The calls that the listener of a home received.
    private final class Calls: Sendable {
        private let texts = Mutex<[String]>([])

        var all: [String] { texts.withLock { $0 } }

        func note(_ text: String) { texts.withLock { $0.append(text) } }
    }

    private func listen() -> Calls {
        let calls = Calls()
        home.inform(
            ArrivalListener(
                admitted: { [sessions] device, _ in
                    calls.note("admitted, joined: \(sessions.session(of: device.serial) != nil)")
                },
                arrived: { [sessions] device, version, session in
                    let isJoined = sessions.session(of: device.serial) === session
                    calls.note("arrived, joined: \(isJoined), version: \(version)")
                }))
        return calls
    }

    @Test func `the listener is informed when the proof is valid, and again when the session has joined`() async throws {
        let calls = listen()
        #expect(try await arrive(with: SecretHash(of: [2])) == nil)
        #expect(calls.all == [])
        #expect(try await arrive() == page([]))
        #expect(calls.all == ["admitted, joined: false", "arrived, joined: true, version: 1"])
    }

    @Test func `the listener is informed of the valid proof at each read of a device`() async throws {
        let calls = listen()
        store.onArrival { [sessions] number in
            if number == 1 { sessions.withdraw(.envelope(1), from: Sample.device) {} }
        }
        #expect(try await arrive() == page([]))
        #expect(store.arrivals == 2)
        #expect(
            calls.all == ["admitted, joined: false", "admitted, joined: true", "arrived, joined: true, version: 1"])
    }

    @Test func `a session leaves by the name of its device, and a newer session stays`() async throws {
        #expect(try await arrive() == page([]))
        // The device can have another credential by then.
        home.leave(session, of: .credential(SecretHash(of: [2])))
        #expect(!isJoined)
        #expect(try await arrive() == page([]))
        let newer = RecordingSession()
        sessions.join(newer, device: Sample.device)
        for _ in 0..<2 { home.leave(session, of: .credential(Self.credential)) }
        #expect(sessions.session(of: Sample.device) === newer)
    }

    enum Change: CaseIterable, Sendable { case deletion, otherCredential, fault }

    private func found(after change: Change) throws -> Result<Arrival?, StoreFault> {
        switch change {
        case .deletion: .success(nil)
        case .otherCredential: .success(try Self.arrival([], SecretHash(of: [2])))
        case .fault: .failure(StoreFault(.unavailable, "no"))
        }
    }

    @Test(arguments: Change.allCases)
    func `a device that changes before the join, and is not the one any more, leaves again`(change: Change) async throws {
        let later = try found(after: change)
        let calls = listen()
        store.onArrival { [store, sessions] number in
            guard number == 1 else { return }
            store.found = later
            sessions.end([Sample.device], because: .deviceGone)
        }
        if case .failure(let fault) = later {
            await #expect(throws: fault) { try await arrive() }
        } else {
            #expect(try await arrive() == nil)
        }
        #expect(!isJoined && store.arrivals == 2)
        #expect(calls.all == ["admitted, joined: false"])
    }
}
