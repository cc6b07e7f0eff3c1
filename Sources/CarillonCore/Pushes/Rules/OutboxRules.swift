/// Decides which pushes of the outbox are sent, again or at all, what an answer means for them, and how long they are kept.
///
/// It does not look anything up. It receives facts and returns the changes of rows; if more must be known, it says what.
package struct OutboxRules: Sendable {
    /// How long a push that is over is kept.
    let retentionSeconds: Int64

    package init(retentionSeconds: Int64 = InboxLimits().outcomeRetentionSeconds) {
        self.retentionSeconds = retentionSeconds
    }

    // MARK: Ending

    /// The reason of a push that cannot be read.
    package static let unreadable = "unreadable"

    /// What a push was for is done, or never will be.
    ///
    /// - Parameter awaitsAddress: Whether another address of the device corrects it. An alert is then kept as long as its message, and
    ///   sent to the next address.
    package func finish(
        _ kind: PushKind, as state: PushState, because reason: String? = nil, awaitsAddress: Bool = false,
        expiresAt: Timestamp, at now: Timestamp
    ) -> PushFinish {
        let awaitsAddress = awaitsAddress && kind.isOfOneEnvelope
        let endsAt = cancelledUntil(now)
        return PushFinish(
            kind: kind, state: state, reason: reason, at: now, endsAt: awaitsAddress ? max(endsAt, expiresAt) : endsAt,
            awaitsAddress: awaitsAddress, removesCopy: kind.hasCopy && state != .parked)
    }

    /// How long a push is kept that is cancelled now.
    package func cancelledUntil(_ now: Timestamp) -> Timestamp { now.adding(seconds: retentionSeconds) }

    // MARK: Limits

    /// Returns how many of the pushes of a device are forgotten: some at a time.
    package func excess(of kept: Int) -> Int {
        let most = PushLimits.keptPerDevice + PushLimits.keptPerDevice / 4
        return kept > most ? kept - PushLimits.keptPerDevice : 0
    }

    // MARK: Addresses

    /// - Parameter pushes: All of a device that were not accepted, the oldest first.
    package func readdress(
        _ pushes: [UnacceptedPush], to lane: PushLane, hasOtherAddress: Bool, at now: Timestamp
    ) -> Readdressing {
        let waiting = pushes.filter { isUnaccepted($0, lane, hasOtherAddress: hasOtherAddress, at: now) }
        let alerts = UnacceptedAlerts(
            waiting.map { push in
                let keepsTime = push.state == .scheduled && !(hasOtherAddress && push.hasReason)
                return UnacceptedAlerts.Alert(serial: push.serial, dueAt: keepsTime ? push.dueAt : nil)
            }, at: now)
        var changes = Readdressing()
        changes.sent = alerts.sent
        // What was rejected remains so.
        let rejected = Set(waiting.lazy.filter { $0.state == .rejected }.map(\.serial))
        changes.folded = alerts.folded.map { Readdressing.Fold(serial: $0, isCancelled: !rejected.contains($0)) }
        let decided = Set(waiting.map(\.serial))
        for push in pushes where !decided.contains(push.serial) {
            switch push.state {
            case .scheduled:
                // What the vendor said of the address before holds up nothing.
                let isFree = hasOtherAddress && push.hasReason
                changes.moved.append(.init(serial: push.serial, dueAt: isFree ? now : push.dueAt ?? now))
            // It goes there when it is tried again.
            case .leased, .parked: changes.movesUnscheduled = true
            case .handed, .rejected, .cancelled, .expired: break
            }
        }
        return changes
    }

    /// Whether an alert was not accepted because of the address before, or waits for one.
    private func isUnaccepted(
        _ push: UnacceptedPush, _ lane: PushLane, hasOtherAddress: Bool, at now: Timestamp
    ) -> Bool {
        guard push.kind.isOfOneEnvelope, push.expiresAt > now else { return false }
        switch push.state {
        case .scheduled:
            let isOfAddress = hasOtherAddress && push.hasReason
            return (push.dueAt == nil || push.lane != lane.number || isOfAddress)
                && (push.hasEnvelope || push.kind.hasCopy)
        case .rejected: return push.awaitsAddress && push.hasEnvelope
        case .parked: return push.awaitsAddress && hasOtherAddress && push.hasEnvelope
        case .leased, .handed, .cancelled, .expired: return false
        }
    }

    // MARK: Parked pushes

    package enum RequeueVerdict: Equatable, Sendable {
        /// Make it the push of its device's wake, if the wake has none under way, and decide again.
        case needsWake
        case due
        /// Another wake is under way.
        case cancelled
    }

    /// Somebody had parked pushes tried again.
    ///
    /// - Parameters:
    ///   - kind: Nil if it is unknown.
    ///   - hasWake: Whether it became the push of its device's wake; nil if that was not tried.
    package func requeue(_ kind: PushKind?, hasWake: Bool?) -> RequeueVerdict {
        if let kind, kind.isOfOneEnvelope { return .due }
        return hasWake.map { $0 ? .due : .cancelled } ?? .needsWake
    }

    // MARK: Time

    /// The latest values of a push that is forgotten: when that is due, and the counter when it was over.
    package func cutoff(by retention: RetentionTime) -> RetentionCutoff {
        RetentionCutoff(wall: retention.now, served: retention.cutoff(afterSeconds: retentionSeconds).served)
    }

    /// A push was not sent in its time.
    package func timeOver(of kind: PushKind, in state: PushState, expiresAt: Timestamp, at now: Timestamp) -> PushChange {
        // The answer to a push that is under way comes soon, or its lease ends.
        guard state == .scheduled else { return .kept(until: now.adding(seconds: LeasedPush.leaseSeconds)) }
        return .finished(finish(kind, as: .expired, expiresAt: expiresAt, at: now))
    }

    /// Whether a wake stands for the message of a push that is forgotten: nobody looked at it, and nobody will.
    package func isFoldedWhenForgotten(_ kind: PushKind, in state: PushState) -> Bool {
        state == .parked && kind.isOfOneEnvelope
    }
}
