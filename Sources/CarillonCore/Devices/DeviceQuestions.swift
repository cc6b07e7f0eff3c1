package import CarillonWire

// What a home asks the other homes about devices and apps. Each home answers for its devices.

/// An app was deleted. Each home forgets the app.
package struct AppDeleted: HomeQuestion {
    package typealias Answer = Void
    package var app: AppSerial
    package var shard: Shard? { nil }
}

/// Devices were removed. The home forgets their channels, and ends their sessions.
package struct DevicesRemoved: HomeQuestion {
    package typealias Answer = Void
    package var removed: RemovedDevices
    package var shard: Shard? { nil }
}

/// A key was revoked with its devices. The home removes those that are its devices.
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
