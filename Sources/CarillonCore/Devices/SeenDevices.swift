import Synchronization

/// Which devices connected lately and are to be marked so in the store, gathered so that connecting waits for no write.
final class SeenDevices: Sendable {
    private let devices = Mutex<Set<DeviceSerial>>([])
    private static let capacity = 100_000

    func saw(_ device: DeviceSerial) {
        devices.withLock { devices in
            // One that finds no place is marked at its next connection.
            if devices.count < Self.capacity { devices.insert(device) }
        }
    }

    func take() -> [DeviceSerial] {
        devices.withLock { devices in
            defer { devices = [] }
            return Array(devices)
        }
    }
}
