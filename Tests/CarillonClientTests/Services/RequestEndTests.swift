import CarillonWire
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import CarillonClient

/// The end of a request: one result, and nothing left of its deadline.
@Suite(.timeLimit(.minutes(1)))
struct RequestEndTests {
    private typealias Fixture = ServiceEngineFixture

    private func deadline(_ fixture: Fixture, of id: String, in milliseconds: Int64) async throws {
        try await fixture.box.sentLocally(id, until: ServiceEngine.now + milliseconds)
        await fixture.engine.keepTimes()
        #expect(await fixture.engine.localTimes.count == 1)
    }

    @Test func `a result ends the timer and the stored deadline of a request of this machine`() async throws {
        let fixture = try await Fixture()
        let delegate = NotingServiceClientDelegate()
        fixture.client.addDelegate(delegate)
        let id = try await fixture.ask(1)
        try await deadline(fixture, of: id, in: 200)
        await fixture.engine.finish(id, .success(ServiceReply("first")), nil)
        #expect(await fixture.engine.localTimes.isEmpty)
        #expect(try await fixture.box.localCalls().isEmpty)
        try await eventually { delegate.ids == [id] }
        try await Task.sleep(for: .milliseconds(300))
        try await fixture.running { try await Task.sleep(for: .milliseconds(50)) }
        #expect(delegate.ids == [id], "one result, in the next run, too")
    }

    @Test func `a request of this machine without a result ends at its deadline, once`() async throws {
        let fixture = try await Fixture()
        let delegate = NotingServiceClientDelegate()
        fixture.client.addDelegate(delegate)
        let id = try await fixture.ask(1)
        try await deadline(fixture, of: id, in: 20)
        try await eventually { delegate.ids == [id] }
        guard case .failure(let error)? = delegate.results.withLock({ $0.first?.result }) else {
            Issue.record("no error")
            return
        }
        #expect(error.code == .deadlineExceeded)
        await fixture.engine.finish(id, .success(ServiceReply("late")), nil)
        await fixture.engine.keepTimes()
        #expect(await fixture.engine.localTimes.isEmpty)
        #expect(delegate.ids == [id])
    }

    @Test func `a second result is dropped, with its files, whichever way it came`() async throws {
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
        try await deadline(fixture, of: id, in: 200)
        await fixture.engine.finish(try await fixture.ask(2), .success(ServiceReply("of the first user")), nil)
        try await fixture.become("bob")
        try await eventually { await fixture.engine.localTimes.isEmpty }
        let reading = Task { [client = fixture.client] in
            var replies = client.replies.makeAsyncIterator()
            return await replies.next()?.id
        }
        try await Task.sleep(for: .milliseconds(300))
        reading.cancel()
        #expect(await reading.value == nil)
        #expect(try await fixture.box.results().isEmpty)
    }
}
