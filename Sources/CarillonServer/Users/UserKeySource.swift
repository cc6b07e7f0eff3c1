package import CarillonCore
import NIOHTTP1
import Synchronization

/// Where key sets are fetched from.
package struct UserKeySource: Sendable {
    package enum Answer: Sendable {
        case found([UInt8])
        /// Why not, for the operator's log.
        case failed(String)
    }

    package var fetch: @Sendable (CallAddress) async -> Answer

    package init(_ fetch: @escaping @Sendable (CallAddress) async -> Answer) { self.fetch = fetch }

    /// For those who work on the data directory without a server.
    package static let none = UserKeySource { _ in .failed("there is no server") }

    /// With the guard of all calls outward: no address in a private network unless the operator allows it, and no redirect.
    ///
    /// - Parameter patience: For all of it together: the name, the connection and the answer.
    static func over(_ caller: OutwardCaller, patience: Duration = .seconds(5)) -> UserKeySource {
        UserKeySource { address in
            let request = OutwardCaller.Request(
                method: .GET, address: address, headers: [("Accept", "application/jwk-set+json, application/json")],
                answerBytes: UserKeySet.longestBytes)
            let first = FirstAnswer()
            let call = Task {
                let answer = await caller.ask(request)
                first.give(answer.result.isSuccess ? .found(answer.body) : .failed(answer.result.reason))
            }
            let limit = Task {
                try await Task.sleep(for: patience)
                first.give(.failed("no whole answer came within \(patience)"))
                call.cancel()
            }
            defer { limit.cancel() }
            return await first.value()
        }
    }

    /// What comes first; a look-up or a connection that goes on for a moment longer is waited for by nobody.
    private final class FirstAnswer: Sendable {
        private enum State {
            case empty
            case awaited(CheckedContinuation<Answer, Never>)
            case given(Answer)
        }

        private let state = Mutex(State.empty)

        func give(_ answer: Answer) {
            let waiter: CheckedContinuation<Answer, Never>? = state.withLock { state in
                switch state {
                case .empty:
                    state = .given(answer)
                    return nil
                case .awaited(let waiter):
                    state = .given(answer)
                    return waiter
                case .given: return nil
                }
            }
            waiter?.resume(returning: answer)
        }

        /// To be asked once.
        func value() async -> Answer {
            await withCheckedContinuation { continuation in
                let answer: Answer? = state.withLock { state in
                    if case .given(let answer) = state { return answer }
                    state = .awaited(continuation)
                    return nil
                }
                if let answer { continuation.resume(returning: answer) }
            }
        }
    }
}

extension CallResult {
    fileprivate var reason: String {
        switch self {
        case .answered(let status): "the answer has the status \(status)"
        case .failed(_, let detail): detail
        case .notMade(let reason), .impossible(let reason): reason
        }
    }
}
