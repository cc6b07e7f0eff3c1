/// A push that enters the outbox.
package struct NewPush: Equatable, Sendable {
    package var kind: PushKind
    package var queue: PushQueue
    package var span: PushSpan
    package var state: PushState
    /// The time at which the push is tried, or at which its lease ends.
    package var dueAt: Timestamp
    package var at: Timestamp
    package var isShortened: Bool

    package init(
        _ kind: PushKind, in queue: PushQueue, for span: PushSpan, _ state: PushState, dueAt: Timestamp, at now: Timestamp,
        isShortened: Bool = false
    ) {
        self.kind = kind
        self.queue = queue
        self.span = span
        self.state = state
        self.dueAt = dueAt
        at = now
        self.isShortened = isShortened
    }

    /// The number of its leases, which is also the fence of the latest.
    package var leases: Int { state == .leased ? 1 : 0 }
}

/// The rows that ``WakeRules`` changes for one device.
package struct WakeChanges: Equatable, Sendable {
    /// The change of the row of the wake.
    package enum Row: Equatable, Sendable {
        /// The wake is due. If the row is missing, it is inserted; otherwise its pace stays.
        case due(PushQueue, Timestamp, at: Timestamp)
        /// The wake is not due.
        case idle
        /// The wake is not due, and has the new push.
        case pushed
        /// The wake has this due time and pace.
        case paced(DeviceWake)
        /// The push of the wake ended, and the wake has this due time and pace.
        case ended(DeviceWake, at: Timestamp)
        /// The push of the wake ended. The number is added to the unanswered wakes. A time of nil keeps the time of the last
        /// push.
        case endedOutOfReach(unanswered: Int, pushedAt: Timestamp?)
        /// The wake is in another push queue.
        case moved(PushQueue)
        /// The wake is in another push queue, and counts as answered.
        case readdressed(PushQueue)
        case removed
    }

    /// Nil if the wake does not change.
    package var row: Row?
    /// The push that is written before the row.
    package var push: NewPush?
    /// Whether an alert without room is replaced by a wake.
    package var isFolded = false

    package init() {}
}
