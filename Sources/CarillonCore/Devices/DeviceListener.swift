/// Follows changes of stored devices.
package protocol DeviceListener: Sendable {
    /// A device registered again with a profile, or was suspended or resumed.
    func deviceChanged(_ device: DeviceSerial) async throws
    /// A device has another user, or none. The store has ended everything that belonged to the former user.
    func userChanged(of device: DeviceSerial) async throws
}
