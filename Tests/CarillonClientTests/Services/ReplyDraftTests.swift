import CarillonWire
import Crypto
import Foundation
import GRDB
import Synchronization
import TestSupport
import Testing

@testable import CarillonClient

/// Replies that one run does not finish.
@Suite(.timeLimit(.minutes(5)))
struct ReplyDraftTests {
    private typealias Fixture = ServiceEngineFixture

    private static let method = ServiceMethod("com.example.x", "1", "m")

    /// A request that another device sealed for the engine of a test.
    private func request(_ fixture: Fixture) async throws -> ServiceEvent {
        let own = try await fixture.box.keys(at: ServiceEngine.now).bundle(of: Fixture.own)
        let key = Curve25519.KeyAgreement.PrivateKey()
        let sender = try KeyBundle(
            key, named: "0011223344556677", until: ServiceEngine.now + 1_000_000, device: Fixture.other.device,
            by: Curve25519.Signing.PrivateKey())
        let id = try #require(ServiceRequestID(Fixture.id(1)))
        let header = RequestHeader(
            id: id, service: try #require(ServiceID(Self.method.service)),
            version: try #require(ServiceVersion(Self.method.version)), method: try #require(MethodName(Self.method.name)),
            deadlineSeconds: 600)
        let context = SealContext(
            direction: .request, id: id.description, consumer: Fixture.other,
            provider: ServicePeer(app: "com.example.app", device: Fixture.own), senderKey: sender.id, receiverKey: own.id,
            method: Self.method, deadlineSeconds: 600, foreground: header.foreground.rawValue, files: 0, fileBytes: 0)
        let sealed = try ServiceSeal.seal(SealedPayload(.value(.null)).bytes, to: own.key, from: key, context)
        let content = SealedContent(
            keyID: own.id, sender: sender, encapsulated: sealed.encapsulated, body: sealed.body, files: 0, fileBytes: 0)
        return .request(header, from: Fixture.other, expiresAt: ServiceEngine.now + 600_000, content)
    }

    private func uploads(_ fixture: Fixture) throws -> [String] {
        let names = try FileManager.default.contentsOfDirectory(atPath: fixture.directory.path + "/services")
        return names.filter { $0.hasSuffix(".upload") }
    }

    @Test func `a run continues the upload of a reply, and calls no handler again`() async throws {
        let fixture = try await Fixture()
        // A file that was received, and is sent back.
        let path = fixture.directory.path + "/Inbox/a/1/report.pdf"
        try FileManager.default.createDirectory(
            atPath: fixture.directory.path + "/Inbox/a/1", withIntermediateDirectories: true)
        try Data([1, 2, 3]).write(to: URL(filePath: path))
        let calls = Mutex(0)
        let provider = ServiceProvider(engine: fixture.engine)
        await provider.handle(Self.method) { _ in
            calls.withLock { $0 += 1 }
            return ServiceReply("x", attachments: [path])
        }
        let event = try await request(fixture)
        try await fixture.running {
            try await fixture.receive(event)
            try await eventually { try await fixture.box.draft(of: 1)?.uploads.count == 1 }
        }
        let draft = try #require(try await fixture.box.draft(of: 1))
        #expect(try draft.value() == "x")
        #expect(draft.files.map(\.name.text) == ["report.pdf"])
        #expect(draft.files.map(\.path) == ["in:Inbox/a/1/report.pdf"])
        #expect(try uploads(fixture).count == 1)
        try FileManager.default.removeItem(atPath: path)
        try await fixture.running { try await Task.sleep(for: .milliseconds(100)) }
        #expect(calls.withLock { $0 } == 1)
        #expect(try await fixture.box.draft(of: 1) == draft)
        #expect(try uploads(fixture).count == 1)
        #expect(try await fixture.box.draftUploads() == draft.uploads)
        // Files that no request waits for are removed.
        await fixture.engine.abandonDraft(of: 1)
        let files = await fixture.engine.files.attachments
        try await eventually { try files.uploads().isEmpty }
        try await fixture.box.done(1)
        #expect(try await fixture.box.draft(of: 1) == nil)
    }

    @Test func `a request that was under way when the process ended waits for the turn of an update`() async throws {
        let fixture = try await Fixture()
        let calls = Mutex(0)
        let provider = ServiceProvider(engine: fixture.engine)
        await provider.handle(Self.method) { _ in
            calls.withLock { $0 += 1 }
            return ServiceReply("x")
        }
        let body = try await request(fixture).body
        try await fixture.store.inStep { db in
            try StoreChange.saveServiceEvent(body).apply(to: db)
            try db.execute(sql: "UPDATE service_event SET starts = 1")
        }
        let suspects = fixture.engine.suspects
        #expect(suspects.begin(.update(1), at: .now))
        try await fixture.running {
            // So long that the handler would have been called.
            try await Task.sleep(for: .milliseconds(200))
            #expect(calls.withLock { $0 } == 0)
            suspects.end(.update(1))
            try await eventually { calls.withLock { $0 } == 1 }
        }
    }

    @Test func `the turn of a request that was under way when the process ended ends with its handler`() async throws {
        let fixture = try await Fixture()
        let calls = Mutex(0)
        await ServiceProvider(engine: fixture.engine).handle(Self.method) { _ in
            calls.withLock { $0 += 1 }
            return ServiceReply("x")
        }
        let body = try await request(fixture).body
        try await fixture.store.inStep { db in
            try StoreChange.saveServiceEvent(body).apply(to: db)
            try db.execute(sql: "UPDATE service_event SET starts = 1")
        }
        let suspects = fixture.engine.suspects
        // At this moment no turn has lasted so long that the next entry is started beside it.
        let began = ContinuousClock.now
        try await fixture.running {
            try await eventually { calls.withLock { $0 } == 1 }
            try await eventually { suspects.begin(.update(1), at: began) }
        }
    }

    @Test func `the start of a handler whose request is cancelled does not count, also before it ends`() async throws {
        let fixture = try await Fixture()
        let calls = Mutex(0)
        let isReleased = Mutex(false)
        let provider = ServiceProvider(engine: fixture.engine)
        await provider.handle(Self.method) { _ in
            calls.withLock { $0 += 1 }
            // It is not informed that it is cancelled.
            while !isReleased.withLock({ $0 }) { await Task.yield() }
            return ServiceReply("x")
        }
        let starts: @Sendable () async throws -> Int? = {
            try await fixture.store.inStep { db in
                try Int.fetchOne(db, sql: "SELECT starts FROM service_event WHERE number = 1")
            }
        }
        let event = try await request(fixture)
        let id = try #require(ServiceRequestID(Fixture.id(1)))
        try await fixture.running {
            try await fixture.receive(event)
            try await eventually { calls.withLock { $0 } == 1 }
            #expect(try await starts() == 1)
            try await fixture.receive(.cancelled(id))
            try await eventually { try await starts() == 0 }
            isReleased.withLock { $0 = true }
        }
    }

    @Test func `a draft ends with the decision, and with its user`() async throws {
        let fixture = try await Fixture()
        let body = ServiceEvent.received(try #require(ServiceRequestID(Fixture.id(1)))).body
        for _ in 0..<2 {
            try await fixture.store.inStep { try StoreChange.saveServiceEvent(body).apply(to: $0) }
        }
        var draft = ReplyDraft(payload: SealedPayload(.value(7)).bytes, files: [])
        for name in ["a", "b"] {
            draft.files.append(.init(path: "at:/" + name, name: try #require(RelativePath(name))))
        }
        for number in 1...3 as ClosedRange<Int64> { try await fixture.box.save(draft, of: number) }
        #expect(try await fixture.box.draft(of: 3) == nil, "there is no such request")
        draft.files[1].upload = "u"
        try await fixture.box.save(draft, of: 1)
        #expect(try await fixture.box.events(after: 0, at: 1, limit: 1).events.first?.draft == draft)
        #expect(try await fixture.box.draftUploads() == ["u"])
        try await fixture.box.decided(1, reply: [1], claiming: [], files: ["7", "8"])
        #expect(try await fixture.box.draft(of: 1) == nil)
        let decided = try #require(try await fixture.box.events(after: 0, at: 1, limit: 1).events.first)
        #expect(decided.draft == nil && decided.reply == [1] && decided.replyFiles == ["7", "8"])
        try await fixture.store.inStep { try StoreChange.saveAcceptedUser("bob").apply(to: $0) }
        #expect(try await fixture.box.draft(of: 2) == nil)
    }

    @Test func `the files of a reply of an earlier run are removed if the server refuses the reply`() async throws {
        let fixture = try await Fixture()
        try await fixture.receive(try await request(fixture))
        try await fixture.box.decided(1, reply: [1], claiming: [], files: ["7"])
        let problem = try JSONEncoder().encode(ProblemDocument(Refusal(.requestFinished, "why")))
        fixture.web.on("POST", ErrorCode.requestFinished.status, String(decoding: problem, as: UTF8.self))
        fixture.web.on("DELETE", 204)
        try await fixture.running {
            try await eventually { fixture.web.asked.contains("DELETE /v1/attachments/7") }
            try await eventually { try await fixture.box.eventNumbers().isEmpty }
        }
    }

    @Test func `the deadline of a request counts from its arrival in an earlier run`() async throws {
        let fixture = try await Fixture()
        let calls = Mutex(0)
        await ServiceProvider(engine: fixture.engine).handle(Self.method) { _ in
            calls.withLock { $0 += 1 }
            return ServiceReply()
        }
        try await fixture.receive(try await request(fixture))
        // It has 600 seconds.
        let arrived = ServiceEngine.now - 700_000
        let events = try await fixture.box.events(after: 0, at: arrived, limit: 1).events
        #expect(events.map(\.arrivedAt) == [arrived])
        #expect(try await fixture.box.events(after: 0, at: ServiceEngine.now, limit: 1).events.first?.arrivedAt == arrived)
        try await fixture.running { try await eventually { try await fixture.box.eventNumbers().isEmpty } }
        #expect(calls.withLock { $0 } == 0)
    }

    @Test func `a cancellation ends a reply whose files are being sent`() async throws {
        let fixture = try await Fixture()
        let path = fixture.directory.path + "/report.pdf"
        try Data([1, 2, 3]).write(to: URL(filePath: path))
        await ServiceProvider(engine: fixture.engine).handle(Self.method) { _ in ServiceReply("x", attachments: [path]) }
        fixture.web.on("POST /v1/services/requests", 204)
        let event = try await request(fixture)
        let reply = "POST /v1/services/requests/\(Fixture.id(1))/reply"
        let files = await fixture.engine.files.attachments
        try await fixture.running {
            try await fixture.receive(event)
            try await eventually { try await fixture.box.draft(of: 1)?.uploads.count == 1 }
            #expect(!fixture.web.asked.contains(reply))
            try await fixture.receive(.cancelled(try #require(ServiceRequestID(Fixture.id(1)))))
            try await eventually { fixture.web.asked.contains(reply) }
            try await eventually { try await fixture.box.eventNumbers().isEmpty }
            try await eventually { try files.uploads().isEmpty }
        }
    }

    @Test func `a firing counts as a received entry, once`() async throws {
        let fixture = try await Fixture()
        let runner = await fixture.engine.runner
        let body = #"{"subscription":"00000000000000000000000000000001","item":"a","at":1,"notification":{"title":"t"}}"#
        let firing = try #require(SubscriptionFiring(FiredFrame(version: "v", body: Array(body.utf8))))
        for _ in 0..<2 { try await runner.perform { _, _ in [.notifySubscriptions(.fired(firing))] } }
        #expect(runner.catchUps.items == 1)
        try await fixture.receive(try await request(fixture))
        #expect(runner.catchUps.items == 2)
    }
}
