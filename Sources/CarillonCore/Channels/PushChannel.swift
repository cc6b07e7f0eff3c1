package import CarillonWire

/// A named address of a device, as the store keeps it while it is open. A closed channel has no record.
package struct PushChannel: Equatable, Sendable {
    package var serial: ChannelSerial
    package var device: DeviceSerial
    package var app: AppSerial
    package var id: ChannelID
    package var name: String?
    /// The only VAPID key that may sign messages (RFC 8292 section 4), as an uncompressed point. Nil: every sender with the token
    /// may send.
    package var vapidKey: [UInt8]?
    /// How the channel's messages wake a sleeping device.
    package var wake: WakeMode
    package var createdAt: Timestamp

    package init(
        serial: ChannelSerial, device: DeviceSerial, app: AppSerial, id: ChannelID, name: String?, vapidKey: [UInt8]?,
        wake: WakeMode = .background, createdAt: Timestamp
    ) {
        self.serial = serial
        self.device = device
        self.app = app
        self.id = id
        self.name = name
        self.vapidKey = vapidKey
        self.wake = wake
        self.createdAt = createdAt
    }

    package var origin: Origin { .channel(serial, id) }
}
