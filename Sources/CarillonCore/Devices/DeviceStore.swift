package import CarillonWire

package protocol DeviceStore: Sendable {
    /// Stores a device under a proposed id; or gives one that the same registration led to before another credential.
    /// Answers nil when the app does not exist.
    func insertDevice(
        _ proposed: DeviceID, app: AppID, registration: SecretHash?, isAnonymous: Bool, at now: Timestamp,
        credential: @escaping @Sendable (DeviceID) -> SecretHash
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
