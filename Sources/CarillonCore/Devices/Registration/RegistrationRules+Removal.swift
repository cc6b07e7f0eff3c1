// The removal of a device. `DeviceRegistrar+UnusedDevices` finds and removes unused devices.
extension RegistrationRules {
    /// Returns the changes of rows that remove a device.
    ///
    /// - Parameter cutoff: A device that was seen later stays.
    /// - Returns: Nil if the device stays.
    package static func end(
        unlessSeenAfter cutoff: RetentionCutoff? = nil, knowing facts: DeviceEndFacts
    ) -> RegistrationChanges? {
        if let cutoff, facts.seenAt > cutoff.wall || facts.seenServed > cutoff.served { return nil }
        var changes = RegistrationChanges(in: facts.app)
        changes.removed = facts.device
        if facts.devicesOfApp > 0 { changes.devices = -1 }
        if let token = facts.token { changes.released = released(token, facts.tokenTransfers, in: facts.app) }
        return changes
    }
}
