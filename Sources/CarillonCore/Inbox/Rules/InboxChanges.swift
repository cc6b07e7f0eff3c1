/// What is to be written, and nothing else: the net effect of a batch.
package struct InboxChanges: Equatable, Sendable {
    /// Waits from now on.
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

    /// An origin that ends, and with it what waits of it.
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

    /// Waited, and waits no more.
    package var departures: [InboxRow] = []
    /// Of those, what their origins are told of; each row has its settlement.
    package var notified: [InboxRow] = []
    /// Outcomes to be kept; each row has its settlement.
    package var outcomes: [InboxRow] = []
    /// After the departures, which had ends of their own.
    package var ends: [End] = []
    package var arrivals: [Arrival] = []
    /// A code that is added to an outcome.
    package var amendments: [Int64: Int] = [:]
    package var claims: [ClaimKey: UsedClaim] = [:]
    package var effects: [Effect] = []
    /// These did not count, and were not told of: what was leased for them is free again.
    package var vainEffects: [Effect] = []
    package var usage: [DeviceSerial: InboxUsage.Change] = [:]
    /// So many of the oldest outcomes of a device are forgotten, after all else.
    package var forgottenOutcomes: [DeviceSerial: Int] = [:]
    /// The same of its idempotency keys.
    package var forgottenKeys: [DeviceSerial: Int] = [:]
    /// Devices that answered for an envelope themselves, and when: they are awake.
    package var answered: [DeviceSerial: Timestamp] = [:]
    package var tally = InboxTally()

    package init() {}
}
