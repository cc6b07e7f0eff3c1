package import CarillonWire

package protocol DeviceStore: Sendable {
    /// Answers nil when the app does not exist, or the key that the device registers with does not open anything any more.
    func insertDevice(
        _ id: DeviceID, app: AppID, credential: SecretHash, registeredWith key: KeyID?, at now: Timestamp
    ) async throws -> Device?
    func device(_ id: DeviceID) async throws -> Device?
    func device(withCredential hash: SecretHash) async throws -> Device?
    /// A page of an app's devices in the order of their registration.
    func devices(app: AppID, after: DeviceID?, limit: Int) async throws -> [Device]
    /// Some of the devices that registered with a key.
    func devices(registeredWith key: KeyID, limit: Int) async throws -> [Device]
    /// Removes the device with its channels and inbox; nil when there is none. Waiting messages end as ``Outcome/gone``.
    func deleteDevice(_ serial: DeviceSerial, at now: Timestamp) async throws -> RemovedDevices?
}

extension DeviceStore {
    /// Inserts a device that came without a key.
    package func insertDevice(
        _ id: DeviceID, app: AppID, credential: SecretHash, at now: Timestamp
    ) async throws -> Device? {
        try await insertDevice(id, app: app, credential: credential, registeredWith: nil, at: now)
    }
}
