import CarillonWire
import Crypto
import Foundation
import GRDB
import Synchronization
import TestSupport
import Testing

@testable import CarillonClient

extension ServiceEngine {
    fileprivate func expect(_ id: String, _ result: PendingResult<ServiceReply>) { outgoing.pending[id] = result }

    fileprivate func fail(within seconds: Double) async throws {
        try await storage.storing(until: { Date.now + seconds }) { () async throws -> Void in
            throw PushError(.storageUnavailable, "full")
        }
    }
}

/// Requests whose storage fails for a while.
@Suite(.timeLimit(.minutes(5)))
struct ServiceStorageTests {
    private typealias Fixture = ServiceEngineFixture

    /// Has each change of a kind fail, as a full disk does.
    private func fill(_ fixture: Fixture, _ change: String) async throws {
        try await fixture.store.inStep {
            try $0.execute(sql: "CREATE TRIGGER full BEFORE \(change) BEGIN SELECT raise(ABORT, 'full'); END")
        }
    }

    private func free(_ fixture: Fixture) async throws {
        try await fixture.store.inStep { try $0.execute(sql: "DROP TRIGGER full") }
    }

    @Test func `a result is reported when it can be stored, and the app is notified of the storage once`() async throws {
        let fixture = try await Fixture()
        let delegate = NotingServiceClientDelegate()
        fixture.client.addDelegate(delegate)
        let heard = Mutex<[String]>([])
        fixture.store.health.setListener { change in
            heard.withLock { $0.append(change == .recovered ? "recovered" : "failed") }
        }
        let id = try await fixture.ask(1)
        try await fill(fixture, "INSERT ON service_result")
        let ending = Task { [engine = fixture.engine] in await engine.finish(id, .success(ServiceReply("x")), nil) }
        try await eventually { fixture.store.health.isFailing }
        try await Task.sleep(for: .milliseconds(50))
        await fixture.engine.finish(id, .success(ServiceReply("second")), nil)
        #expect(delegate.ids.isEmpty)
        #expect(try await fixture.box.call(id) != nil, "nothing of it was lost")
        try await free(fixture)
        await ending.value
        try await eventually { delegate.ids == [id] }
        #expect(delegate.results.withLock { try? $0.first?.result.get().value } == "x")
        #expect(heard.withLock { $0 } == ["failed", "recovered"])
    }

    @Test func `a task that waits has its result though its end cannot be stored`() async throws {
        let fixture = try await Fixture()
        let id = try await fixture.ask(1)
        let result = PendingResult<ServiceReply>()
        await fixture.engine.expect(id, result)
        try await fill(fixture, "DELETE ON service_call")
        let ending = Task { [engine = fixture.engine] in await engine.finish(id, .success(ServiceReply("x")), nil) }
        #expect(try await result.value.value == "x")
        #expect(try await fixture.box.call(id) != nil)
        try await free(fixture)
        await ending.value
        #expect(try await fixture.box.call(id) == nil)
    }

    @Test func `a reply whose request cannot be read does not count as unrequested`() async throws {
        let fixture = try await Fixture()
        let delegate = NotingServiceClientDelegate()
        fixture.client.addDelegate(delegate)
        let id = try await fixture.ask(1)
        try await fixture.store.inStep { try $0.execute(sql: "ALTER TABLE service_call RENAME TO away") }
        try await fixture.running {
            let reply = ServiceEvent.reply(
                try #require(ServiceRequestID(id)), from: Fixture.other, ServiceStorageTests.content)
            try await fixture.receive(reply)
            try await eventually { fixture.store.health.isFailing }
            try await Task.sleep(for: .milliseconds(50))
            try await fixture.store.inStep { try $0.execute(sql: "ALTER TABLE away RENAME TO service_call") }
            try await eventually { delegate.ids == [id] }
        }
    }

    private static let content = SealedContent(
        keyID: "00112233445566aa",
        sender: KeyBundle(
            identity: Array(repeating: 1, count: 32), id: "00112233445566aa", key: Array(repeating: 2, count: 32),
            until: 2_000_000_000_000, signature: Array(repeating: 3, count: 64)),
        encapsulated: Array(repeating: 4, count: 32), body: [1], files: 0, fileBytes: 0)

    @Test func `events that could not be read are read when the storage works again`() async throws {
        let fixture = try await Fixture()
        let header = RequestHeader(
            id: try #require(ServiceRequestID(Fixture.id(7))), service: try #require(ServiceID("com.example.a")),
            version: try #require(ServiceVersion("1")), method: try #require(MethodName("m")), deadlineSeconds: 10)
        try await fill(fixture, "INSERT ON service_seen")
        try await fixture.running {
            try await fixture.receive(.request(header, from: Fixture.other, expiresAt: 1, Self.content))
            try await eventually { fixture.store.health.isFailing }
            #expect(try await fixture.box.eventNumbers().count == 1)
            try await free(fixture)
            // Its seal is none, so that it has no answer.
            try await eventually { try await fixture.box.eventNumbers().isEmpty }
        }
    }

    @Test func `a confirmation that could not be stored is stored later`() async throws {
        let fixture = try await Fixture()
        let id = try await fixture.ask(1)
        await fixture.engine.finish(id, .success(ServiceReply()), nil)
        try await fill(fixture, "DELETE ON service_result")
        await fixture.engine.confirm(id)
        #expect(try await fixture.box.results().count == 1)
        try await fixture.running {
            try await Task.sleep(for: .milliseconds(50))
            #expect(try await fixture.box.results().count == 1)
            try await free(fixture)
            try await eventually { try await fixture.box.results().isEmpty }
        }
    }

    @Test func `a result that the app has is not reported again while its deletion waits for the storage`() async throws {
        let fixture = try await Fixture()
        let delegate = NotingServiceClientDelegate()
        fixture.client.addDelegate(delegate)
        let (told, awaited) = (try await fixture.ask(1), try await fixture.ask(2))
        let result = PendingResult<ServiceReply>()
        await fixture.engine.expect(awaited, result)
        try await fixture.store.inStep { database in
            for (name, table, column) in [("a", "service_result", ""), ("b", "service_call", "WHEN OLD.id = '\(awaited)'")] {
                try database.execute(
                    sql: "CREATE TRIGGER \(name) BEFORE DELETE ON \(table) \(column) BEGIN SELECT raise(ABORT, 'full'); END")
            }
        }
        try await fixture.running {
            for id in [told, awaited] {
                try await fixture.receive(.failed(try #require(ServiceRequestID(id)), code: "x"))
            }
            try await eventually { delegate.ids == [told] }
            let error = await #expect(throws: ServiceError.self) { _ = try await result.value }
            #expect(error?.code.name == "x")
        }
        try await eventually { delegate.ids == [told, awaited] }
        try await fixture.running { try await Task.sleep(for: .milliseconds(100)) }
        #expect(try await fixture.box.results().map(\.id) == [told])
        try await fixture.store.inStep { try $0.execute(sql: "DROP TRIGGER a; DROP TRIGGER b") }
        try await fixture.running {
            try await eventually { try await fixture.box.eventNumbers().isEmpty }
            try await eventually { try await fixture.box.results().isEmpty }
        }
        try await Task.sleep(for: .milliseconds(50))
        #expect(delegate.ids == [told, awaited])
    }

    @Test func `a result that cannot be stored until its last moment ends with the reason, once`() async throws {
        let logs = LogCatcher()
        let fixture = try await Fixture(logger: logs.logger)
        let delegate = NotingServiceClientDelegate()
        fixture.client.addDelegate(delegate)
        let message = fixture.directory.path + "/Inbox/a/1"
        try FileManager.default.createDirectory(atPath: message, withIntermediateDirectories: true)
        try Data([1]).write(to: URL(filePath: message + "/f"))
        var call = Fixture.call(Fixture.id(1))
        call.until = ServiceEngine.now + 4000
        try await fixture.box.save(call, body: [1], claiming: [], keptUntil: ServiceEngine.now + 1_000_000)
        try await fill(fixture, "INSERT ON service_result")
        await fixture.engine.finish(call.id, .success(ServiceReply("x", attachments: [message + "/f"])), nil)
        let id = call.id
        try await eventually { delegate.ids == [id] }
        guard case .failure(let error)? = delegate.results.withLock({ $0.first?.result }) else {
            Issue.record("no error")
            return
        }
        #expect(error.code == .storageUnavailable)
        #expect(!FileManager.default.fileExists(atPath: message))
        #expect(logs.lines.contains { $0.hasPrefix("error cannot store result; request ends id=\(id) ") })
        #expect(try await fixture.box.call(call.id) == nil)
        try await free(fixture)
        await fixture.engine.finish(call.id, .success(ServiceReply("second")), nil)
        #expect(try await fixture.box.results().isEmpty)
        #expect(delegate.ids == [call.id])
    }

    @Test func `an unstorable result while the app names another user is reported if the server refuses that user`()
        async throws
    {
        let fixture = try await Fixture()
        let delegate = NotingServiceClientDelegate()
        fixture.client.addDelegate(delegate)
        try await fixture.become("ada")
        try await eventually { await fixture.engine.owner.user == "ada" }
        let runner = await fixture.engine.runner
        let bob = UserChange.signedIn("bob")
        try await runner.perform { session, context in session.userSet(bob, at: context.now) }
        let id = try await fixture.ask(1)
        try await fill(fixture, "INSERT ON service_result")
        let failure = ServiceError(.storageUnavailable, "full")
        await fixture.engine.finish(id, .failure(failure), nil)
        #expect(try await fixture.box.call(id) == nil)
        #expect(delegate.ids.isEmpty)
        try await fixture.running {
            try await runner.perform { session, context in
                guard let identity = session.registration.identity else { return [] }
                return session.userRefused(bob, of: identity, PushError(.userRefused, "no"), at: context.now)
            }
            try await eventually { delegate.ids == [id] }
        }
        try await eventually { await fixture.engine.results.unstored.isEmpty }
        try await fixture.running { try await Task.sleep(for: .milliseconds(50)) }
        #expect(delegate.ids == [id])
    }

    @Test func `a result that could not be stored and that no delegate received is reported in the next run`() async throws {
        let fixture = try await Fixture()
        let id = try await fixture.ask(1)
        try await fill(fixture, "INSERT ON service_result")
        let failure = ServiceError(.storageUnavailable, "full")
        await fixture.engine.finish(id, .failure(failure), nil)
        let delegate = NotingServiceClientDelegate()
        fixture.client.addDelegate(delegate)
        try await fixture.running { try await eventually { delegate.ids == [id] } }
    }

    @Test func `an upload that a request names and that fails is not confirmed, and other uploads are cancelled`()
        async throws
    {
        let logs = LogCatcher()
        let fixture = try await Fixture(logger: logs.logger)
        let files = await fixture.engine.files.attachments
        let problem = #"{"type":"t","title":"no","status":403,"detail":"no","code":"call_forbidden"}"#
        fixture.web.onFile("POST") { _ in
            WebAnswer(status: 403, headers: ["content-type": ProblemDocument.mediaType], body: Data(problem.utf8))
        }
        let named = try await files.upload(try fixture.file("a"), for: [.device(Fixture.other.device)])
        let abandoned = try await files.upload(try fixture.file("b"), for: [.device(Fixture.other.device)])
        for upload in [named, abandoned] { await #expect(throws: PushError.self) { _ = try await upload.value } }
        let call = Fixture.call(Fixture.id(1))
        try await fixture.box.save(call, body: [1], claiming: [named.id, "gone"], keptUntil: ServiceEngine.now + 1_000_000)
        await fixture.engine.files.clear()
        #expect(try await fixture.box.claims() == [named.id])
        try await eventually { await fixture.engine.files.isRemoving == false }
        #expect(try files.uploads().map(\.id) == [named.id])
        let warnings = logs.warnings.filter { $0.hasPrefix("warning cannot confirm upload; retrying at the next start ") }
        #expect(warnings.count == 1 && warnings.allSatisfy { $0.hasSuffix(" upload=\(named.id)") })
    }

    @Test func `an end of a request that cannot be stored does not delay later ones`() async throws {
        let fixture = try await Fixture()
        let (first, second) = (try await fixture.ask(1), try await fixture.ask(2))
        try await fill(fixture, "INSERT ON service_result")
        try await fixture.running {
            try await fixture.receive(.failed(try #require(ServiceRequestID(first)), code: "x"))
            try await fixture.receive(.received(try #require(ServiceRequestID(second))))
            try await eventually { try await fixture.box.call(second)?.isReceived == true }
            #expect(try await fixture.box.call(first) != nil)
            try await free(fixture)
            try await eventually { try await fixture.box.call(first) == nil }
        }
    }

    @Test func `a reply without its request leaves no file`() async throws {
        let fixture = try await Fixture()
        let message = fixture.directory.path + "/Inbox/a/1"
        try FileManager.default.createDirectory(atPath: message, withIntermediateDirectories: true)
        try Data([1]).write(to: URL(filePath: message + "/f"))
        try await fixture.receive(
            .reply(try #require(ServiceRequestID(Fixture.id(1))), from: Fixture.other, Self.content))
        try await fixture.box.setDirectory("in:Inbox/a/1", of: 1)
        try await fixture.running { try await eventually { try await fixture.box.eventNumbers().isEmpty } }
        #expect(!FileManager.default.fileExists(atPath: message))
    }

    @Test func `work that cannot be stored until its moment ends with the reason`() async throws {
        let fixture = try await Fixture()
        do {
            try await fixture.engine.fail(within: 0.05)
            Issue.record("nothing was thrown")
        } catch let error as ServiceError {
            #expect(error == ServiceError(.storageUnavailable, "full"))
        }
        #expect(fixture.store.health.isFailing, "there is no sign of free space")
        fixture.store.health.fileWritten()
        #expect(ServiceError(PushError(.storageUnavailable, "full")).code == .storageUnavailable)
        let waiting = Task { [engine = fixture.engine] in try await engine.fail(within: 1000) }
        try await eventually { fixture.store.health.isFailing }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        #expect(fixture.store.health.isFailing)
    }

    @Test func `a call that waits for the storage ends at its deadline with the reason`() async throws {
        let consumer = try await ServiceEngineFixture()
        let provider = try await ServiceEngineFixture(Fixture.other.app, number: 2)
        try await consumer.find(provider)
        consumer.takeRequests()
        let box = await consumer.engine.box
        try await box.store.inStep {
            try $0.execute(sql: "CREATE TRIGGER full BEFORE INSERT ON service_call BEGIN SELECT raise(ABORT, 'full'); END")
        }
        let begun = ContinuousClock.now
        let error = await #expect(throws: ServiceError.self) {
            _ = try await consumer.client.call(
                ServiceEngineFixture.method, of: .init(app: Fixture.other.app), deadline: .seconds(12))
        }
        let lasted = begun.duration(to: .now)
        #expect(error?.code == .storageUnavailable)
        #expect(lasted >= .seconds(12), "\(lasted)")
        try await eventually { await consumer.engine.outgoing.waitingForStorage.isEmpty }
        #expect(consumer.web.bodies("POST /v1/services/requests").isEmpty)
    }

    @Test func `a call whose storage works again ends at its deadline with another reason`() async throws {
        let consumer = try await ServiceEngineFixture()
        let provider = try await ServiceEngineFixture(Fixture.other.app, number: 2)
        try await consumer.find(provider)
        consumer.takeRequests()
        // The server does not answer before the call ends.
        consumer.web.on("POST /v1/services/requests") { _ in
            try? await Task.sleep(for: .seconds(3600))
            return nil
        }
        let store = await consumer.engine.box.store
        try await store.inStep {
            try $0.execute(sql: "CREATE TRIGGER full BEFORE INSERT ON service_call BEGIN SELECT raise(ABORT, 'full'); END")
        }
        let calling = Task {
            try await consumer.client.call(
                ServiceEngineFixture.method, of: .init(app: Fixture.other.app), deadline: .seconds(12))
        }
        try await eventually { store.health.isFailing }
        try await store.inStep { try $0.execute(sql: "DROP TRIGGER full") }
        try await eventually { !consumer.web.bodies("POST /v1/services/requests").isEmpty }
        let error = await #expect(throws: ServiceError.self) { _ = try await calling.value }
        #expect(error?.code == .deadlineExceeded)
    }

    @Test func `a reply that cannot be stored is abandoned at the deadline, and a late one after a minute`() async throws {
        let fixture = try await Fixture()
        func moment(_ left: Int64?) async -> Double {
            var call = Fixture.call(Fixture.id(1))
            call.until = left.map { ServiceEngine.now + $0 }
            return await fixture.engine.lastMoment(of: call).timeIntervalSinceNow
        }
        let inTime = await moment(300_000)
        #expect((250...300).contains(inTime))
        let late = await moment(-300_000)
        #expect((10...60).contains(late))
        let earlier = await moment(nil)
        #expect((10...60).contains(earlier), "an earlier version stored no end")
    }

    @Test func `a request that cannot be stored ends at its deadline, and the provider receives the reason`() async throws {
        let fixture = try await Fixture()
        let header = RequestHeader(
            id: try #require(ServiceRequestID(Fixture.id(7))), service: try #require(ServiceID("com.example.a")),
            version: try #require(ServiceVersion("1")), method: try #require(MethodName("m")), deadlineSeconds: 5)
        var content = Self.content
        content.sender = try KeyBundle(
            Curve25519.KeyAgreement.PrivateKey(), named: "0011223344556677", until: ServiceEngine.now + 1_000_000,
            device: Fixture.other.device, by: Curve25519.Signing.PrivateKey())
        let request = ServiceEvent.request(header, from: Fixture.other, expiresAt: 1, content)
        try await fill(fixture, "INSERT ON service_peer")
        let events = await fixture.engine.providerListeners.subscribe()
        try await fixture.running {
            try await fixture.receive(request)
            for await event in events {
                guard case .requestFailed(let application, let error, let id) = event else { continue }
                #expect(application == ServiceApplication(Fixture.other) && id == Fixture.id(7))
                #expect(error.code == .storageUnavailable)
                break
            }
            try await eventually { try await fixture.box.eventNumbers().isEmpty }
        }
    }
}
