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

    /// - Parameter shard: The shard of the devices that are taken; nil for all.
    func takeThoseWhoCame(in shard: Shard? = nil) -> [DeviceSerial] {
        registered.withLock { registered in
            guard let shard else {
                defer { registered = [] }
                return Array(registered)
            }
            let taken = registered.filter { Shard(of: $0) == shard }
            registered.subtract(taken)
            return Array(taken)
        }
    }

    /// - Parameter shard: The shard of the devices that are taken; nil for all.
    func take(in shard: Shard? = nil) -> (anonymous: [DeviceSerial], registered: [DeviceSerial]) {
        let all = devices.withLock { devices in
            guard let shard else {
                defer { devices = [:] }
                return devices
            }
            let taken = devices.filter { Shard(of: $0.key) == shard }
            for device in taken.keys { devices[device] = nil }
            return taken
        }
        return (all.filter(\.value).map(\.key), all.filter { !$0.value }.map(\.key))
    }
}
