package import CarillonWire

/// Keeps the outbox: pushes that are decided, and what became of them.
///
/// They are written as effects of other changes: an envelope that is to wake its device, an acknowledgement, a registration.
package protocol PushStore: Sendable {
    /// After a clock that was ahead, brings back what was put off by it.
    func bringBackPushes(at now: Timestamp) async throws
    /// The lanes in which something is due.
    func dueLanes(at now: Timestamp) async throws -> [PushLane]
    /// Takes pushes of a lane that are due, those that have waited the longest first. What is not to be sent any more ends
    /// here: its message does not wait, its time is over, or its device is suspended.
    func leasePushes(of lane: PushLane, limit: Int, at now: Timestamp, until end: Timestamp) async throws -> LeasedPushes
    /// Writes down what became of pushes, in one transaction. Those whose lease was lost are left out of the answer.
    func endPushes(_ ends: [PushEnd]) async throws -> [PushFact]
    /// What is known of the pushes for a message, the oldest first.
    func pushes(for message: MessageID, of device: DeviceSerial, at now: Timestamp) async throws -> [PushRecord]
    /// Ends what was not sent in its time, and forgets what was kept long enough. Answers whether nothing is left to do now.
    ///
    /// - Parameter retention: Nil forgets nothing.
    func sweepPushes(at now: Timestamp, forgetting retention: RetentionTime?, limit: Int) async throws -> Bool
    /// Pushes of an app that are parked, the oldest first.
    func parkedPushes(of app: AppSerial, limit: Int) async throws -> [PushRecord]
    /// Has parked pushes of an app tried again, and answers how many.
    func requeueParkedPushes(of app: AppSerial, at now: Timestamp) async throws -> Int
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
    package var device: DeviceSerial
    package var lane: PushLane
    package var addressRevision: Int64
    package var isElsewhere: Bool
    package var verdict: PushVerdict
    package var at: Timestamp

    package init(_ push: LeasedPush, _ verdict: PushVerdict, at now: Timestamp) {
        lease = push.lease
        device = push.device
        lane = push.lane
        addressRevision = push.addressRevision
        isElsewhere = push.isElsewhere
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
