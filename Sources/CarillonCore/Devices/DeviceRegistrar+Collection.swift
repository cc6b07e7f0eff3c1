/// The removal of unused devices.
extension DeviceRegistrar {
    /// Removes devices for a reason, a few at a time. Devices that are connected, or connected after they were found, stay. A
    /// device that moves to another home is skipped.
    ///
    /// - Parameters:
    ///   - shards: The shards whose devices are removed.
    ///   - limitSeconds: The number of seconds for which a device must not have been seen.
    /// - Returns: The devices that were removed. If their number is `atOnce`, there can be more.
    package func collect(
        _ reason: CollectionReason, in shards: ShardSet, afterSeconds limitSeconds: Int, by retention: RetentionTime,
        atOnce: Int
    ) async throws -> [IdleDevice] {
        let cutoff = retention.cutoff(afterSeconds: Int64(limitSeconds))
        var collected: [IdleDevice] = []
        for device in try await devices.idleDevices(reason, in: shards, by: cutoff, limit: atOnce) {
            do {
                // A device that moved after it was found can be connected at its new home and not be marked there yet.
                try await home.inside(of: device.serial) {
                    if try await collect(device, reason, cutoff, at: retention.now) { collected.append(device) }
                }
            } catch let fault as StoreFault where fault.isOfHome {
                // The new home of the device finds the device again later.
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
