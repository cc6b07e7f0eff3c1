package import CarillonWire

package protocol DeviceStore: Sendable {
    /// Stores a device under a proposed id, with what it says of itself; or gives one that the same registration led to before
    /// another credential.
    func insertDevice(
        _ new: NewDevice, at now: Timestamp, credential: @escaping @Sendable (DeviceID) -> SecretHash
    ) async throws -> InsertedDevice
    /// What a device said of itself; nil when there is no such device.
    func registration(of device: DeviceSerial) async throws -> DeviceRegistration?
    /// Changes it as ``RegistrationRules`` have it, in one transaction; nil when there is no such device.
    func changeRegistration(
        of device: DeviceSerial, at now: Timestamp, _ change: @escaping RegistrationChange
    ) async throws -> Result<RegistrationRules.Decision, Refusal>?
    func device(_ id: DeviceID) async throws -> Device?
    func device(withCredential hash: SecretHash) async throws -> Device?
    /// A page of an app's devices in the order of their registration.
    func devices(app: AppID, after: DeviceID?, limit: Int) async throws -> [Device]
    /// Writes down that anonymous devices were seen.
    func markSeen(_ devices: [DeviceSerial], at now: Timestamp) async throws
    /// Anonymous devices that were not seen since a moment, or have no channel and were not seen since another.
    func idleDevices(seenBefore: Timestamp, orWithoutChannelBefore: Timestamp, limit: Int) async throws
        -> [DeviceSerial]
    /// Some of the devices that registered with a key.
    func devices(registeredWith key: KeyID, limit: Int) async throws -> [Device]
    /// Removes the device with its channels; nil when there is none. Waiting messages end as ``Outcome/gone``, those of a long
    /// inbox by ``AppStore/continueDeletions(at:limit:)``.
    func deleteDevice(_ serial: DeviceSerial, at now: Timestamp) async throws -> RemovedDevices?
}

/// What a device becomes, of what it was.
package typealias RegistrationChange = @Sendable (DeviceRegistration) throws(Refusal) -> RegistrationWish

package enum RegistrationWish: Sendable {
    case nothing
    /// It says this of itself. `confirms`: its address with the rest.
    case says(DeviceProfile, confirms: Bool)
    /// It is suspended or resumed.
    case becomes(DeviceRegistration)
}

package enum InsertedDevice: Sendable {
    case stored(Device)
    /// The app does not exist, or the key that the device registers with does not open anything any more.
    case notAllowed
    case refused(Refusal)
}

/// By what a device is found.
package enum DeviceName: Sendable {
    case id(DeviceID)
    case credential(SecretHash)
}

/// A device that asks to be stored.
package struct NewDevice: Sendable {
    package var proposed: DeviceID
    package var app: AppID
    /// By what the device is known when it registers once more.
    package var registration: SecretHash?
    package var key: KeyID?
    package var isAnonymous: Bool
    /// What it says of itself; nil for nothing, which leaves what it said before.
    package var profile: DeviceProfile?

    package init(
        _ proposed: DeviceID, app: AppID, registration: SecretHash? = nil, key: KeyID? = nil, isAnonymous: Bool = false,
        profile: DeviceProfile? = nil
    ) {
        self.proposed = proposed
        self.app = app
        self.registration = registration
        self.key = key
        self.isAnonymous = isAnonymous
        self.profile = profile
    }
}
