import CarillonCore
import Synchronization

/// Waits until something is queued for a device, or a time is over.
final class InboxWait: Sendable {
    private struct State {
        var wasCalled = false
        var continuation: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    func call() {
        let continuation = state.withLock { state in
            state.wasCalled = true
            defer { state.continuation = nil }
            return state.continuation
        }
        continuation?.resume()
    }

    /// Returns at once when it was called since the last time.
    func wait() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    if state.wasCalled || Task.isCancelled {
                        state.wasCalled = false
                        return true
                    }
                    state.continuation = continuation
                    return false
                }
                if isOver { continuation.resume() }
            }
            state.withLock { $0.wasCalled = false }
        } onCancel: {
            call()
        }
    }
}
