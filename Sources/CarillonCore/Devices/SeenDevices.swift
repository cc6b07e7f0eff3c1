import Synchronization

/// Collects the devices that connected and must be marked as seen in the store, so that a connection does not wait for a write.
package final class SeenDevices: Sendable {
    private let devices = Mutex<[DeviceSerial: Bool]>([:])
    private let registered = Mutex<Set<DeviceSerial>>([])
    private let time: TimeSource
    private static let capacity = 100_000

    init(time: TimeSource) { self.time = time }

    /// Notes that a device proved its identity when it connected.
    package func saw(_ device: Device, by proof: DeviceProof) {
        switch proof {
        case .credential: sawRegistered(device)
        case .userAgent:
            let isFresh = device.isAnonymous && isMarked(device, sinceSeconds: Self.anonymousSeconds)
            if !isFresh { saw(device.serial) }
        }
    }

    private static let anonymousSeconds: Int64 = 3600

    /// Notes that a registered device proved its identity. The store marks the device at most once a day.
    func sawRegistered(_ device: Device) {
        came(device.serial)
        guard !isMarked(device, sinceSeconds: Self.registeredSeconds) else { return }
        saw(device.serial, isAnonymous: device.isAnonymous)
    }

    private static let registeredSeconds: Int64 = 86_400

    /// Whether the device was marked as seen within the last `seconds`. A mark in the future, from a clock that was ahead, does
    /// not count.
    private func isMarked(_ device: Device, sinceSeconds seconds: Int64) -> Bool {
        let now = time.now()
        return device.seenAt <= now && now < device.seenAt.adding(seconds: seconds)
    }

    func saw(_ device: DeviceSerial, isAnonymous: Bool = true) {
        devices.withLock { devices in
            // If the table is full, the device is marked at its next connection.
            if devices[device] != nil || devices.count < Self.capacity { devices[device] = isAnonymous }
        }
    }

    /// Notes that a registered device proved its identity. The time of its last mark does not matter.
    func came(_ device: DeviceSerial) {
        registered.withLock { if $0.count < Self.capacity { $0.insert(device) } }
    }

    /// Adds devices again that could not be marked.
    func putBack(cameAgain: some Sequence<DeviceSerial>) {
        registered.withLock { registered in
            for device in cameAgain where registered.count < Self.capacity { registered.insert(device) }
        }
    }

    /// - Parameter shard: The shard of the devices that are taken; nil for all.
    func takeConnected(in shard: Shard? = nil) -> [DeviceSerial] {
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
