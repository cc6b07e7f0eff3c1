/// The removal of unused devices.
extension DeviceRegistrar {
    /// Removes devices for a reason, a few at a time. Devices that are connected, or connected after they were found, stay. A
    /// device that moves to another home is skipped.
    ///
    /// - Parameters:
    ///   - shards: The shards whose devices are removed.
    ///   - limitSeconds: The number of seconds for which a device must not have been seen.
    /// - Returns: The devices that were removed. If their number is `atOnce`, there can be more.
    package func removeUnused(
        _ reason: UnusedDevice.Reason, in shards: ShardSet, afterSeconds limitSeconds: Int, by retention: RetentionTime,
        atOnce: Int
    ) async throws -> [UnusedDevice] {
        let cutoff = retention.cutoff(afterSeconds: Int64(limitSeconds))
        var removed: [UnusedDevice] = []
        for device in try await devices.unusedDevices(reason, in: shards, by: cutoff, limit: atOnce) {
            do {
                // A device that moved after it was found can be connected at its new home and not be marked there yet.
                try await home.inside(of: device.serial) {
                    if try await remove(device, reason, cutoff, at: retention.now) { removed.append(device) }
                }
            } catch let fault as StoreFault where fault.isOfHome {
                // The new home of the device finds the device again later.
            }
        }
        return removed
    }

    /// - Returns: Whether the device was removed.
    private func remove(
        _ device: UnusedDevice, _ reason: UnusedDevice.Reason, _ cutoff: RetentionCutoff, at now: Timestamp
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
