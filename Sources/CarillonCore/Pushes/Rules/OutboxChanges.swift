/// The end of a push that is over, or parked.
package struct PushFinish: Equatable, Sendable {
    package var kind: PushKind
    package var state: PushState
    package var reason: String?
    package var at: Timestamp
    /// The time from which the push can be removed.
    package var endsAt: Timestamp
    /// Whether the push is sent again when the device has another address.
    package var awaitsAddress: Bool
    /// Whether the copy of its envelope is removed.
    package var removesCopy: Bool
}

/// The change of the row of a push.
package enum PushChange: Equatable, Sendable {
    case finished(PushFinish)
    /// The push is leased once more. The lease counts as an attempt.
    case leased(until: Timestamp, fence: Int64)
    /// The push waits until its device can be reached.
    case suspended
    /// The push is due later, because of the pace of alerts.
    case putOff(Timestamp, at: Timestamp)
    /// The push is tried again. `attempts` is subtracted from the number of attempts.
    case retried(Timestamp, reason: String, attempts: Int, at: Timestamp)
    /// The push is tried in the other environment.
    case elsewhere(PushQueue, at: Timestamp)
    /// The push begins anew with another address.
    case restarted(PushQueue, at: Timestamp)
    /// The push stays until the end of its lease.
    case kept(until: Timestamp)
}

/// The changes of pushes when their device has another address, or can be reached again.
package struct Readdressing: Equatable, Sendable {
    /// A scheduled push that goes to another push queue.
    package struct Move: Equatable, Sendable {
        package var serial: Int64
        package var dueAt: Timestamp

        package init(serial: Int64, dueAt: Timestamp) {
            self.serial = serial
            self.dueAt = dueAt
        }
    }

    /// An alert that is replaced by a wake.
    package struct Fold: Equatable, Sendable {
        package var serial: Int64
        package var isCancelled: Bool

        package init(serial: Int64, isCancelled: Bool) {
            self.serial = serial
            self.isCancelled = isCancelled
        }
    }

    /// Alerts that begin anew. A scheduled alert keeps the time of its state.
    package var sent: [UnacceptedAlerts.Sending] = []
    package var folded: [Fold] = []
    package var moved: [Move] = []
    /// Whether the device has pushes that are under way, or parked and in neither list. All of them go to the push queue, and do
    /// not change otherwise.
    package var movesUnscheduled = false

    package init() {}
}
