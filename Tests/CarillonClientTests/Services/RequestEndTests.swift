import CarillonWire
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import CarillonClient

/// The end of a request: one result, and nothing left of its deadline.
@Suite(.timeLimit(.minutes(5)))
struct RequestEndTests {
    private typealias Fixture = ServiceEngineFixture

    private func deadline(_ fixture: Fixture, of id: String, in milliseconds: Int64) async throws {
        try await fixture.box.sentLocally(id, until: ServiceEngine.now + milliseconds)
        await fixture.engine.startDeadlines()
        #expect(await fixture.engine.outgoing.timers.count == 1)
    }

    @Test func `a result ends the timer and the stored deadline of a request of this machine`() async throws {
        let fixture = try await Fixture()
        let delegate = NotingServiceClientDelegate()
        fixture.client.addDelegate(delegate)
        let id = try await fixture.ask(1)
        try await deadline(fixture, of: id, in: 12_000)
        await fixture.engine.finish(id, .success(ServiceReply("first")), nil)
        #expect(await fixture.engine.outgoing.timers.isEmpty)
        #expect(try await fixture.box.localCalls().isEmpty)
        try await eventually { delegate.ids == [id] }
        try await Task.sleep(for: .milliseconds(12_200))
        try await fixture.running { try await Task.sleep(for: .milliseconds(50)) }
        #expect(delegate.ids == [id], "one result, in the next run, too")
    }

    @Test func `a request of this machine without a result ends at its deadline, once`() async throws {
        let fixture = try await Fixture()
        let delegate = NotingServiceClientDelegate()
        fixture.client.addDelegate(delegate)
        let id = try await fixture.ask(1)
        try await deadline(fixture, of: id, in: 12_000)
        try await eventually { delegate.ids == [id] }
        guard case .failure(let error)? = delegate.results.withLock({ $0.first?.result }) else {
            Issue.record("no error")
            return
        }
        #expect(error.code == .deadlineExceeded)
        await fixture.engine.finish(id, .success(ServiceReply("late")), nil)
        await fixture.engine.startDeadlines()
        #expect(await fixture.engine.outgoing.timers.isEmpty)
        #expect(delegate.ids == [id])
    }

    /// A reply whose seal is invalid.
    private func reply(to id: String, from peer: ServicePeer = Fixture.other) throws -> ServiceEvent {
        let sender = KeyBundle(
            identity: Array(repeating: 1, count: 32), id: "00112233445566aa", key: Array(repeating: 2, count: 32),
            until: 2_000_000_000_000, signature: Array(repeating: 3, count: 64))
        return .reply(
            try #require(ServiceRequestID(id)), from: peer,
            SealedContent(
                keyID: "00112233445566aa", sender: sender, encapsulated: Array(repeating: 4, count: 32), body: [1], files: 0,
                fileBytes: 0))
    }

    @Test func `a request with a stored reply does not end at its deadline, also not in the next run`() async throws {
        let fixture = try await Fixture()
        let delegate = NotingServiceClientDelegate()
        fixture.client.addDelegate(delegate)
        let (id, other) = (try await fixture.ask(1), try await fixture.ask(2))
        try await deadline(fixture, of: id, in: 12_000)
        try await fixture.box.sentLocally(other, until: ServiceEngine.now + 12_000)
        // The run that receives the reply begins later.
        try await fixture.receive(try reply(to: id))
        let third = ServicePeer(app: Fixture.other.app, device: String(repeating: "3", count: 32))
        try await fixture.receive(try reply(to: other, from: third))
        try await Task.sleep(for: .milliseconds(12_300))
        #expect(try await fixture.box.call(id) != nil)
        await fixture.engine.startDeadlines()
        #expect(await fixture.engine.outgoing.timers[id] == nil)
        // A message of a third device does not end the time of the provider.
        try await eventually { delegate.ids == [other] }
        #expect(try await fixture.box.call(id) != nil)
    }

    @Test func `the end of a run ends the timers of its requests, and the next run keeps their times`() async throws {
        let fixture = try await Fixture()
        let delegate = NotingServiceClientDelegate()
        fixture.client.addDelegate(delegate)
        let id = try await fixture.ask(1)
        try await fixture.box.sentLocally(id, until: ServiceEngine.now + 12_000)
        try await fixture.running { try await eventually { await fixture.engine.outgoing.timers.count == 1 } }
        #expect(await fixture.engine.outgoing.timers.isEmpty)
        try await Task.sleep(for: .milliseconds(12_200))
        #expect(delegate.ids.isEmpty, "a stopped client notifies no delegate")
        try await fixture.running { try await eventually { delegate.ids == [id] } }
    }

    @Test func `removals that the server does not answer, and timers, do not keep the engine`() async throws {
        weak var engine: ServiceEngine?
        let web: ScriptedWeb
        do {
            let fixture = try await ServiceEngineFixture()
            web = fixture.web
            engine = fixture.engine
            await fixture.engine.files.removeAttachments(["1", "2"])
            await fixture.engine.startDeadline(of: Fixture.id(1), until: ServiceEngine.now + 3_600_000)
            await fixture.engine.withdraw(Fixture.call(Fixture.id(2)))
            try await eventually { web.asked.contains { $0.hasPrefix("DELETE /v1/services/requests/") } }
            #expect(web.asked.contains("DELETE /v1/attachments/1"))
        }
        for _ in 0..<5000 where engine != nil { try await Task.sleep(for: .milliseconds(10)) }
        #expect(engine == nil)
        // The removals have ended: removals that continue send a request every 20 milliseconds.
        try await eventually {
            let count = web.asked.count
            try await Task.sleep(for: .milliseconds(200))
            return web.asked.count == count
        }
    }

    @Test func `a second result is dropped, with its files, for each way of delivery`() async throws {
        let fixture = try await Fixture()
        let id = try await fixture.ask(1)
        let message = fixture.directory.path + "/Inbox/a/2"
        try FileManager.default.createDirectory(atPath: message, withIntermediateDirectories: true)
        try Data([1]).write(to: URL(filePath: message + "/f"))
        await fixture.engine.finish(id, .success(ServiceReply("first")), nil)
        await fixture.engine.finish(id, .success(ServiceReply("second", attachments: [message + "/f"])), nil)
        #expect(!FileManager.default.fileExists(atPath: message))
        try await fixture.running {
            try await fixture.receive(.failed(try #require(ServiceRequestID(id)), code: "deadline_exceeded"))
            try await eventually { try await fixture.box.eventNumbers().isEmpty }
        }
        let results = try await fixture.box.results().map { kept in kept.result { $0 } }
        #expect(results == [.success(ServiceReply("first"))])
    }

    @Test func `a result of the user before is not read by the next one`() async throws {
        let fixture = try await Fixture()
        try await fixture.become("ada")
        try await eventually { await fixture.engine.owner.user == "ada" }
        let id = try await fixture.ask(1)
        try await deadline(fixture, of: id, in: 12_000)
        await fixture.engine.finish(try await fixture.ask(2), .success(ServiceReply("of the first user")), nil)
        try await fixture.become("bob")
        try await eventually { await fixture.engine.outgoing.timers.isEmpty }
        let reading = Task { [client = fixture.client] in
            var replies = client.replies.makeAsyncIterator()
            return await replies.next()?.id
        }
        try await Task.sleep(for: .milliseconds(12_200))
        reading.cancel()
        #expect(await reading.value == nil)
        #expect(try await fixture.box.results().isEmpty)
    }
}
