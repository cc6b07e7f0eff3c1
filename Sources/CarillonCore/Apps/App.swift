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

/// The store's number for an app; never used twice.
package struct AppSerial: Hashable, Sendable {
    package var rawValue: Int64
    package init(_ rawValue: Int64) { self.rawValue = rawValue }
}
