import CarillonWire

/// The decision on the answer to a push that was sent.
extension OutboxRules {
    package struct EndRuling: Equatable, Sendable {
        /// Nil if the answer does not count.
        package var change: PushChange?
        /// The device as it is stored, if the answer suspends it.
        package var suspended: DeviceRegistration?
        /// Whether the environment that accepted the token is stored with the token.
        package var keepsEnvironment = false

        package init(_ change: PushChange? = nil) { self.change = change }

        /// The state of the push after the change. A push that is tried again is scheduled.
        package var state: PushState { if case .finished(let finish) = change { finish.state } else { .scheduled } }
    }

    package enum EndVerdict: Equatable, Sendable {
        /// Read the registration of the device, and decide again.
        case needsRegistration
        case decided(EndRuling)
    }

    /// Decides as if the lease were in force. The decision is written only if the lease is in force.
    package func end(_ end: PushEnd, knowing facts: EndFacts) -> EndVerdict {
        if isOfAddress(end.verdict) {
            guard facts.isRegistrationRead else { return .needsRegistration }
            if let change = restart(end, facts.registration) { return .decided(EndRuling(change)) }
        }
        switch end.verdict {
        case .handed:
            var ruling = EndRuling(finished(end, .handed))
            ruling.keepsEnvironment = end.isElsewhere
            return .decided(ruling)
        case .again(let dueAt, let isSpent, let reason):
            return .decided(EndRuling(.retried(dueAt, reason: reason, attempts: isSpent ? 0 : 1, at: end.at)))
        case .elsewhere:
            return .decided(EndRuling(end.queue.other.map { .elsewhere($0, at: end.at) }))
        case .parked(let reason, let isOfAddress):
            return .decided(park(end, because: reason, awaitsAddress: isOfAddress))
        case .tokenDead(let reason, let since):
            return .decided(tokenDied(end, reason, since, knowing: facts))
        }
    }

    /// Parks a push. This also applies to a push that cannot be read, so that it does not delay other pushes.
    package func park(_ end: PushEnd, because reason: String, awaitsAddress: Bool = false) -> EndRuling {
        EndRuling(finished(end, .parked, reason, awaitsAddress: awaitsAddress))
    }

    /// Whether another address of the device can lead to another answer.
    private func isOfAddress(_ verdict: PushEnd.Verdict) -> Bool {
        switch verdict {
        case .handed, .parked(_, isOfAddress: false): false
        case .again, .elsewhere, .tokenDead, .parked(_, isOfAddress: true): true
        }
    }

    /// Returns the restart of a push whose answer concerns a former address of the device. Returns nil if the answer concerns the
    /// present address.
    private func restart(_ end: PushEnd, _ registration: DeviceRegistration?) -> PushChange? {
        guard let registration, registration.addressRevision != end.addressRevision, registration.status == .registered,
            let address = registration.profile.address
        else { return nil }
        return .restarted(PushQueue(app: end.queue.app, environment: address.environment), at: end.at)
    }

    /// Suspends the device, unless it has another token or confirmed its token since. Then the push is tried again.
    private func tokenDied(
        _ end: PushEnd, _ reason: String, _ since: Timestamp?, knowing facts: EndFacts
    ) -> EndRuling {
        var ruling = EndRuling(finished(end, .rejected, reason, awaitsAddress: true))
        guard let current = facts.registration else { return ruling }
        ruling.suspended = RegistrationRules.suspend(
            current, because: .tokenDead, ofRevision: end.addressRevision, knownSince: since, at: end.at)
        if ruling.suspended == nil, current.status == .registered, current.profile.address != nil {
            // `restart` decides about an answer that concerns an earlier address.
            let dueAt = end.at.adding(seconds: PushRules.staleSeconds)
            return EndRuling(.retried(dueAt, reason: reason, attempts: 0, at: end.at))
        }
        return ruling
    }

    private func finished(
        _ end: PushEnd, _ state: PushState, _ reason: String? = nil, awaitsAddress: Bool = false
    ) -> PushChange {
        .finished(
            finish(
                end.kind, as: state, because: reason, awaitsAddress: awaitsAddress, expiresAt: end.expiresAt, at: end.at))
    }
}
