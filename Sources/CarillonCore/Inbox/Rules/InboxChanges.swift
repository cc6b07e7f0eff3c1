/// The rows that a batch changes: its net effect.
package struct InboxChanges: Equatable, Sendable {
    /// An envelope that waits from now on.
    package struct Arrival: Equatable, Sendable {
        package var envelope: Envelope
        package var topic: String?
        package var wake: WakeRequest?

        package init(envelope: Envelope, topic: String?, wake: WakeRequest? = nil) {
            self.envelope = envelope
            self.topic = topic
            self.wake = wake
        }

        package var row: InboxRow { InboxRow(envelope, topic: topic) }
    }

    /// An origin that ends, together with its waiting envelopes.
    package struct End: Equatable, Sendable {
        package var origin: DeviceOrigin
        package var reason: DisconnectReason
        package var at: Timestamp

        package init(origin: DeviceOrigin, reason: DisconnectReason, at: Timestamp) {
            self.origin = origin
            self.reason = reason
            self.at = at
        }
    }

    /// Rows that waited in the store, and do not wait any more.
    package var departures: [InboxRow] = []
    /// The departures of which the origins are notified. Each row has its settlement.
    package var notified: [InboxRow] = []
    /// Outcomes that are stored. Each row has its settlement.
    package var outcomes: [InboxRow] = []
    /// Origins that end after the departures, whose settlements are their own.
    package var ends: [End] = []
    package var arrivals: [Arrival] = []
    /// Codes that are added to outcomes, by position.
    package var amendments: [Int64: Int] = [:]
    package var claims: [ClaimKey: UsedClaim] = [:]
    package var effects: [Effect] = []
    /// Effects that were outdated and not applied. The leases of their work are released.
    package var vainEffects: [Effect] = []
    package var usage: [DeviceSerial: InboxUsage.Change] = [:]
    /// The number of the oldest outcomes of a device that are removed after all other changes.
    package var forgottenOutcomes: [DeviceSerial: Int] = [:]
    /// The number of the oldest idempotency keys of a device that are removed after all other changes.
    package var forgottenKeys: [DeviceSerial: Int] = [:]
    /// Devices that reported a result themselves, with the time: these devices are awake.
    package var answered: [DeviceSerial: Timestamp] = [:]
    package var tally = InboxTally()

    package init() {}
}
