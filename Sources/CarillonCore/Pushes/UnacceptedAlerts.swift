/// Decides which alerts of a device are sent to its new address: the alerts that the vendor's service did not accept at the
/// former address.
///
/// The newest ``PushLimits/alertsPerDevice`` alerts are sent, the oldest of them first, at the pace of alerts. A wake replaces
/// the other alerts.
package struct UnacceptedAlerts: Equatable, Sendable {
    /// One alert, by its number in the outbox.
    package struct Alert: Equatable, Sendable {
        package var serial: Int64
        /// The planned time of the alert; nil if the alert waited for the address.
        package var dueAt: Timestamp?

        package init(serial: Int64, dueAt: Timestamp? = nil) {
            self.serial = serial
            self.dueAt = dueAt
        }
    }

    package struct Sending: Equatable, Sendable {
        package var serial: Int64
        package var dueAt: Timestamp
    }

    package var sent: [Sending]
    /// The alerts that a wake replaces.
    package var folded: [Int64]

    /// - Parameter waiting: The alerts that were not accepted, the oldest first.
    package init(_ waiting: [Alert], at now: Timestamp) {
        let newest = waiting.suffix(PushLimits.alertsPerDevice)
        folded = waiting.dropLast(newest.count).map(\.serial)
        sent = newest.enumerated().map { place, alert in
            let turn = now.adding(seconds: Int64(place) * PushLimits.secondsBetweenAlerts)
            return Sending(serial: alert.serial, dueAt: max(turn, alert.dueAt ?? turn))
        }
    }
}
