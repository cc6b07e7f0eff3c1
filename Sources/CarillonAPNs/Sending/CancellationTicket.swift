import Synchronization

/// Takes a push back whose task is cancelled, whichever comes first, the push or the cancellation.
final class CancellationTicket: Sendable {
    private let pool: ConnectionPool
    /// 0 before the push was taken; the number of the push after; the greatest number when it is cancelled.
    private let number = Atomic<UInt64>(0)

    init(pool: ConnectionPool) { self.pool = pool }

    func submit(_ submission: Submission) {
        guard number.load(ordering: .acquiring) == 0 else {
            return ConnectionPool.finish(
                submission.completion, .failure(APNsError(.cancelled, "The task that sent was cancelled.")))
        }
        guard let taken = pool.submit(submission, bounded: true) else { return }
        let (isKept, _) = number.compareExchange(expected: 0, desired: taken, ordering: .acquiringAndReleasing)
        if !isKept { pool.cancel(taken) }
    }

    func cancel() {
        let taken = number.exchange(.max, ordering: .acquiringAndReleasing)
        if taken != 0, taken != .max { pool.cancel(taken) }
    }
}
