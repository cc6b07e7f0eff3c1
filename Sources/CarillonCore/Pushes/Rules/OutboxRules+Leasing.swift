/// Pushes that are due are looked at once more before they are sent: much may have happened since they were decided.
extension OutboxRules {
    package enum LeaseQuestion: Equatable, Sendable {
        /// Is the device there?
        case device
        /// Does the app have a text for alerts?
        case alertText
        /// Is the envelope there, or a copy of it that goes out in any case?
        case envelope
        /// Does an envelope wait that the device is woken for?
        case waking
    }

    package struct LeaseRuling: Equatable, Sendable {
        package var change: PushChange
        /// Whether the alert is counted in the number on the app's icon now.
        package var countsBadge = false
        /// Whether the alert replaces an earlier one of its topic. An unconditional alert replaces none.
        package var hasTopic = false
        /// Whether a wake stands for the message of the alert.
        package var isFolded = false
        /// Whether the pace of alerts counts from now on.
        package var startsPace = false

        package init(_ change: PushChange) { self.change = change }
    }

    package enum LeaseVerdict: Equatable, Sendable {
        /// Answer this as well, and decide again.
        case needs(LeaseQuestion)
        case decided(LeaseRuling)
    }

    /// - Parameter end: When the lease ends.
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
                // There is nothing to be shown any more.
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

/// The turns of alerts that are due at once, as alerts are that gathered while their lane was closed: of each device one a second.
package struct AlertTurns: Sendable {
    private var putOff: [DeviceSerial: Int64] = [:]

    package init() {}

    /// Whether pushes of a kind have turns.
    package func concerns(_ kind: PushKind) -> Bool { kind == .alert }

    /// Returns when an alert is due instead; nil if it may be sent now.
    ///
    /// - Parameter last: When an alert of the device was last leased.
    package mutating func later(_ device: DeviceSerial, after last: Timestamp?, at now: Timestamp) -> Timestamp? {
        // A clock that was set back holds nothing up.
        guard let last, last <= now else { return nil }
        let free = last.adding(seconds: PushLimits.secondsBetweenAlerts)
        guard free > now else { return nil }
        let place = putOff[device, default: 0]
        putOff[device] = place + 1
        return free.adding(seconds: place * PushLimits.secondsBetweenAlerts)
    }
}
