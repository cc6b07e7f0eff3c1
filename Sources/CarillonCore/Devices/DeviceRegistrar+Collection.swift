/// Devices that nobody uses any more are removed.
extension DeviceRegistrar {
    /// Removes devices for a reason, a few at a time. A device that is connected is not idle, nor is one that came since it was
    /// found. A device that moves to another home is left out.
    ///
    /// - Parameters:
    ///   - shards: The shards whose devices are removed.
    ///   - limitSeconds: For how long a device must not have been seen.
    /// - Returns: The devices that were removed. There may be more when there are as many as `atOnce`.
    package func collect(
        _ reason: CollectionReason, in shards: ShardSet, afterSeconds limitSeconds: Int, by retention: RetentionTime,
        atOnce: Int
    ) async throws -> [IdleDevice] {
        let cutoff = retention.cutoff(afterSeconds: Int64(limitSeconds))
        var collected: [IdleDevice] = []
        for device in try await devices.idleDevices(reason, in: shards, by: cutoff, limit: atOnce) {
            do {
                // A device that has moved since it was found can be connected at its new home, and not be marked yet.
                try await home.inside(of: device.serial) {
                    if try await collect(device, reason, cutoff, at: retention.now) { collected.append(device) }
                }
            } catch let fault as StoreFault where fault.isOfHome {
                // The home that has the device later finds it again.
            }
        }
        return collected
    }

    /// - Returns: Whether the device was removed.
    private func collect(
        _ device: IdleDevice, _ reason: CollectionReason, _ cutoff: RetentionCutoff, at now: Timestamp
    ) async throws -> Bool {
        guard !home.isConnected(device.serial) else {
            seen.saw(device.serial, isAnonymous: reason.isOfAnonymous)
            return false
        }
        guard let removed = try await devices.deleteDevice(device.serial, unlessSeenAfter: cutoff, at: now) else {
            return false
        }
        removals.note(removed)
        return true
    }
}
