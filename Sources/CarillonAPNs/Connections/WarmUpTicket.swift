import Synchronization

/// Withdraws a request that waits for connections.
final class WarmUpTicket: Sendable {
    typealias Continuation = UnsafeContinuation<Result<Void, APNsError>, Never>

    private let withdrawn = Atomic(false)

    var isWithdrawn: Bool { withdrawn.load(ordering: .acquiring) }

    func withdraw() { withdrawn.store(true, ordering: .releasing) }
}
