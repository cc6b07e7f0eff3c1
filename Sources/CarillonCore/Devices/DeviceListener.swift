/// Follows changes of devices that are stored already.
package protocol DeviceListener: Sendable {
    /// A device registered again with a profile, or was suspended or resumed.
    func deviceChanged(_ device: DeviceSerial) async throws
    /// A device has another user, or none. What belonged to the former user has ended in the store.
    func userChanged(of device: DeviceSerial) async throws
}
