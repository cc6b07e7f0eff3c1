import Logging

/// Runs the steps of a sweeper. A failed step is logged, and does not stop other steps.
struct SweepReport: Sendable {
    let logger: Logger
    /// The pause between two runs of a repeated step.
    let seconds: Int

    func callAsFunction(_ step: String, _ work: () async throws -> Void) async {
        do {
            try await work()
        } catch {
            logger.error(
                "a step of the sweep failed; retrying at the next sweep", metadata: ["of": "\(step)", "reason": "\(error)"])
        }
    }

    /// Returns the time between two runs of steps with a pause of their own, in seconds.
    func wait(_ pause: Int) -> Duration { .seconds(max(seconds, pause)) }

    /// Runs steps until the task is cancelled, with a pause after each run.
    ///
    /// - Parameter pause: The shortest pause, in seconds.
    func repeating(pause: Int = 0, _ steps: () async -> Void) async {
        while !Task.isCancelled {
            await steps()
            try? await Task.sleep(for: wait(pause))
        }
    }

    /// Runs a step until the task is cancelled, with a pause after each run.
    func repeating(_ step: String, pause: Int = 0, _ work: () async throws -> Void) async {
        await repeating(pause: pause) { await self(step, work) }
    }
}
