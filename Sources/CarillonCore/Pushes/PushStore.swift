package import CarillonWire

/// Keeps the outbox: pushes that are decided, and what became of them.
///
/// They are written as effects of other changes: an envelope that is to wake its device, an acknowledgement, a registration.
///
/// Each change is one transaction: a concurrent call sees all of it or nothing. Every method throws ``StoreFault`` if the store cannot be
/// read or written; a change that throws is not made.
///
/// Methods with a set of shards return and change nothing of devices in other shards.
package protocol PushStore: Sendable {
    /// After a clock that was ahead, brings back what was put off by it.
    func bringBackPushes(in shards: ShardSet, at now: Timestamp) async throws
    /// Returns the push queues in which a push is due, or a lease has ended.
    func dueQueues(in shards: ShardSet, at now: Timestamp) async throws -> [PushQueue]
    /// Leases due pushes of a push queue, those that have waited the longest first. Concurrent calls never lease one push twice before its lease
    /// ends. Pushes that are not to be sent any more end here: their message does not wait, their time is over, or their device is
    /// suspended.
    func leasePushes(
        of queue: PushQueue, in shards: ShardSet, limit: Int, at now: Timestamp, until end: Timestamp
    ) async throws -> LeasedPushes
    /// Writes down what became of pushes. Pushes whose lease was lost are left out of the answer, so that of concurrent calls with one
    /// lease one counts.
    func endPushes(_ ends: [PushEnd]) async throws -> [PushFact]
    /// Returns what is known of the pushes for a message, the oldest first.
    func pushes(for message: MessageID, of device: DeviceSerial, at now: Timestamp) async throws -> [PushRecord]
    /// Ends pushes that were not sent in their time, and forgets pushes that were kept long enough. Returns whether nothing is left to do
    /// now; each call does a part.
    ///
    /// - Parameter retention: Nil forgets nothing.
    func sweepPushes(
        in shards: ShardSet, at now: Timestamp, forgetting retention: RetentionTime?, limit: Int
    ) async throws -> Bool
    /// Returns pushes of an app that are parked, the oldest first.
    func parkedPushes(of app: AppSerial, in shards: ShardSet, limit: Int) async throws -> [PushRecord]
    /// Makes the parked pushes of an app due. Returns the number that this call put back.
    func requeueParkedPushes(of app: AppSerial, in shards: ShardSet, at now: Timestamp) async throws -> Int
}

package struct LeasedPushes: Equatable, Sendable {
    package var pushes: [LeasedPush]
    /// Whether more may be due now.
    package var areMoreDue: Bool

    package init(pushes: [LeasedPush] = [], areMoreDue: Bool = false) {
        self.pushes = pushes
        self.areMoreDue = areMoreDue
    }
}

/// The end of a lease.
package struct PushEnd: Equatable, Sendable {
    package var lease: WorkLease
    package var kind: PushKind
    package var device: DeviceSerial
    package var queue: PushQueue
    package var addressRevision: Int64
    package var isElsewhere: Bool
    /// When the push expires.
    package var expiresAt: Timestamp
    package var verdict: PushVerdict
    package var at: Timestamp

    package init(_ push: LeasedPush, _ verdict: PushVerdict, at now: Timestamp) {
        lease = push.lease
        kind = push.kind
        device = push.device
        queue = push.queue
        addressRevision = push.addressRevision
        isElsewhere = push.isElsewhere
        expiresAt = push.expiresAt
        self.verdict = verdict
        at = now
    }
}

/// What was written down of a push.
package enum PushFact: Equatable, Sendable {
    case handed(PushKind)
    case rejected(PushKind, deviceIsSuspended: Bool)
    case parked(PushKind)
    case retried(PushKind)
}
