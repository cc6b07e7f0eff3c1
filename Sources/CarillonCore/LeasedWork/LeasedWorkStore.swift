/// Stores work that the server must do outside of itself, such as pings and callbacks. The feature of an item stores the
/// item, its leases and its result in its own transactions (``WorkUser``). Methods that write are atomic and durable, as
/// ``Store`` describes.
package protocol LeasedWorkStore: Sendable {
    /// Corrects the times that a clock wrote that was ahead, in one transaction. Work that was put off then waits as long from `now` on as
    /// it was to wait from then on. Leases end after ``WorkLease/seconds`` at the latest. Times of a right clock stay as they are.
    ///
    /// - Parameter shards: The shards whose devices' work is corrected.
    func bringBackWork(in shards: ShardSet, at now: Timestamp) async throws
    /// Returns work for devices of shards that is due at `now` and has no lease: of each queue the item that has waited the
    /// longest. The call leases nothing.
    ///
    /// Of an app and kind up to `limit` items are returned, of the queues that have waited the longest. Work of busy peers is left out, and
    /// so is work that ends with its app if the app was deleted.
    func dueWork(in shards: ShardSet, at now: Timestamp, besides busy: BusyPeerSets, limit: Int) async throws -> [DueWork]
}

/// See ``WorkShares/busy(onTrial:)``.
package struct BusyPeerSets: Equatable, Sendable {
    package var proven: BusyPeers
    package var onTrial: BusyPeers
    package init(proven: BusyPeers = BusyPeers(), onTrial: BusyPeers = BusyPeers()) {
        self.proven = proven
        self.onTrial = onTrial
    }
}

/// The right to do a piece of work, with the number that fences off whoever had it before.
package struct WorkLease: Equatable, Sendable {
    package var work: Int64
    package var fence: Int64
    package init(work: Int64, fence: Int64) {
        self.work = work
        self.fence = fence
    }

    /// Longer than any call may take.
    package static let seconds: Int64 = 30
}

/// The latest lease of a piece of work, as it is stored.
package struct StoredLease: Equatable, Sendable {
    package var fence: Int64
    /// Whether the lease was not answered for.
    package var isHeld: Bool
    package init(fence: Int64, isHeld: Bool) {
        self.fence = fence
        self.isHeld = isHeld
    }

    /// Whether an answer under the lease counts. It counts after the end of the lease as well, until the work is leased again.
    package func isInForce(_ lease: WorkLease) -> Bool { isHeld && fence == lease.fence }
}

/// A piece of work that is leased, with its subject.
package struct LeasedItem<Subject: Equatable & Sendable>: Equatable, Sendable {
    package var lease: WorkLease
    package var due: DueWork
    package var standing: EndpointHealth
    package var subject: Subject
    package init(lease: WorkLease, due: DueWork, standing: EndpointHealth, subject: Subject) {
        self.lease = lease
        self.due = due
        self.standing = standing
        self.subject = subject
    }
}

package struct LeasedItems<Subject: Equatable & Sendable>: Equatable, Sendable {
    package var items: [LeasedItem<Subject>]
    /// How many could not be read, and were put off.
    package var unreadable: Int
    package init(items: [LeasedItem<Subject>], unreadable: Int) {
        self.items = items
        self.unreadable = unreadable
    }
}

/// The end of a lease, and what the call says of the peer, whatever it was for.
package struct WorkEnd: Equatable, Sendable {
    package var lease: WorkLease
    package var app: AppSerial
    package var peer: String
    package var at: Timestamp
    package var standing: EndpointHealth
    package var peerRestsUntil: Timestamp

    package init<Subject>(
        of item: LeasedItem<Subject>, at: Timestamp, standing: EndpointHealth, peerRestsUntil: Timestamp
    ) {
        lease = item.lease
        app = item.due.app
        peer = item.due.peer
        self.at = at
        self.standing = standing
        self.peerRestsUntil = peerRestsUntil
    }
}
