/// A push that enters the outbox.
package struct NewPush: Equatable, Sendable {
    package var kind: PushKind
    package var lane: PushLane
    package var span: PushSpan
    package var state: PushState
    /// When it is tried, or its lease ends.
    package var dueAt: Timestamp
    package var at: Timestamp
    package var isShortened: Bool

    package init(
        _ kind: PushKind, in lane: PushLane, for span: PushSpan, _ state: PushState, dueAt: Timestamp, at now: Timestamp,
        isShortened: Bool = false
    ) {
        self.kind = kind
        self.lane = lane
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
    /// What becomes of the wake.
    package enum Row: Equatable, Sendable {
        /// Is due. A row that is missing is made; the pace of another one stays.
        case due(PushLane, Timestamp, at: Timestamp)
        /// Is not due.
        case idle
        /// Is not due, and has the new push.
        case pushed
        /// Has this due time and pace.
        case paced(DeviceWake)
        /// Its push ended, and it has this due time and pace.
        case ended(DeviceWake, at: Timestamp)
        /// Its push ended. The number is added to the wakes that were not answered; nil leaves the time of the last push.
        case endedOutOfReach(unanswered: Int, pushedAt: Timestamp?)
        /// Is in another lane.
        case moved(PushLane)
        /// The same, and it counts as answered.
        case readdressed(PushLane)
        case removed
    }

    /// Nil if the wake stays as it is.
    package var row: Row?
    /// Is written before the row.
    package var push: NewPush?
    /// Whether a wake stands for an alert that has no room.
    package var isFolded = false

    package init() {}
}
