import Synchronization

/// Takes a push back whose task is cancelled, whichever comes first, the push or the cancellation.
final class CancellationTicket: Sendable {
    private static let isNew: UInt8 = 0
    private static let isSubmitted: UInt8 = 1
    private static let isCancelled: UInt8 = 2

    private let pool: ConnectionPool
    private let state = Atomic<UInt8>(isNew)
    /// The push, once the pool has it.
    private let place = Atomic<UInt64>(.max)

    init(pool: ConnectionPool) { self.pool = pool }

    func submit(_ submission: Submission) {
        guard state.load(ordering: .acquiring) == Self.isNew else {
            return submission.completion.resume(.failure(ConnectionPool.cancelledError))
        }
        var submission = submission
        submission.ticket = self
        guard pool.submit(submission) else { return }
        let (isKept, _) = state.compareExchange(
            expected: Self.isNew, desired: Self.isSubmitted, ordering: .acquiringAndReleasing)
        if !isKept { pool.cancel(self) }
    }

    func cancel() {
        if state.exchange(Self.isCancelled, ordering: .acquiringAndReleasing) == Self.isSubmitted { pool.cancel(self) }
    }

    func taken(as push: PushID) {
        place.store(UInt64(push.slot) << 32 | UInt64(push.generation), ordering: .releasing)
    }

    var push: PushID? {
        let place = place.load(ordering: .acquiring)
        guard place != .max else { return nil }
        return PushID(slot: UInt32(place >> 32), generation: UInt32(truncatingIfNeeded: place))
    }
}
