/// The wake of a device, and the pace of its wakes.
package struct DeviceWake: Equatable, Sendable {
    /// Nil if no wake is due.
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

/// How a device can be pushed to, and the state of its pushes.
package struct PushReach: Equatable, Sendable {
    /// The push queue; nil for a device that has no token or is suspended. The other members have their initial values then.
    package var queue: PushQueue?
    package var wake: DeviceWake?
    /// The number of alerts of messages in the outbox.
    package var alerts = 0
    /// The number of alerts of subscriptions in the outbox.
    package var triggers = 0
    /// The due time of the last alert of a message.
    package var lastAlertAt: Timestamp?
    /// The time at which an alert of a message was last leased. It is in no table, and nil after a start.
    package var alertLeasedAt: Timestamp?
    /// The time at which the device last acknowledged an envelope, if a wake existed then. It is in no table, and nil after
    /// a start.
    package var answeredAt: Timestamp?
    /// The number of pushes in the store, including finished pushes.
    package var kept = 0
    /// No envelope before this position wakes the device. It is in no table: 0 after a start, and the largest number if no
    /// waiting envelope wakes the device.
    package var quietBefore: Int64 = 0 {
        didSet { if firstWaking?.first != quietBefore { firstWaking = nil } }
    }
    /// The envelope at ``quietBefore``, if it wakes the device until it expires or does not wait any more. It is in no
    /// table, and nil if it is not known.
    package private(set) var firstWaking: PushSpan?

    package init(queue: PushQueue? = nil, wake: DeviceWake? = nil) {
        self.queue = queue
        self.wake = wake
    }

    /// Returns the values that were read from tables, together with the values of an earlier reach that are in no table.
    package func following(_ earlier: PushReach?) -> PushReach {
        guard let earlier else { return self }
        var reach = self
        reach.alertLeasedAt = earlier.alertLeasedAt
        reach.answeredAt = earlier.answeredAt
        reach.quietBefore = earlier.quietBefore
        reach.firstWaking = earlier.firstWaking
        return reach
    }

    /// Notes an envelope that begins to wait and wakes the device.
    package mutating func wakes(for envelope: Envelope) {
        guard envelope.position <= quietBefore else { return }
        quietBefore = envelope.position
        firstWaking = PushSpan(first: quietBefore, last: quietBefore, expiresAt: envelope.expiresAt)
    }

    /// Notes the result of a search for the first envelope that wakes. The search found an envelope, or read all envelopes
    /// that wait.
    package mutating func note(_ search: FirstWaking) {
        quietBefore = search.found?.first ?? .max
        firstWaking = search.found
    }
}
