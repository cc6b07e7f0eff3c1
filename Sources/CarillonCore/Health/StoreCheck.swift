/// Decides whether a store that may not answer can be used, for concurrent requests.
///
/// A store cannot be used when its oldest change has waited for the disk longer than ``limit``, or when a check takes longer. One
/// check runs at a time. The machine is in one of these states:
/// - *idle*: a request begins a check.
/// - *checking*: further requests wait for the check. The state ends with the answer of the check, or after the limit.
/// - *late*: the check has no answer yet. Requests are answered at once. The state ends with the answer of the check.
package struct StoreCheck<Waiter> {
    package enum Decision: Equatable, Sendable {
        /// Begin a check, and call ``limitElapsed(_:)`` with this number after the limit.
        case begin(Int)
        /// The waiter receives the answer of the running check.
        case wait
        /// The store cannot be used.
        case unusable(StoreFault)
    }

    private enum State {
        case idle
        case checking([Waiter])
        case late
    }

    package let limit: Duration
    private var state = State.idle
    private var number = 0

    package init(limit: Duration = .seconds(5)) { self.limit = limit }

    /// - Parameter oldestChange: How long the oldest change that is not on disk has waited.
    package mutating func requested(_ waiter: Waiter, oldestChange: Duration) -> Decision {
        if oldestChange > limit { return .unusable(fault("a change has waited for the disk for more than \(seconds)")) }
        switch state {
        case .idle:
            number += 1
            state = .checking([waiter])
            return .begin(number)
        case .checking(let waiters):
            state = .checking(waiters + [waiter])
            return .wait
        case .late:
            return .unusable(lateness)
        }
    }

    /// The store answered the running check.
    ///
    /// - Returns: The waiters that receive the answer.
    package mutating func answered() -> [Waiter] {
        defer { state = .idle }
        guard case .checking(let waiters) = state else { return [] }
        return waiters
    }

    /// The limit of the check with this number is over.
    ///
    /// - Returns: The waiters that receive ``lateness``.
    package mutating func limitElapsed(_ check: Int) -> [Waiter] {
        guard check == number, case .checking(let waiters) = state else { return [] }
        state = .late
        return waiters
    }

    /// The fault of a store that does not answer a check.
    package var lateness: StoreFault { fault("the disk has not answered for \(seconds)") }

    private var seconds: String { "\(limit.components.seconds) seconds" }

    private func fault(_ message: String) -> StoreFault { StoreFault(.unavailable, message) }
}
