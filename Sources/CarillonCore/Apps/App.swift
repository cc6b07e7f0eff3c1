package import CarillonWire

/// A namespace that owns keys and devices and has limits.
package struct App: Equatable, Sendable {
    package var serial: AppSerial
    package var id: AppID
    package var createdAt: Timestamp

    package init(serial: AppSerial, id: AppID, createdAt: Timestamp) {
        self.serial = serial
        self.id = id
        self.createdAt = createdAt
    }
}
