/// The wake of a device, and the pace of its wakes.
package struct DeviceWake: Equatable, Sendable {
    /// Nil when no wake is due.
    package var dueAt: Timestamp?
    /// Whether the push of a wake is under way.
    package var isUnderWay: Bool
    package var pace: WakePace

    package init(dueAt: Timestamp? = nil, isUnderWay: Bool = false, pace: WakePace = WakePace()) {
        self.dueAt = dueAt
        self.isUnderWay = isUnderWay
        self.pace = pace
    }
}

/// What is known of how a device can be pushed to, and of its pushes.
package struct PushReach: Equatable, Sendable {
    /// Nil for a device that has no token or is suspended. Then nothing else in the store is known of the device.
    package var lane: PushLane?
    package var wake: DeviceWake?
    /// The number of alerts of messages in the outbox.
    package var alerts = 0
    /// The number of alerts of subscriptions in the outbox.
    package var triggers = 0
    /// When the last alert of a message is due.
    package var lastAlertAt: Timestamp?
    /// When an alert of a message was last leased. In no table: nil after a start.
    package var alertLeasedAt: Timestamp?
    /// When the device last answered for an envelope, as far as that was of interest. In no table: nil after a start.
    package var answeredAt: Timestamp?
    /// The number of pushes in the store, over or not.
    package var kept = 0
    /// Before this position, no envelope waits that the device is woken for. In no table: 0 after a start, and the largest number if no
    /// envelope waits that the device is woken for.
    package var quietBefore: Int64 = 0 {
        didSet { if firstWaking?.first != quietBefore { firstWaking = nil } }
    }
    /// The envelope at ``quietBefore``, if the device is woken for it until it expires or does not wait any more. In no table: nil if that is
    /// not known.
    package private(set) var firstWaking: PushSpan?

    package init(lane: PushLane? = nil, wake: DeviceWake? = nil) {
        self.lane = lane
        self.wake = wake
    }

    /// Returns what was just read, with what no table has.
    package func following(_ earlier: PushReach?) -> PushReach {
        guard let earlier else { return self }
        var reach = self
        reach.alertLeasedAt = earlier.alertLeasedAt
        reach.answeredAt = earlier.answeredAt
        reach.quietBefore = earlier.quietBefore
        reach.firstWaking = earlier.firstWaking
        return reach
    }

    /// An envelope begins to wait that the device is woken for.
    package mutating func wakes(for envelope: Envelope) {
        guard envelope.position <= quietBefore else { return }
        quietBefore = envelope.position
        firstWaking = PushSpan(first: quietBefore, last: quietBefore, expiresAt: envelope.expiresAt)
    }

    /// Notes the result of a search for the first envelope that wakes, which ended at it or looked at all that wait.
    package mutating func note(_ search: FirstWaking) {
        quietBefore = search.found?.first ?? .max
        firstWaking = search.found
    }
}
