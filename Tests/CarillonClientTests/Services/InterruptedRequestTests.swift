import CarillonWire
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import CarillonClient

/// Requests whose run ends early, and requests whose files cannot be fetched.
@Suite(.timeLimit(.minutes(5)))
struct InterruptedRequestTests {
    private struct Interruption: Error {}

    private let address = ServiceApplication(app: "com.example.files")

    private func pair() async throws -> (consumer: ServiceEngineFixture, provider: ServiceEngineFixture) {
        let consumer = try await ServiceEngineFixture()
        let provider = try await ServiceEngineFixture("com.example.files", number: 2)
        try await consumer.find(provider)
        for fixture in [consumer, provider] {
            fixture.takeRequests()
            fixture.web.takeUploads(named: String(repeating: "a", count: 35))
        }
        return (consumer, provider)
    }

    /// A handler can replace the cancellation with an error of its own.
    @Test(arguments: [false, true])
    func `a handler that the end of the run cancels runs again in the next run, whatever the handler throws`(
        throwsServiceError: Bool
    ) async throws {
        let (consumer, provider) = try await pair()
        let calls = Mutex(0)
        await provider.provider.handle(ServiceEngineFixture.method) { _ in
            let isFirst = calls.withLock { count in
                count += 1
                return count == 1
            }
            guard isFirst else { return ServiceReply("done") }
            do {
                try await Task.sleep(for: .seconds(3600))
            } catch {
                if throwsServiceError { throw ServiceError(number: 7, "the download was cancelled") }
                throw Interruption()
            }
            return ServiceReply("not cancelled")
        }
        _ = try await consumer.client.send(ServiceEngineFixture.method, to: address)
        try await provider.receive(try #require(try consumer.postedRequests().first))
        let first = Task { await provider.engine.run() }
        try await eventually { calls.withLock { $0 } == 1 }
        first.cancel()
        await first.value
        // A reply that the run stored in a task of its own is stored by then.
        try await Task.sleep(for: .milliseconds(50))
        let second = Task { await provider.engine.run() }
        try await eventually { try !provider.postedReplies().isEmpty }
        #expect(calls.withLock { $0 } == 2)
        second.cancel()
        await second.value
    }

    @Test func `a request whose parameters the server does not deliver to its provider ends with an error`() async throws {
        let (consumer, provider) = try await pair()
        await provider.provider.handle(ServiceEngineFixture.method) { _ in ServiceReply() }
        let problem = #"{"type":"t","title":"no","status":403,"detail":"no","code":"call_forbidden"}"#
        provider.web.onFile("GET") { _ in
            WebAnswer(
                status: 403, headers: ["content-type": ProblemDocument.mediaType], body: Data(problem.utf8))
        }
        let long = ServiceValue.string(String(repeating: "x", count: 50_000))
        _ = try await consumer.client.send(ServiceEngineFixture.method, to: address, long)
        try await provider.receive(try #require(try consumer.postedRequests().first))
        let run = Task { await provider.engine.run() }
        try await eventually { try !provider.postedReplies().isEmpty }
        run.cancel()
        await run.value
    }

    @Test func `a call returns its result though the server's answer to the request is lost`() async throws {
        let (consumer, provider) = try await pair()
        await provider.provider.handle(ServiceEngineFixture.method) { _ in ServiceReply("done") }
        // The server has the request, and none of its answers arrives.
        consumer.web.on("POST /v1/services/requests") { _ in nil }
        let runs = [consumer, provider].map { fixture in Task { await fixture.engine.run() } }
        let calling = Task {
            try await consumer.client.call(ServiceEngineFixture.method, of: address, deadline: .seconds(60))
        }
        try await eventually { try !consumer.postedRequests().isEmpty }
        try await provider.receive(try #require(try consumer.postedRequests().first))
        try await eventually { try !provider.postedReplies().isEmpty }
        try await consumer.receive(try #require(try provider.postedReplies().first))
        #expect(try await calling.value.value == "done")
        try await eventually { await consumer.engine.outgoing.underWay.isEmpty }
        let count = try consumer.postedRequests().count
        try await Task.sleep(for: .milliseconds(100))
        #expect(try consumer.postedRequests().count == count, "the request is not posted again")
        for run in runs {
            run.cancel()
            await run.value
        }
    }

    // MARK: Files of replies

    /// The files that were received.
    private func inbox(_ fixture: ServiceEngineFixture) -> [String] {
        let root = fixture.engine.inbox.root
        let paths = (try? FileManager.default.subpathsOfDirectory(atPath: root)) ?? []
        return paths.filter { path in
            var isDirectory: ObjCBool = false
            let isThere = FileManager.default.fileExists(atPath: root + "/" + path, isDirectory: &isDirectory)
            return isThere && !isDirectory.boolValue
        }
    }

    /// Has a consumer send a request, and its provider reply with a file.
    private func replyWithFile(_ consumer: ServiceEngineFixture, _ provider: ServiceEngineFixture, deadline: Duration)
        async throws
    {
        let path = try provider.file("a.txt")
        await provider.provider.handle(ServiceEngineFixture.method) { _ in ServiceReply("done", attachments: [path]) }
        _ = try await consumer.client.send(ServiceEngineFixture.method, to: address, deadline: deadline)
        try await provider.receive(try #require(try consumer.postedRequests().first))
        let run = Task { await provider.engine.run() }
        try await eventually { try !provider.postedReplies().isEmpty }
        run.cancel()
        await run.value
        consumer.web.giveFiles(of: provider.web)
        try await consumer.receive(try #require(try provider.postedReplies().first))
    }

    @Test func `the files of a reply that the server refuses are removed from the server`() async throws {
        let (consumer, provider) = try await pair()
        let path = try provider.file("a.txt")
        await provider.provider.handle(ServiceEngineFixture.method) { _ in ServiceReply("done", attachments: [path]) }
        try provider.web.refuse("POST /v1/services/requests/", .requestFinished)
        _ = try await consumer.client.send(ServiceEngineFixture.method, to: address)
        try await provider.receive(try #require(try consumer.postedRequests().first))
        let run = Task { await provider.engine.run() }
        let attachment = String(repeating: "a", count: 35) + "1"
        try await eventually { provider.web.asked.contains("DELETE /v1/attachments/\(attachment)") }
        #expect(try provider.postedReplies().count == 1)
        run.cancel()
        await run.value
    }

    @Test func `the size of a result includes its files`() async throws {
        let (consumer, provider) = try await pair()
        try await replyWithFile(consumer, provider, deadline: .seconds(50))
        let events = consumer.client.events
        let run = Task { await consumer.engine.run() }
        guard case .success? = await result(events) else {
            Issue.record("no result")
            return
        }
        let box = await consumer.engine.box
        let kept = try #require(try await box.results().first)
        #expect(kept.bytes == Int64(kept.payload.count) + 100)
        run.cancel()
        await run.value
    }

    private func result(_ events: AsyncStream<ServiceClientEvent>) async -> Result<ServiceReply, ServiceError>? {
        for await event in events {
            if case .didReceive(_, let result, _) = event { return result }
        }
        return nil
    }

    @Test(arguments: [false, true])
    func `a reply that does not fit its definition leaves no file`(isDefined: Bool) async throws {
        let (consumer, provider) = try await pair()
        try await replyWithFile(consumer, provider, deadline: .seconds(50))
        if isDefined {
            let definition = ServiceDefinition(
                service: ServiceEngineFixture.method.service, version: ServiceEngineFixture.method.version, title: "x",
                description: "x",
                methods: [
                    ServiceEngineFixture.method.name: .init(
                        description: "x", parameters: .any, reply: .any, attachments: 0...0, replyAttachments: 0...0,
                        errors: [:])
                ])
            await consumer.client.use(definition)
        }
        let events = consumer.client.events
        let run = Task { await consumer.engine.run() }
        let result = await result(events)
        let files = inbox(consumer)
        switch result {
        case .success(let reply)?: #expect(!isDefined && reply.attachments.count == 1 && files.count == 1)
        case .failure(let error)?: #expect(isDefined && error.code == .serviceParametersInvalid && files.isEmpty)
        case nil: Issue.record("no result")
        }
        run.cancel()
        await run.value
    }

    @Test func `a reply whose files cannot be stored until the deadline ends with the reason, and leaves no file`()
        async throws
    {
        let (consumer, provider) = try await pair()
        try await replyWithFile(consumer, provider, deadline: .seconds(12))
        consumer.web.onFile("GET") { _ in throw PushError(.storageUnavailable, "full") }
        let events = consumer.client.events
        let run = Task { await consumer.engine.run() }
        guard case .failure(let error)? = await result(events) else {
            Issue.record("no error")
            return
        }
        #expect(error.code == .storageUnavailable)
        #expect(inbox(consumer).isEmpty)
        run.cancel()
        await run.value
    }

    @Test(arguments: [ENOSPC, EDQUOT, EIO, EROFS, EMFILE, ENFILE, ENOENT, EACCES])
    func `an error of the disk is no fault of a file`(cause: Int32) {
        let isOfFile = [ENOENT, EACCES].contains(cause)
        #expect(PushError(file: "/a", cause).code == (isOfFile ? .fileInvalid : .storageUnavailable))
    }
}
