import CarillonCore
import Synchronization

/// A caller that waits for an answer of any type.
protocol FailingCaller: AnyObject, Sendable {
    /// The link was cut, or did not accept the call.
    func fail()
}

/// The caller of a home over a link, which waits for the answer.
final class LinkedCaller<Answer: Sendable>: FailingCaller {
    typealias Outcome = Result<Answer, HomeFault>

    private struct State {
        /// Nil if the caller does not wait.
        var continuation: CheckedContinuation<Outcome, Never>?
        var isSent = false
        var isCancelled = false
        /// The task that makes the call at the home.
        var task: Task<Void, Never>?
    }

    private let state = Mutex(State())
    private let endsWithLink: Bool

    /// - Parameter endsWithLink: Whether the call ends at the home if the link is cut.
    init(endsWithLink: Bool = false) { self.endsWithLink = endsWithLink }

    /// - Returns: False if the caller was already cancelled.
    func waits(_ continuation: CheckedContinuation<Outcome, Never>) -> Bool {
        state.withLock { state in
            state.continuation = continuation
            return !state.isCancelled
        }
    }

    /// The call reaches the home.
    ///
    /// - Returns: False if the caller no longer waits. In this case the call must not be made.
    func send() -> Bool {
        state.withLock { state in
            guard state.continuation != nil else { return false }
            state.isSent = true
            return true
        }
    }

    /// - Parameter task: Makes the call. It is cancelled with the caller.
    func runs(_ task: Task<Void, Never>) {
        let isCancelled = state.withLock { state in
            state.task = task
            return state.isCancelled
        }
        if isCancelled { task.cancel() }
    }

    /// The answer has arrived. After ``fail()`` it is ignored.
    func end(_ outcome: Outcome) {
        let continuation = state.withLock { $0.continuation.take() }
        continuation?.resume(returning: outcome)
    }

    func fail() {
        let (continuation, isSent, task) = state.withLock { state in
            (state.continuation.take(), state.isSent, state.task)
        }
        continuation?.resume(returning: .failure(isSent ? .outcomeUnknown : .unreachable))
        if endsWithLink { task?.cancel() }
    }

    /// The task of the caller was cancelled. A call that was sent ends with the answer of the home.
    func cancel() {
        let (continuation, task) = state.withLock { state in
            state.isCancelled = true
            return (state.isSent ? nil : state.continuation.take(), state.task)
        }
        continuation?.resume(returning: .failure(.unreachable))
        task?.cancel()
    }
}
