import Logging

/// Runs the steps of a sweeper. A failed step is logged, and does not stop other steps.
struct SweepReport: Sendable {
    let logger: Logger

    func callAsFunction(_ step: String, _ work: () async throws -> Void) async {
        do {
            try await work()
        } catch {
            logger.error("sweep failed", metadata: ["of": "\(step)", "reason": "\(error)"])
        }
    }
}
