import GRDB
import Synchronization

/// The steps that wait for the store, in order. The store takes them in groups that share one transaction.
final class StepQueue: Sendable {
    struct Step: Sendable {
        let change: SessionRunner.Change
        /// Whether the changes of the step must survive a power failure before its actions are performed.
        let mustReachDisk: Bool
        let done: @Sendable (Result<Void, PushError>) -> Void
    }

    /// The largest number of steps that share a transaction.
    static let groupLimit = 128

    private struct State {
        var waiting: [Step] = []
        var isScheduled = false
    }

    private let state = Mutex(State())

    /// Adds a step. Returns whether the caller must schedule ``takeGroup()``.
    func append(_ step: Step) -> Bool {
        state.withLock { state in
            state.waiting.append(step)
            defer { state.isScheduled = true }
            return !state.isScheduled
        }
    }

    /// Removes and returns the next group, and whether the caller must schedule another call.
    func takeGroup() -> (steps: [Step], isMoreWaiting: Bool) {
        state.withLock { state in
            let steps = Array(state.waiting.prefix(Self.groupLimit))
            state.waiting.removeFirst(steps.count)
            state.isScheduled = !state.waiting.isEmpty
            return (steps, state.isScheduled)
        }
    }
}
