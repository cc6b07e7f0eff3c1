/// The decision on a push that is due, before it is sent. The facts can have changed since the push was scheduled.
extension OutboxRules {
    package enum LeaseQuestion: Equatable, Sendable {
        /// Does the device exist?
        case device
        /// Does the app have a text for alerts?
        case alertText
        /// Does the envelope exist, or a copy of it that is sent in any case?
        case envelope
        /// Does an envelope wait that wakes the device?
        case waking
    }

    package struct LeaseRuling: Equatable, Sendable {
        package var change: PushChange
        /// Whether the alert is counted in the badge now.
        package var countsBadge = false
        /// Whether the alert replaces an earlier one with the same collapse key. An unconditional alert replaces none.
        package var hasTopic = false
        /// Whether the alert is replaced by a wake.
        package var isFolded = false
        /// Whether the pace of alerts counts from now on.
        package var startsPace = false

        package init(_ change: PushChange) { self.change = change }
    }

    package enum LeaseVerdict: Equatable, Sendable {
        /// Answer this question, and decide again.
        case needs(LeaseQuestion)
        case decided(LeaseRuling)
    }

    /// - Parameter end: The end of the lease.
    package func lease(_ push: DuePush, at now: Timestamp, until end: Timestamp, knowing facts: LeaseFacts) -> LeaseVerdict {
        guard push.expiresAt > now else { return over(push, .expired, at: now) }
        guard push.address != nil else {
            guard let hasDevice = facts.hasDevice else { return .needs(.device) }
            return hasDevice ? .decided(LeaseRuling(.suspended)) : over(push, .cancelled, at: now)
        }
        var ruling = LeaseRuling(.leased(until: end, fence: push.fence + 1))
        switch push.kind {
        case .wake:
            guard let isWaking = facts.isWaking else { return .needs(.waking) }
            guard isWaking else { return over(push, .cancelled, at: now) }
        case .alert, .trigger, .unconditional:
            if push.kind == .alert {
                guard let hasAlertText = facts.hasAlertText else { return .needs(.alertText) }
                // The app has no alert text any more.
                guard hasAlertText else { return over(push, .cancelled, isFolded: true, at: now) }
            }
            guard let hasEnvelope = facts.hasEnvelope else { return .needs(.envelope) }
            guard hasEnvelope else { return over(push, .cancelled, at: now) }
            ruling.countsBadge = push.badge == nil && facts.countsBadge
            ruling.hasTopic = !push.kind.hasCopy
            ruling.startsPace = push.kind == .alert
        }
        return .decided(ruling)
    }

    private func over(_ push: DuePush, _ state: PushState, isFolded: Bool = false, at now: Timestamp) -> LeaseVerdict {
        var ruling = LeaseRuling(.finished(finish(push.kind, as: state, expiresAt: push.expiresAt, at: now)))
        ruling.isFolded = isFolded
        return .decided(ruling)
    }
}

/// The order of alerts that are due at the same time, for example after a pause of their push queue: one alert a second for each
/// device.
package struct AlertTurns: Sendable {
    private var putOff: [DeviceSerial: Int64] = [:]

    package init() {}

    /// Whether pushes of a kind are delayed by turns.
    package func concerns(_ kind: PushKind) -> Bool { kind == .alert }

    /// Returns the later time at which an alert is due; nil if it can be sent now.
    ///
    /// - Parameter last: The time at which an alert of the device was last leased.
    package mutating func later(_ device: DeviceSerial, after last: Timestamp?, at now: Timestamp) -> Timestamp? {
        // After a clock was set back, an alert is not delayed.
        guard let last, last <= now else { return nil }
        let free = last.adding(seconds: PushLimits.secondsBetweenAlerts)
        guard free > now else { return nil }
        let place = putOff[device, default: 0]
        putOff[device] = place + 1
        return free.adding(seconds: place * PushLimits.secondsBetweenAlerts)
    }
}
