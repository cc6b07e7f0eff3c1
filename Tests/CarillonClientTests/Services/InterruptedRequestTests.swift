import CarillonWire
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import CarillonClient

/// Requests whose run ends early, and requests whose files cannot be fetched.
@Suite(.timeLimit(.minutes(1)))
struct InterruptedRequestTests {
    private struct Interruption: Error {}

    private let address = ServiceApplication(app: "com.example.files")

    private func pair() async throws -> (consumer: EngineFixture, provider: EngineFixture) {
        let consumer = try await EngineFixture()
        let provider = try await EngineFixture("com.example.files", number: 2)
        try await consumer.find(provider)
        for fixture in [consumer, provider] {
            fixture.takeRequests()
            fixture.web.takeUploads()
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
        await provider.provider.handle(EngineFixture.method) { _ in
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
        _ = try await consumer.client.send(EngineFixture.method, to: address)
        try await provider.bring(try #require(try consumer.postedRequests().first))
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

    @Test func `a request whose parameters the server does not give to its provider ends with an error`() async throws {
        let (consumer, provider) = try await pair()
        await provider.provider.handle(EngineFixture.method) { _ in ServiceReply() }
        let problem = #"{"type":"t","title":"no","status":403,"detail":"no","code":"call_forbidden"}"#
        provider.web.onFile("GET") { _ in
            FileAnswer(
                status: 403, headers: ["content-type": ProblemDocument.mediaType], body: Data(problem.utf8))
        }
        let long = ServiceValue.string(String(repeating: "x", count: 50_000))
        _ = try await consumer.client.send(EngineFixture.method, to: address, long)
        try await provider.bring(try #require(try consumer.postedRequests().first))
        let run = Task { await provider.engine.run() }
        try await eventually { try !provider.postedReplies().isEmpty }
        run.cancel()
        await run.value
    }

    @Test(arguments: [ENOSPC, EDQUOT, EIO, EROFS, EMFILE, ENFILE, ENOENT, EACCES])
    func `an error of the disk is no fault of a file`(cause: Int32) {
        let isOfFile = [ENOENT, EACCES].contains(cause)
        #expect(PushError(file: "/a", cause).code == (isOfFile ? .fileInvalid : .storageUnavailable))
    }
}
