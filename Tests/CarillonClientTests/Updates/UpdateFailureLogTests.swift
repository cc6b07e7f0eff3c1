import TestSupport
import Testing

@testable import CarillonClient

/// The log of failures to fetch updates.
struct UpdateFailureLogTests {
    @Test func `the first failure and each with another reason is a warning`() async throws {
        let fixture = try await ProcessingFixture()
        let lines = LogCatcher()
        let worker = UpdateWorker(
            .init(content: fixture.content, presenter: fixture.presenter, custom: [:]), inbox: fixture.inbox,
            settings: .init(failsConflicts: false), logger: lines.logger, now: { 0 }
        ) {}
        for _ in 0..<3 { await worker.failed(UpdateFailure(.unreachable, "Cannot connect to http://h: name not found.")) }
        #expect(
            lines.warnings == [
                "warning updates cannot be fetched; retrying reason=Cannot connect to http://h: name not found."
            ])
        #expect(fixture.presenter.seen.failures.map(\.kind) == [.unreachable])
        for _ in 0..<2 {
            await worker.failed(UpdateFailure(.unreachable, "Cannot connect to http://h: connection refused."))
        }
        #expect(lines.warnings.count == 2 && lines.warnings.last?.contains("connection refused") == true)
        #expect(fixture.presenter.seen.failures.count == 1, "it is the same for the user")
        await worker.failed(UpdateFailure(.refused, "The server h does not let this device in."))
        #expect(lines.warnings.count == 3)
        #expect(fixture.presenter.seen.failures.map(\.kind) == [.unreachable, .refused])
    }
}
