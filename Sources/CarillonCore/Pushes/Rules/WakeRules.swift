import CarillonWire

/// Decides when a device is woken, how often, and for which envelopes; and whether an envelope has an alert of its own.
///
/// The rules read nothing. They receive facts and return the changes of rows, and request the facts that are missing. The
/// reach of a device is passed from each decision to the next, so that each decision of a transaction includes the earlier
/// decisions.
package struct WakeRules: Sendable {
    package init() {}

    // MARK: Envelopes

    /// Whether the device is notified of an envelope by a wake or an alert.
    package func concerns(_ envelope: Envelope, _ request: WakeRequest) -> Bool {
        request.mode != .none && envelope.behaviour.mayWake
    }

    /// Decides about an envelope that begins to wait.
    package func arrived(_ envelope: Envelope, _ request: WakeRequest, knowing facts: WakeFacts) -> WakeVerdict {
        var ruling = WakeRuling(facts.reach)
        if let queue = facts.reach.queue, request.mode == .alert {
            if request.needsAlertText, facts.hasAlertText == nil { return .needs(.alertText) }
            if !request.needsAlertText || facts.hasAlertText == true {
                let kind = alertKind(of: envelope, request)
                if hasRoom(for: kind, facts.reach) {
                    alert(kind, for: envelope, request, in: queue, &ruling)
                    return .decided(ruling)
                }
                ruling.changes.isFolded = true
            }
        }
        ruling.mode = .background
        ruling.reach.wakes(for: envelope)
        // One wake covers all envelopes that wait, as soon as the device can be reached.
        guard let queue = facts.reach.queue else { return .decided(ruling) }
        let dueAt = (facts.reach.wake?.pace ?? WakePace()).dueAt(request.dueAt)
        if isEarlier(dueAt, than: facts.reach.wake) { put(dueAt, in: queue, at: envelope.acceptedAt, &ruling) }
        return .decided(ruling)
    }

    private func alertKind(of envelope: Envelope, _ request: WakeRequest) -> PushKind {
        guard envelope.kind.number == .fired else { return .alert }
        return request.isUnconditional ? .unconditional : .trigger
    }

    private func hasRoom(for kind: PushKind, _ reach: PushReach) -> Bool {
        kind == .alert ? reach.alerts < PushLimits.alertsPerDevice : reach.triggers < PushLimits.triggersPerDevice
    }

    private func alert(
        _ kind: PushKind, for envelope: Envelope, _ request: WakeRequest, in queue: PushQueue, _ ruling: inout WakeRuling
    ) {
        let dueAt = kind == .alert ? alertDueAt(request.dueAt, after: ruling.reach.lastAlertAt) : request.dueAt
        let span = PushSpan(first: envelope.position, last: envelope.position, expiresAt: envelope.expiresAt)
        ruling.mode = .alert
        ruling.changes.push = NewPush(
            kind, in: queue, for: span, .scheduled, dueAt: dueAt, at: envelope.acceptedAt, isShortened: request.isShortened)
        if kind == .alert {
            ruling.reach.alerts += 1
            ruling.reach.lastAlertAt = dueAt
        } else {
            ruling.reach.triggers += 1
        }
    }

    /// Returns the due time of an alert of a message, which is paced. Alerts of subscriptions are not paced, because a user
    /// waits for them.
    private func alertDueAt(_ wanted: Timestamp, after last: Timestamp?) -> Timestamp {
        guard let last else { return wanted }
        // After a clock was set back, an alert is not delayed longer than the alerts before it need.
        let longest = PushLimits.secondsBetweenAlerts * Int64(PushLimits.alertsPerDevice)
        guard last < wanted.adding(seconds: longest) else { return wanted }
        return max(wanted, last.adding(seconds: PushLimits.secondsBetweenAlerts))
    }

    private func isEarlier(_ dueAt: Timestamp, than wake: DeviceWake?) -> Bool {
        guard let wake else { return true }
        guard !wake.isUnderWay else { return false }
        return wake.dueAt.map { dueAt < $0 } ?? true
    }

    // MARK: Signs of the device

    /// Decides after the device acknowledged an envelope. The device is awake, and possibly no envelope is left that wakes it.
    package func answered(at now: Timestamp, knowing facts: WakeFacts) -> WakeVerdict {
        var ruling = WakeRuling(facts.reach)
        guard var wake = facts.reach.wake else { return .decided(ruling) }
        ruling.reach.answeredAt = now
        if wake.dueAt != nil {
            guard let isEmpty = facts.isInboxEmpty else { return .needs(.inbox) }
            if isEmpty {
                wake.dueAt = nil
                ruling.reach.quietBefore = .max
            }
        }
        guard wake.pace.unanswered > 0 || wake.dueAt != facts.reach.wake?.dueAt else { return .decided(ruling) }
        wake.pace.answered()
        if isForgettable(wake, at: now) {
            remove(&ruling)
        } else {
            ruling.reach.wake = wake
            ruling.changes.row = .paced(wake)
        }
        return .decided(ruling)
    }

    /// Decides after the device connected or polled, which ends a slow pace. Returns nil if nothing changes.
    package func came(_ wake: DeviceWake, at now: Timestamp) -> DeviceWake? {
        guard wake.pace.isSlow else { return nil }
        var wake = wake
        wake.pace.answered()
        let earliest = wake.pace.dueAt(now)
        wake.dueAt = wake.dueAt.map { min($0, earliest) }
        return wake
    }

    // MARK: Addresses

    package enum AddressVerdict: Equatable, Sendable {
        /// The change does not concern wakes.
        case unchanged
        /// The device cannot be reached. Its wake and its pushes wait.
        case unreachable(WakeRuling)
        /// The wake and the pushes go to this push queue.
        case reachable(PushQueue)
    }

    /// Decides after the registration of a device was written.
    ///
    /// - Parameters:
    ///   - before: The reach before the change; nil if it is not known.
    ///   - reach: The reach that was read after the change.
    ///   - hasOtherAddress: Whether the address is another one than before.
    package func changed(from before: PushReach?, to reach: PushReach, hasOtherAddress: Bool) -> AddressVerdict {
        let reach = reach.following(before)
        guard before != reach || hasOtherAddress else { return .unchanged }
        if let queue = reach.queue { return .reachable(queue) }
        var ruling = WakeRuling(reach)
        ruling.changes.row = .idle
        return .unreachable(ruling)
    }

    /// Decides after the wake and the pushes of a device moved to a push queue.
    package func readdressed(to queue: PushQueue, hasOtherAddress: Bool, at now: Timestamp, knowing facts: WakeFacts)
        -> WakeVerdict
    {
        var ruling = WakeRuling(facts.reach)
        let wake = facts.reach.wake
        let pace = wake?.pace ?? WakePace()
        guard wake?.isUnderWay != true || wake?.dueAt != nil else { return .decided(ruling) }
        if let dueAt = wake?.dueAt {
            // A delay because of the former address ends.
            if hasOtherAddress, dueAt > pace.dueAt(now.adding(seconds: WakeRequest.presenceSeconds)) {
                put(pace.dueAt(now), in: queue, at: now, &ruling)
            }
            return .decided(ruling)
        }
        guard let isWaking = facts.isWaking else { return .needs(.waking) }
        if isWaking { put(pace.dueAt(now), in: queue, at: now, &ruling) }
        return .decided(ruling)
    }

    // MARK: Pushes

    /// A wake is due. A push is sent, unless the device acknowledged an envelope a short time ago, or no envelope that wakes
    /// it is left.
    ///
    /// - Parameter end: The end of the push's lease.
    package func lease(_ due: DueWake, at now: Timestamp, until end: Timestamp, knowing facts: WakeFacts) -> WakeVerdict {
        var ruling = WakeRuling(facts.reach)
        if let dueAt = presenceEnd(of: due, facts.reach, at: now), let answeredAt = facts.reach.answeredAt {
            ruling.reach.wake?.dueAt = dueAt
            ruling.changes.row = .due(due.queue, dueAt, at: answeredAt)
            return .decided(ruling)
        }
        ruling.reach.wake?.dueAt = nil
        ruling.changes.row = .idle
        guard facts.reach.queue == due.queue, due.address != nil else { return .decided(ruling) }
        guard let isWaking = facts.isWaking else { return .needs(.span) }
        guard isWaking, let span = facts.span else { return .decided(ruling) }
        ruling.reach.wake?.isUnderWay = true
        ruling.changes.row = .pushed
        ruling.changes.push = NewPush(.wake, in: due.queue, for: span, .leased, dueAt: end, at: now)
        return .decided(ruling)
    }

    /// Returns the end of the additional time of a device that was connected when its wake was set, and acknowledged an envelope
    /// after that.
    private func presenceEnd(of due: DueWake, _ reach: PushReach, at now: Timestamp) -> Timestamp? {
        guard due.dueAt >= due.setAt.adding(seconds: WakeRequest.presenceSeconds), let answeredAt = reach.answeredAt,
            answeredAt <= now
        else { return nil }
        let end = answeredAt.adding(seconds: WakeRequest.presenceSeconds)
        return end > now ? end : nil
    }

    /// Decides after a push of the device finished or was parked.
    package func pushEnded(
        _ kind: PushKind, _ state: PushState, at now: Timestamp, knowing facts: WakeFacts
    ) -> WakeVerdict {
        var ruling = WakeRuling(facts.reach)
        switch kind {
        case .alert: ruling.reach.alerts = max(0, ruling.reach.alerts - 1)
        case .trigger, .unconditional: ruling.reach.triggers = max(0, ruling.reach.triggers - 1)
        case .wake: return wakeEnded(state, at: now, knowing: facts)
        }
        return .decided(ruling)
    }

    private func wakeEnded(_ state: PushState, at now: Timestamp, knowing facts: WakeFacts) -> WakeVerdict {
        var ruling = WakeRuling(facts.reach)
        guard facts.reach.queue != nil else {
            // The pace is kept for when the device can be reached again.
            let isHanded = state == .handed
            ruling.changes.row = .endedOutOfReach(unanswered: isHanded ? 1 : 0, pushedAt: isHanded ? now : nil)
            return .decided(ruling)
        }
        guard let isWaking = facts.isWaking else { return .needs(.waking) }
        var wake = facts.reach.wake ?? DeviceWake()
        wake.isUnderWay = false
        if state == .handed { wake.pace.handed(at: now) }
        // A push now would be parked again, so the wake waits until an operator acts, or for a day.
        let wanted = state == .parked ? now.adding(seconds: Self.parkedSeconds) : now
        wake.dueAt = isWaking ? wake.pace.dueAt(wanted) : nil
        if isForgettable(wake, at: now) {
            remove(&ruling)
        } else {
            ruling.reach.wake = wake
            ruling.changes.row = .ended(wake, at: now)
        }
        return .decided(ruling)
    }

    private static let parkedSeconds: Int64 = 86_400

    /// Decides after the message at a position lost its own alert: a wake replaces the alert.
    package func lostAlert(at position: Int64, at now: Timestamp, knowing facts: WakeFacts) -> WakeRuling {
        var ruling = WakeRuling(facts.reach)
        ruling.reach.quietBefore = min(ruling.reach.quietBefore, position)
        let wake = facts.reach.wake
        guard let queue = facts.reach.queue, wake?.dueAt == nil, wake?.isUnderWay != true else { return ruling }
        put((wake?.pace ?? WakePace()).dueAt(now), in: queue, at: now, &ruling)
        return ruling
    }

    /// Decides after all envelopes that wake the device ended with its user. Returns nil if there is no wake.
    ///
    /// - Parameter isPushCancelled: Whether the push of the wake was cancelled.
    package func reasonsEnded(of wake: DeviceWake?, isPushCancelled: Bool, at now: Timestamp) -> WakeChanges.Row? {
        guard var wake else { return nil }
        wake.dueAt = nil
        if isPushCancelled { wake.isUnderWay = false }
        if !wake.isUnderWay, wake.pace == WakePace() { return .removed }
        return isPushCancelled ? .ended(wake, at: now) : .idle
    }

    // MARK: Rows

    /// Returns the latest time of the last push of a wake that can be removed.
    package func idleCutoff(at now: Timestamp) -> Timestamp { now.adding(seconds: -WakePace.shortestSeconds) }

    private func isForgettable(_ wake: DeviceWake, at now: Timestamp) -> Bool {
        wake.dueAt == nil && !wake.isUnderWay && wake.pace.isForgettable(at: now)
    }

    private func put(_ dueAt: Timestamp, in queue: PushQueue, at now: Timestamp, _ ruling: inout WakeRuling) {
        var wake = ruling.reach.wake ?? DeviceWake()
        wake.dueAt = dueAt
        ruling.reach.wake = wake
        ruling.changes.row = .due(queue, dueAt, at: now)
    }

    private func remove(_ ruling: inout WakeRuling) {
        ruling.reach.wake = nil
        ruling.changes.row = .removed
    }
}
