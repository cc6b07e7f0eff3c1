/// The state of a subscription that decides whether a firing is valid.
///
/// - *subscribed*: the subscription can fire. A firing with the policy ``Policy/once`` leads to *triggered*.
/// - *triggered*: the subscription fired once. A change leads to *subscribed*.
///
/// Each change of the subscription increments ``revision`` and arms the subscription. A firing contains the revision with which
/// the condition was evaluated. A firing with an earlier revision is ignored.
package struct SubscriptionMachine: Equatable, Sendable {
    package enum Policy: Equatable, Sendable {
        case once
        /// Fires with each update after which the condition holds, if the condition did not hold before the update. A condition
        /// that holds when the subscription is armed is not a crossing.
        case everyCrossing
        /// Fires with each update after which the condition holds, except during the cool-down after the last firing.
        case every(coolDownSeconds: Int64)
    }

    package enum Status: String, Sendable, CaseIterable {
        case subscribed
        case triggered
    }

    package enum Firing: Equatable, Sendable {
        /// The firing is valid: the device must be notified.
        case counts
        /// The cool-down has not ended. The next update after which the condition holds fires again.
        case tooSoon
        /// The subscription was changed, fired or paused after the condition was evaluated.
        case late
    }

    package private(set) var policy: Policy
    package private(set) var status = Status.subscribed
    /// When the status last changed.
    package private(set) var statusAt: Timestamp
    package private(set) var revision: Int64 = 1
    package private(set) var lastFiredAt: Timestamp?
    /// Whether the device is suspended. Conditions of a suspended device are not evaluated, and the subscription keeps its
    /// status.
    package private(set) var isPaused = false

    package init(_ policy: Policy, at now: Timestamp) {
        self.policy = policy
        statusAt = now
    }

    /// Restores a stored state.
    package init(
        _ policy: Policy, _ status: Status, at statusAt: Timestamp, revision: Int64, lastFiredAt: Timestamp?, isPaused: Bool
    ) {
        self.policy = policy
        self.status = status
        self.statusAt = statusAt
        self.revision = revision
        self.lastFiredAt = lastFiredAt
        self.isPaused = isPaused
    }

    /// Whether the condition is evaluated.
    package var isArmed: Bool { status == .subscribed && !isPaused }

    /// Applies a firing of the condition, if the firing is valid.
    ///
    /// - Parameter revision: The revision with which the condition was evaluated.
    package mutating func fire(ofRevision revision: Int64, at now: Timestamp) -> Firing {
        guard revision == self.revision, isArmed else { return .late }
        if case .every(let seconds) = policy, let lastFiredAt, now >= lastFiredAt,
            now < lastFiredAt.adding(seconds: seconds)
        {
            return .tooSoon
        }
        lastFiredAt = now
        if policy == .once {
            status = .triggered
            statusAt = now
        }
        return .counts
    }

    /// Applies a change of the subscription, and arms the subscription also if nothing differs. A new policy resets the
    /// cool-down.
    package mutating func change(_ policy: Policy? = nil, at now: Timestamp) {
        revision += 1
        if let policy, policy != self.policy {
            self.policy = policy
            lastFiredAt = nil
        }
        guard status == .triggered else { return }
        status = .subscribed
        statusAt = now
    }

    /// Notes that the device was suspended or resumed. Returns whether this changed the state.
    package mutating func pause(_ isPaused: Bool) -> Bool {
        guard isPaused != self.isPaused else { return false }
        self.isPaused = isPaused
        return true
    }
}
