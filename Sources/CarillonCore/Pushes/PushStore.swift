package import CarillonWire

/// Keeps the outbox: pushes that are decided, and their results.
///
/// New pushes are written as effects of other changes: an envelope that wakes its device, an acknowledgement, a registration.
///
/// Each change is one transaction: a concurrent call sees all of it or nothing. Every method throws ``StoreFault`` if the store
/// cannot be read or written; a change that throws is not made.
///
/// Methods with a set of shards return and change nothing of devices in other shards.
package protocol PushStore: Sendable {
    /// After a clock that was ahead was set back, brings back the pushes that it delayed.
    func bringBackPushes(in shards: ShardSet, at now: Timestamp) async throws
    /// Returns the push queues in which a push is due, or a lease has ended.
    func dueQueues(in shards: ShardSet, at now: Timestamp) async throws -> [PushQueue]
    /// Leases due pushes of a push queue, the longest waiting first. Concurrent calls never lease one push twice before its lease
    /// ends. A push that must not be sent is not leased: it ends if its message does not wait or if it is expired, and it
    /// waits if its device is suspended.
    func leasePushes(
        of queue: PushQueue, in shards: ShardSet, limit: Int, at now: Timestamp, until end: Timestamp
    ) async throws -> LeasedPushes
    /// Writes the results of pushes, and returns the new states. A push that is tried again is scheduled. A push whose lease was
    /// lost has no element in the returned array. Of concurrent calls with one lease, one call counts.
    func endPushes(_ ends: [PushEnd]) async throws -> [PushState]
    /// Returns the pushes of a message, the oldest first.
    func pushes(for message: MessageID, of device: DeviceSerial, at now: Timestamp) async throws -> [PushRecord]
    /// Ends expired pushes, and removes finished pushes after their retention. Each call changes a limited number of pushes.
    /// Returns whether nothing is left to do now.
    ///
    /// - Parameter retention: Nil removes nothing.
    func sweepPushes(
        in shards: ShardSet, at now: Timestamp, forgetting retention: RetentionTime?, limit: Int
    ) async throws -> Bool
    /// Returns pushes of an app that are parked, the oldest first.
    func parkedPushes(of app: AppSerial, in shards: ShardSet, limit: Int) async throws -> [PushRecord]
    /// Makes the parked pushes of an app due. Returns the number of pushes that this call made due.
    func requeueParkedPushes(of app: AppSerial, in shards: ShardSet, at now: Timestamp) async throws -> Int
}

package struct LeasedPushes: Equatable, Sendable {
    package var pushes: [LeasedPush]
    /// Whether more pushes can be due now.
    package var areMoreDue: Bool

    package init(pushes: [LeasedPush] = [], areMoreDue: Bool = false) {
        self.pushes = pushes
        self.areMoreDue = areMoreDue
    }
}

/// The end of a lease.
package struct PushEnd: Equatable, Sendable {
    /// The consequence of an answer for the push.
    package enum Verdict: Equatable, Sendable {
        case handed
        /// The push is tried again. `isSpent`: whether the attempt counts.
        case again(at: Timestamp, isSpent: Bool, reason: String)
        /// The push is tried once in the other environment.
        case elsewhere
        /// The device is suspended, unless it has another token now, or confirmed the token later.
        case tokenDead(reason: String, since: Timestamp?)
        /// - `isOfAddress`: whether another address of the device corrects the fault.
        case parked(reason: String, isOfAddress: Bool = false)
    }

    package var lease: WorkLease
    package var kind: PushKind
    package var device: DeviceSerial
    package var queue: PushQueue
    package var addressRevision: Int64
    package var isElsewhere: Bool
    /// When the push expires.
    package var expiresAt: Timestamp
    package var verdict: Verdict
    package var at: Timestamp

    package init(_ push: LeasedPush, _ verdict: Verdict, at now: Timestamp) {
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
