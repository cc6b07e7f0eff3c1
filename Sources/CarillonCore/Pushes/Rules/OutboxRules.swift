/// Decides which pushes of the outbox are sent or sent again, what an answer means for them, and how long they are kept.
///
/// The rules read nothing. They receive facts and return the changes of rows, and request the facts that are missing.
package struct OutboxRules: Sendable {
    /// The number of seconds for which a push is kept after its end.
    let retentionSeconds: Int64

    package init(retentionSeconds: Int64 = InboxLimits().outcomeRetentionSeconds) {
        self.retentionSeconds = retentionSeconds
    }

    // MARK: Ending

    /// The reason of a push that cannot be read.
    package static let unreadable = "unreadable"

    /// Returns the end of a push.
    ///
    /// - Parameter awaitsAddress: Whether the push is sent again when the device has another address. An alert is then kept
    ///   as long as its message.
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

    /// Returns the time until which a push is kept that is cancelled now.
    package func cancelledUntil(_ now: Timestamp) -> Timestamp { now.adding(seconds: retentionSeconds) }

    // MARK: Limits

    /// Returns the number of finished pushes of a device that are removed now.
    package func excess(of kept: Int) -> Int {
        let most = PushLimits.keptPerDevice + PushLimits.keptPerDevice / 4
        return kept > most ? kept - PushLimits.keptPerDevice : 0
    }

    // MARK: Addresses

    /// - Parameter pushes: All pushes of a device that were not accepted, the oldest first.
    package func readdress(
        _ pushes: [UnacceptedPush], to queue: PushQueue, hasOtherAddress: Bool, at now: Timestamp
    ) -> Readdressing {
        let waiting = pushes.filter { isUnaccepted($0, queue, hasOtherAddress: hasOtherAddress, at: now) }
        let alerts = UnacceptedAlerts(
            waiting.map { push in
                let keepsTime = push.state == .scheduled && !(hasOtherAddress && push.hasReason)
                return UnacceptedAlerts.Alert(serial: push.serial, dueAt: keepsTime ? push.dueAt : nil)
            }, at: now)
        var changes = Readdressing()
        changes.sent = alerts.sent
        // Rejected pushes stay rejected.
        let rejected = Set(waiting.lazy.filter { $0.state == .rejected }.map(\.serial))
        changes.folded = alerts.folded.map { Readdressing.Fold(serial: $0, isCancelled: !rejected.contains($0)) }
        let decided = Set(waiting.map(\.serial))
        for push in pushes where !decided.contains(push.serial) {
            switch push.state {
            case .scheduled:
                // The vendor's answer about the former address does not delay the push.
                let isFree = hasOtherAddress && push.hasReason
                changes.moved.append(.init(serial: push.serial, dueAt: isFree ? now : push.dueAt ?? now))
            // The push goes to the push queue when it is tried again.
            case .leased, .parked: changes.movesUnscheduled = true
            case .handed, .rejected, .cancelled, .expired: break
            }
        }
        return changes
    }

    /// Whether an alert was not accepted because of the former address, or waits for an address.
    private func isUnaccepted(
        _ push: UnacceptedPush, _ queue: PushQueue, hasOtherAddress: Bool, at now: Timestamp
    ) -> Bool {
        guard push.kind.isOfOneEnvelope, push.expiresAt > now else { return false }
        switch push.state {
        case .scheduled:
            let isOfAddress = hasOtherAddress && push.hasReason
            return (push.dueAt == nil || push.queue != queue.number || isOfAddress)
                && (push.hasEnvelope || push.kind.hasCopy)
        case .rejected: return push.awaitsAddress && push.hasEnvelope
        case .parked: return push.awaitsAddress && hasOtherAddress && push.hasEnvelope
        case .leased, .handed, .cancelled, .expired: return false
        }
    }

    // MARK: Parked pushes

    package enum RequeueVerdict: Equatable, Sendable {
        /// Make it the push of its device's wake, if the wake has no push under way, and decide again.
        case needsWake
        case due
        /// Another wake is under way.
        case cancelled
    }

    /// Decides on a parked push that an operator has tried again.
    ///
    /// - Parameters:
    ///   - kind: Nil if it is unknown.
    ///   - hasWake: Whether the push became the push of its device's wake; nil if that was not tried.
    package func requeue(_ kind: PushKind?, hasWake: Bool?) -> RequeueVerdict {
        if let kind, kind.isOfOneEnvelope { return .due }
        return hasWake.map { $0 ? .due : .cancelled } ?? .needsWake
    }

    // MARK: Time

    /// Returns the latest values of a push that is removed: the time from which it can be removed, and the counter at
    /// its end.
    package func cutoff(by retention: RetentionTime) -> RetentionCutoff {
        RetentionCutoff(wall: retention.now, served: retention.cutoff(afterSeconds: retentionSeconds).served)
    }

    /// Returns the change of a push that was not sent before it expired.
    package func timeOver(of kind: PushKind, in state: PushState, expiresAt: Timestamp, at now: Timestamp) -> PushChange {
        // The answer to a push that is under way comes soon, or its lease ends.
        guard state == .scheduled else { return .kept(until: now.adding(seconds: LeasedPush.leaseSeconds)) }
        return .finished(finish(kind, as: .expired, expiresAt: expiresAt, at: now))
    }

    /// Whether a removed push is replaced by a wake for its message. This applies to a parked push, whose message would not
    /// be delivered otherwise.
    package func isFoldedWhenForgotten(_ kind: PushKind, in state: PushState) -> Bool {
        state == .parked && kind.isOfOneEnvelope
    }
}
