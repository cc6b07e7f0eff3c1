import Synchronization

/// Which devices connected lately and are to be marked so in the store, gathered so that connecting waits for no write.
final class SeenDevices: Sendable {
    private let devices = Mutex<[DeviceSerial: Bool]>([:])
    private let registered = Mutex<Set<DeviceSerial>>([])
    private static let capacity = 100_000

    func saw(_ device: DeviceSerial, isAnonymous: Bool = true) {
        devices.withLock { devices in
            // One that finds no place is marked at its next connection.
            if devices[device] != nil || devices.count < Self.capacity { devices[device] = isAnonymous }
        }
    }

    /// A registered device proved who it is, whenever it was marked last.
    func came(_ device: DeviceSerial) {
        registered.withLock { if $0.count < Self.capacity { $0.insert(device) } }
    }

    /// These could not be marked.
    func putBack(cameAgain: some Sequence<DeviceSerial>) {
        registered.withLock { registered in
            for device in cameAgain where registered.count < Self.capacity { registered.insert(device) }
        }
    }

    func takeThoseWhoCame() -> [DeviceSerial] {
        registered.withLock { registered in
            defer { registered = [] }
            return Array(registered)
        }
    }

    func take() -> (anonymous: [DeviceSerial], registered: [DeviceSerial]) {
        let all = devices.withLock { devices in
            defer { devices = [:] }
            return devices
        }
        return (all.filter(\.value).map(\.key), all.filter { !$0.value }.map(\.key))
    }
}
