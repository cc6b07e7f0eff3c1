package import CarillonWire

// Requests of a home to the other homes about devices and apps. Each home answers for its own devices.

/// An app was deleted. Each home removes the app from memory.
package struct AppDeleted: HomeQuestion {
    package typealias Answer = Void
    package var app: AppSerial
    package var shard: Shard? { nil }
}

/// Devices were removed. The home removes their channels from its directory, and ends their sessions.
package struct DevicesRemoved: HomeQuestion {
    package typealias Answer = Void
    package var removed: RemovedDevices
    package var shard: Shard? { nil }
}

/// A key was revoked together with its devices. The home removes its own devices of the key.
package struct KeyDevicesEnded: HomeQuestion {
    package typealias Answer = Void
    package var key: KeyID
    package var app: AppID
    package var shard: Shard? { nil }
}

/// A hint: the status of a device changed. The home notifies the device.
package struct StatusChanged: HomeQuestion {
    package typealias Answer = Void
    package var shard: Shard? { nil }
}
