import Synchronization

/// A signal between threads. Sending a signal while an earlier one is pending has no effect.
package final class Signal: Sendable {
    private struct State {
        var isSignalled = false
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    package init() {}

    package func send() {
        let waiter = state.withLock { state in
            if state.waiter == nil { state.isSignalled = true }
            return state.waiter.take()
        }
        waiter?.resume()
    }

    /// Waits for a signal and consumes it. Returns at once if the task is cancelled. Only one task can wait at a time.
    package func wait() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isDone = state.withLock { state in
                    if state.isSignalled || Task.isCancelled {
                        state.isSignalled = false
                        return true
                    }
                    state.waiter = continuation
                    return false
                }
                if isDone { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.waiter.take() }?.resume()
        }
    }
}
