/// A device's standing order, as far as firing goes: whether it is armed, and what becomes of a firing.
///
/// - *subscribed*: it waits on its items.
/// - *triggered*: it fired once and for all, and waits to be removed or armed anew.
///
/// Each change of it has another revision, and arms it. A firing says the revision that it was found with: one that comes late, after
/// a change, counts for nothing.
package struct SubscriptionMachine: Equatable, Sendable {
    package enum Policy: Equatable, Sendable {
        case once
        /// With each update after which the condition holds and did not before. A condition that holds when it is armed is no crossing.
        case everyCrossing
        /// With each update at which the condition holds, but not within so many seconds after the last.
        case every(coolDownSeconds: Int64)
    }

    package enum Status: String, Sendable, CaseIterable {
        case subscribed
        case triggered
    }

    package enum Firing: Equatable, Sendable {
        /// It counts: the device is to be told.
        case counts
        /// It is found again with the next update at which the condition holds.
        case tooSoon
        /// It was changed, fired or paused since it was found.
        case late
    }

    package private(set) var policy: Policy
    package private(set) var status = Status.subscribed
    /// When the status last changed.
    package private(set) var statusAt: Timestamp
    package private(set) var revision: Int64 = 1
    package private(set) var lastFiredAt: Timestamp?
    /// The device is suspended: nothing is evaluated, and nothing is used up.
    package private(set) var isPaused = false

    package init(_ policy: Policy, at now: Timestamp) {
        self.policy = policy
        statusAt = now
    }

    /// As it was stored.
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

    /// Whether its condition is to be watched.
    package var isArmed: Bool { status == .subscribed && !isPaused }

    /// Its condition was found to hold.
    ///
    /// - Parameter revision: With which it was watched.
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

    /// It was changed, if only to arm it.
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

    /// Its device was suspended or resumed. Answers whether that changes anything.
    package mutating func pause(_ isPaused: Bool) -> Bool {
        guard isPaused != self.isPaused else { return false }
        self.isPaused = isPaused
        return true
    }
}
