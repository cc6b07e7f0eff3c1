/// Devices that nobody uses any more are removed.
extension DeviceRegistrar {
    /// Removes devices for a reason, a few at a time. A device that is connected is not idle, nor is one that came since it was
    /// found.
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
            guard !home.isConnected(device.serial) else {
                seen.saw(device.serial, isAnonymous: reason.isOfAnonymous)
                continue
            }
            let removed = try await devices.deleteDevice(device.serial, unlessSeenAfter: cutoff, at: retention.now)
            guard let removed else { continue }
            removals.note(removed)
            collected.append(device)
        }
        return collected
    }
}
