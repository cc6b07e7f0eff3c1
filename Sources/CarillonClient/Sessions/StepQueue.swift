import GRDB
import Synchronization

/// The steps that wait for the store, in order, and are taken from it in groups that share one wait for the disk.
final class StepQueue: Sendable {
    struct Step: Sendable {
        let change: SessionRunner.Change
        /// Whether what the step does must survive the loss of power before it can be seen.
        let mustReachDisk: Bool
        let done: @Sendable (Result<Void, PushError>) -> Void
    }

    /// The most steps that share a transaction.
    static let groupLimit = 128

    private struct State {
        var waiting: [Step] = []
        var isScheduled = false
    }

    private let state = Mutex(State())

    /// Answers whether somebody must come and take the group.
    func append(_ step: Step) -> Bool {
        state.withLock { state in
            state.waiting.append(step)
            defer { state.isScheduled = true }
            return !state.isScheduled
        }
    }

    /// The steps that are next, and whether somebody must come again.
    func takeGroup() -> (steps: [Step], isMoreWaiting: Bool) {
        state.withLock { state in
            let steps = Array(state.waiting.prefix(Self.groupLimit))
            state.waiting.removeFirst(steps.count)
            state.isScheduled = !state.waiting.isEmpty
            return (steps, state.isScheduled)
        }
    }
}
