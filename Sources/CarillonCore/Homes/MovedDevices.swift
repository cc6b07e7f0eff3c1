package import CarillonWire
import Synchronization

/// Keeps the shards of devices whose names do not match their shard: devices from before device identifiers contained the shard.
///
/// A missing or wrong entry costs one more call, to the home that matches the name.
package final class MovedDevices: Sendable {
    private let shards: Mutex<LRUCache<Key, Shard>>

    private enum Key: Hashable, Sendable {
        case id(DeviceID)
        case credential([UInt8])

        init(_ name: DeviceName) {
            switch name {
            case .id(let device, _): self = .id(device)
            case .credential(let hash): self = .credential(hash.bytes)
            }
        }
    }

    /// - Parameter capacity: At most twice as many devices are kept.
    package init(capacity: Int = 65_536) { shards = Mutex(LRUCache(capacity: capacity)) }

    /// Returns the shard of a device, as far as it is known.
    package func shard(of name: DeviceName) -> Shard {
        shards.withLock { $0[Key(name)] } ?? Shard(of: name)
    }

    /// Returns the shard of a device, as far as it is known.
    package func shard(of device: DeviceID) -> Shard {
        shards.withLock { $0[.id(device)] } ?? Shard(of: device)
    }

    /// Notes the shard that a home reported for a device.
    package func note(_ name: DeviceName, in shard: Shard) {
        // Names that contain the shard are not kept.
        shards.withLock { $0[Key(name)] = shard == Shard(of: name) ? nil : shard }
    }

    /// Notes the shard that a home reported for a device.
    package func note(_ device: DeviceID, in shard: Shard) {
        shards.withLock { $0[.id(device)] = shard == Shard(of: device) ? nil : shard }
    }
}

extension Shard {
    /// Returns the shard that the name of a device leads to.
    package init(of name: DeviceName) {
        switch name {
        case .id(let device, _): self.init(of: device)
        case .credential(let hash): self.init(ofUserAgent: hash)
        }
    }
}
