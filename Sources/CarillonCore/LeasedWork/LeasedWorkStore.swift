/// Keeps work that is owed. Who owes it writes it down, and what became of it, in transactions of its own.
package protocol LeasedWorkStore: Sendable {
    /// After a clock that was ahead, brings back what was put off by it: each item waits from now on for as long as it
    /// was to wait from then on.
    func bringBackWork(at now: Timestamp) async throws
    /// What is due and not leased: of each app and kind the first of those lanes that have waited the longest,
    /// without those of the crowd. Of a lane there is one, of an app and kind at most `limit`. What ends with its app is due
    /// no more when that was deleted.
    func dueWork(at now: Timestamp, besides crowd: WorkCrowds, limit: Int) async throws -> [DueWork]
    /// Takes those that are still due. A lease ends by being answered for, or at a moment, after which the work is due again.
    /// What cannot be read is put off, and counted.
    func leaseWork(_ work: [DueWork], at now: Timestamp, until end: Timestamp) async throws -> LeasedItems
}

/// See ``WorkShares/crowd(onTrial:)``.
package struct WorkCrowds: Equatable, Sendable {
    package var proven: WorkCrowd
    package var onTrial: WorkCrowd
    package init(proven: WorkCrowd = WorkCrowd(), onTrial: WorkCrowd = WorkCrowd()) {
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

package struct LeasedItem: Equatable, Sendable {
    /// What is to be done.
    package enum Subject: Equatable, Sendable {
        case ping(Watch)
        case callback(DisconnectCallback)
    }

    package var lease: WorkLease
    package var due: DueWork
    package var standing: PeerStanding
    package var subject: Subject
    package init(lease: WorkLease, due: DueWork, standing: PeerStanding, subject: Subject) {
        self.lease = lease
        self.due = due
        self.standing = standing
        self.subject = subject
    }
}

package struct LeasedItems: Equatable, Sendable {
    package var items: [LeasedItem]
    /// How many could not be read, and were put off.
    package var unreadable: Int
    package init(items: [LeasedItem], unreadable: Int) {
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
    package var standing: PeerStanding
    package var peerRestsUntil: Timestamp

    package init(of item: LeasedItem, at: Timestamp, standing: PeerStanding, peerRestsUntil: Timestamp) {
        lease = item.lease
        app = item.due.app
        peer = item.due.peer
        self.at = at
        self.standing = standing
        self.peerRestsUntil = peerRestsUntil
    }
}
