import Testing

@testable import CarillonClient

/// What is logged when updates cannot be fetched.
struct UpdateFailureLogTests {
    @Test func `the first failure and each of another kind is a warning`() async throws {
        let fixture = try await ProcessingFixture()
        let lines = RecordedLog.Lines()
        let worker = UpdateWorker(
            .init(content: fixture.content, presenter: fixture.presenter, custom: [:]), inbox: fixture.inbox,
            settings: .init(failsConflicts: false), logger: lines.logger, now: { 0 }
        ) {}
        for _ in 0..<3 { await worker.failed(UpdateFailure(.unreachable, "Cannot connect to http://h: name not found.")) }
        #expect(
            lines.warnings == [
                "warning updates cannot be fetched; retrying reason=Cannot connect to http://h: name not found."
            ])
        await worker.failed(UpdateFailure(.refused, "The server h does not let this device in."))
        #expect(lines.warnings.count == 2)
    }
}
