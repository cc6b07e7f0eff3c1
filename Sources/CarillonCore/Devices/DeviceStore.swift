package import CarillonWire

package protocol DeviceStore: Sendable {
    /// Answers nil when the app does not exist.
    func insertDevice(
        _ id: DeviceID, app: AppID, credential: SecretHash, isAnonymous: Bool, at now: Timestamp
    ) async throws -> Device?
    func device(_ id: DeviceID) async throws -> Device?
    func device(withCredential hash: SecretHash) async throws -> Device?
    /// A page of an app's devices in the order of their registration.
    func devices(app: AppID, after: DeviceID?, limit: Int) async throws -> [Device]
    /// Writes down that anonymous devices were seen.
    func markSeen(_ devices: [DeviceSerial], at now: Timestamp) async throws
    /// Anonymous devices that were not seen since a moment, or have no channel and were not seen since another.
    func idleDevices(seenBefore: Timestamp, orWithoutChannelBefore: Timestamp, limit: Int) async throws
        -> [DeviceSerial]
    /// Removes the device with its channels and inbox; nil when there is none. Waiting messages end as ``Outcome/gone``.
    func deleteDevice(_ serial: DeviceSerial, at now: Timestamp) async throws -> RemovedDevices?
}
