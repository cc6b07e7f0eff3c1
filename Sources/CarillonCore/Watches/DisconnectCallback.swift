/// A callback that notifies a backend that its channel ended. It needs no other record, because the channel and its watch are
/// removed.
package struct DisconnectCallback: Equatable, Sendable {
    package var serial: Int64
    package var channel: ChannelSerial
    package var address: CallAddress
    package var sealed: Watch.Sealed
    /// The same identifier for each attempt, by which the receiver recognizes a repetition.
    package var webhookID: String
    package var reason: DisconnectReason
    package var endedAt: Timestamp
    package var machine: CallbackMachine

    package init(
        serial: Int64, channel: ChannelSerial, address: CallAddress, sealed: Watch.Sealed, webhookID: String,
        reason: DisconnectReason, endedAt: Timestamp, machine: CallbackMachine
    ) {
        self.serial = serial
        self.channel = channel
        self.address = address
        self.sealed = sealed
        self.webhookID = webhookID
        self.reason = reason
        self.endedAt = endedAt
        self.machine = machine
    }
}
