/// Stores work of the server that calls other servers, such as pings and callbacks. The feature of an item stores the item, its
/// leases and its result in its own transactions (``WorkUser``). Methods that write are atomic and durable, as ``Store``
/// describes.
package protocol LeasedWorkStore: Sendable {
    /// Corrects times that were written by a clock that was ahead, in one transaction. Postponed work then waits from `now` for
    /// the same delay as before. Leases end after ``WorkLease/seconds`` at the latest. Times of a correct clock are not changed.
    ///
    /// - Parameter shards: The shards whose devices' work is corrected.
    func bringBackWork(in shards: ShardSet, at now: Timestamp) async throws
    /// Returns work for devices of the shards that is due at `now` and has no lease: the item of each queue that has waited the
    /// longest. The call leases nothing.
    ///
    /// For each app and kind, up to `limit` items are returned, from the queues that have waited the longest. Work of busy peers
    /// is left out, as is work that ends with its app if the app was deleted.
    func dueWork(in shards: ShardSet, at now: Timestamp, besides busy: BusyPeerSets, limit: Int) async throws -> [DueWork]
}

/// See ``WorkSlots/busy(onTrial:)``.
package struct BusyPeerSets: Equatable, Sendable {
    package var proven: BusyPeers
    package var onTrial: BusyPeers
    package init(proven: BusyPeers = BusyPeers(), onTrial: BusyPeers = BusyPeers()) {
        self.proven = proven
        self.onTrial = onTrial
    }
}

/// The right to do an item of work, with a number that invalidates earlier leases.
package struct WorkLease: Equatable, Sendable {
    package var work: Int64
    package var fence: Int64
    package init(work: Int64, fence: Int64) {
        self.work = work
        self.fence = fence
    }

    /// The duration of a lease, which is longer than any call may take.
    package static let seconds: Int64 = 30
}

/// The latest lease of an item of work, as it is stored.
package struct StoredLease: Equatable, Sendable {
    package var fence: Int64
    /// Whether the lease has no result yet.
    package var isHeld: Bool
    package init(fence: Int64, isHeld: Bool) {
        self.fence = fence
        self.isHeld = isHeld
    }

    /// Whether a result under the lease counts. A result also counts after the end of the lease, until the work is leased again.
    package func isInForce(_ lease: WorkLease) -> Bool { isHeld && fence == lease.fence }
}

/// An item of work that is leased, with its subject.
package struct LeasedItem<Subject: Equatable & Sendable>: Equatable, Sendable {
    package var lease: WorkLease
    package var due: DueWork
    package var health: EndpointHealth
    package var subject: Subject
    package init(lease: WorkLease, due: DueWork, health: EndpointHealth, subject: Subject) {
        self.lease = lease
        self.due = due
        self.health = health
        self.subject = subject
    }
}

package struct LeasedItems<Subject: Equatable & Sendable>: Equatable, Sendable {
    package var items: [LeasedItem<Subject>]
    /// The number of items that could not be read and were postponed.
    package var unreadable: Int
    package init(items: [LeasedItem<Subject>], unreadable: Int) {
        self.items = items
        self.unreadable = unreadable
    }
}

/// The end of a lease, with the effect of the call on the state of its peer.
package struct WorkEnd: Equatable, Sendable {
    package var lease: WorkLease
    package var app: AppSerial
    package var peer: String
    package var at: Timestamp
    package var health: EndpointHealth
    package var peerRestsUntil: Timestamp

    package init<Subject>(
        of item: LeasedItem<Subject>, at: Timestamp, health: EndpointHealth, peerRestsUntil: Timestamp
    ) {
        lease = item.lease
        app = item.due.app
        peer = item.due.peer
        self.at = at
        self.health = health
        self.peerRestsUntil = peerRestsUntil
    }
}
