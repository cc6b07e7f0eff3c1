package import CarillonWire

package protocol DeviceStore: Sendable {
    /// Stores a device under a proposed id, with what it says of itself; or gives the device
    /// that the same registration led to before this credential.
    func insertDevice(
        _ new: NewDevice, at now: Timestamp, credential: @escaping @Sendable (DeviceID) -> SecretHash
    ) async throws -> InsertedDevice
    /// What a device said of itself; nil when there is no such device.
    func registration(of device: DeviceSerial) async throws -> DeviceRegistration?
    /// Changes it as ``RegistrationRules`` have it, in one transaction; nil when there is no such device.
    func changeRegistration(
        of device: DeviceSerial, at now: Timestamp, _ change: @escaping RegistrationChange
    ) async throws -> Result<RegistrationRules.Decision, Refusal>?
    /// Devices whose status changed, and that were not told yet.
    func untoldStatuses(limit: Int) async throws -> [UntoldStatus]
    func device(_ id: DeviceID) async throws -> Device?
    func device(_ serial: DeviceSerial) async throws -> Device?
    func device(withCredential hash: SecretHash) async throws -> Device?
    /// A part of an app's devices in the order of their registration, with what each said of itself.
    ///
    /// - Parameter place: Where the part before ended; nil for the first.
    func devices(app: AppID, _ filter: DeviceFilter, after place: DeviceSerial?, limit: Int) async throws -> DevicePart
    /// Writes down that devices were seen. `areAnonymous`: they came with nothing but a user agent identifier.
    func markSeen(_ devices: [DeviceSerial], areAnonymous: Bool, at now: Timestamp) async throws
    /// Devices were there: they are woken as usual again, where that had become rare.
    func devicesCame(_ devices: [DeviceSerial], at now: Timestamp) async throws
    /// Devices that may be removed for a reason, the first of those that were last seen by a moment; a suspended device must
    /// have been suspended by then as well.
    func idleDevices(_ reason: CollectionReason, by cutoff: RetentionCutoff, limit: Int) async throws -> [IdleDevice]
    /// The number on the app's icon is counted from the beginning. Answers false when there is no such device.
    func resetBadge(of device: DeviceSerial) async throws -> Bool
    /// Gives a device another credential. Answers false when there is no such device.
    func renewCredential(of device: DeviceSerial, to hash: SecretHash) async throws -> Bool
    /// Some of the devices that registered with a key.
    func devices(registeredWith key: KeyID, limit: Int) async throws -> [Device]
    /// Removes the device with its channels; nil when there is none. Waiting messages end as ``Outcome/gone``, those of a long
    /// inbox by ``AppStore/continueDeletions(at:limit:)``.
    ///
    /// - Parameter cutoff: One that was seen after it stays, and nil is answered.
    func deleteDevice(_ serial: DeviceSerial, unlessSeenAfter cutoff: RetentionCutoff?, at now: Timestamp) async throws
        -> RemovedDevices?
}

extension DeviceStore {
    /// Removes it, whenever it was seen.
    package func deleteDevice(_ serial: DeviceSerial, at now: Timestamp) async throws -> RemovedDevices? {
        try await deleteDevice(serial, unlessSeenAfter: nil, at: now)
    }
}

/// Which devices are wanted.
package struct DeviceFilter: Equatable, Sendable {
    /// True: those that are suspended; false: the others.
    package var isSuspended: Bool?
    /// Those of a platform, or those without a push token.
    package var platform: Platform?
    package var user: UserID?

    package enum Platform: Equatable, Sendable {
        case of(PushPlatform)
        case none
    }

    package static let all = DeviceFilter()

    package init(isSuspended: Bool? = nil, platform: Platform? = nil, user: UserID? = nil) {
        self.isSuspended = isSuspended
        self.platform = platform
        self.user = user
    }
}

/// What a device becomes, of what it was.
package typealias RegistrationChange = @Sendable (DeviceRegistration) throws(Refusal) -> RegistrationWish

package enum RegistrationWish: Sendable {
    case nothing
    /// It says this of itself. `confirms`: its address with the rest. `user`: nil for no word of it.
    case says(DeviceProfile, confirms: Bool, user: UserWord? = nil)
    /// It is suspended or resumed.
    case becomes(DeviceRegistration)
}

/// Devices of an app that were found in one read, which compares a limited number of them with a filter.
package struct DevicePart: Sendable {
    package var devices: [(device: Device, registration: DeviceRegistration)]
    /// Where to go on; nil at the end of the list.
    package var end: DeviceSerial?

    package init(_ devices: [(device: Device, registration: DeviceRegistration)], end: DeviceSerial?) {
        self.devices = devices
        self.end = end
    }
}

package enum InsertedDevice: Sendable {
    case stored(Device)
    /// The same, and the device's user changed; `ended` are the positions of the envelopes that ended with it.
    case handedOver(Device, ended: [Int64])
    /// The app does not exist, or the key that the device registers with does not open anything any more.
    case notAllowed
    case refused(Refusal)
    /// Its address has as many anonymous devices as it may.
    case addressFull
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
    /// Of an anonymous device: its address, and how many an address may have.
    package var share: AddressShare?
    /// What it says of itself; nil for nothing, which leaves what it said before.
    package var profile: DeviceProfile?
    /// The same of its user.
    package var user: UserWord?

    package struct AddressShare: Sendable {
        package var address: NetworkAddress
        package var limit: Int

        package init(address: NetworkAddress, limit: Int) {
            self.address = address
            self.limit = limit
        }
    }

    package init(
        _ proposed: DeviceID, app: AppID, registration: SecretHash? = nil, key: KeyID? = nil, isAnonymous: Bool = false,
        share: AddressShare? = nil,
        profile: DeviceProfile? = nil, user: UserWord? = nil
    ) {
        self.proposed = proposed
        self.app = app
        self.registration = registration
        self.key = key
        self.isAnonymous = isAnonymous
        self.share = share
        self.profile = profile
        self.user = user
    }
}
