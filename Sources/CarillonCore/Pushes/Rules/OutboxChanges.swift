/// A push that is over, or parked.
package struct PushFinish: Equatable, Sendable {
    package var kind: PushKind
    package var state: PushState
    package var reason: String?
    package var at: Timestamp
    /// When it may be forgotten.
    package var endsAt: Timestamp
    /// Whether another address of the device corrects it.
    package var awaitsAddress: Bool
    /// Whether the copy of its envelope is removed.
    package var removesCopy: Bool
}

/// What becomes of the row of a push.
package enum PushChange: Equatable, Sendable {
    case finished(PushFinish)
    /// Is leased once more. Counts as an attempt.
    case leased(until: Timestamp, fence: Int64)
    /// Waits until its device can be reached.
    case suspended
    /// Is due later, for the pace of alerts.
    case putOff(Timestamp, at: Timestamp)
    /// Is tried again. `attempts` is taken from the number of attempts.
    case retried(Timestamp, reason: String, attempts: Int, at: Timestamp)
    /// Is tried in the other environment.
    case elsewhere(PushLane, at: Timestamp)
    /// Begins anew with another address.
    case restarted(PushLane, at: Timestamp)
    /// Its lease is waited for.
    case kept(until: Timestamp)
}

/// What becomes of pushes when their device has another address, or can be reached again.
package struct Readdressing: Equatable, Sendable {
    /// A scheduled push that goes to another lane.
    package struct Move: Equatable, Sendable {
        package var serial: Int64
        package var dueAt: Timestamp

        package init(serial: Int64, dueAt: Timestamp) {
            self.serial = serial
            self.dueAt = dueAt
        }
    }

    /// An alert that a wake stands for.
    package struct Fold: Equatable, Sendable {
        package var serial: Int64
        package var isCancelled: Bool

        package init(serial: Int64, isCancelled: Bool) {
            self.serial = serial
            self.isCancelled = isCancelled
        }
    }

    /// Alerts that begin anew. A scheduled alert keeps the moment of its state.
    package var sent: [UnacceptedAlerts.Sending] = []
    package var folded: [Fold] = []
    package var moved: [Move] = []
    /// Whether the device has pushes that are under way, or parked and in neither list. They all go to the lane, and stay as they are
    /// otherwise.
    package var movesUnscheduled = false

    package init() {}
}
