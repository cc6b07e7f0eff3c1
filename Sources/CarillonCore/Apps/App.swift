package import CarillonWire

/// A namespace: what keys, devices and their limits belong to.
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
