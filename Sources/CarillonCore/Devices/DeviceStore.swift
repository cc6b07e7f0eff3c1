package import CarillonWire

/// Keeps devices, their registrations and their credentials.
///
/// Each change is one transaction: a concurrent call sees all of it or nothing. Concurrent changes of one device follow each
/// other, and each decides on the result of the change before it. Every method throws ``StoreFault`` if the store cannot be read
/// or written; a change that throws is not made. Devices of deleted apps are not found. Methods with a set of shards return
/// nothing of devices in other shards.
package protocol DeviceStore: Sendable {
    /// Stores a device under a proposed identifier with its profile and user. If the secret registered a device before, replaces
    /// that device's credential instead. Concurrent calls with one secret make one device. Concurrent calls do not exceed the
    /// limit of the app or of an address. A refusal changes nothing.
    ///
    /// The serial of a new device is larger than every serial that was assigned before, and not smaller than
    /// ``Shard/firstWithShard``. Its last 10 bits are the shard that the proposed identifier names.
    func insertDevice(_ new: NewDevice, at now: Timestamp, credential: NewCredential) async throws -> InsertedDevice
    /// Returns the registration of a device; nil if there is no such device.
    func registration(of device: DeviceSerial) async throws -> DeviceRegistration?
    /// Changes a registration by ``RegistrationRules``, with the effects on pushes, on the former user's envelopes and on a
    /// device that loses its token. Of concurrent changes with one basis, one is made. Nothing is changed if the basis is
    /// outdated or the change is refused. If the basis is outdated, ``changeRegistration(of:at:_:)`` decides again.
    ///
    /// - Parameter basis: The registration that the caller read and decided on.
    func writeRegistration(
        _ request: RegistrationRequest, decidedOn basis: DeviceRegistration, at now: Timestamp
    ) async throws -> RegistrationWrite
    /// Returns devices whose status changed and that are not notified yet. ``Effect/statusNotified(_:at:)`` removes them.
    func pendingStatuses(in shards: ShardSet, limit: Int) async throws -> [PendingStatus]
    /// Returns a device by its identifier; nil after its deletion.
    func device(_ id: DeviceID) async throws -> Device?
    /// Returns a device by its number, which is never used again; nil after its deletion.
    func device(_ serial: DeviceSerial) async throws -> Device?
    /// Returns the device that has this credential now, or nil.
    func device(withCredential hash: SecretHash) async throws -> Device?
    /// Returns the device that was registered with this secret; nil if a registration with the secret makes a new device.
    func device(registeredBy secret: SecretHash, in app: AppID) async throws -> Device?
    /// Returns a part of an app's devices in the order of their registration, with their registrations.
    ///
    /// - Parameter place: The end of the part before; nil for the first.
    func devices(app: AppID, _ filter: DeviceFilter, after place: DeviceSerial?, limit: Int) async throws -> DevicePart
    /// Marks devices as seen. Unknown devices are ignored.
    ///
    /// - Parameter areAnonymous: Whether the devices connected with only a user agent identifier.
    func markSeen(_ devices: [DeviceSerial], areAnonymous: Bool, at now: Timestamp) async throws
    /// Notes that devices connected: rarely woken devices are woken at the usual pace again. Unknown devices are ignored.
    func devicesCame(_ devices: [DeviceSerial], at now: Timestamp) async throws
    /// Returns the first devices that can be removed for a reason, because they were last seen at or before the cutoff. A
    /// suspended device must also have been suspended by then.
    func unusedDevices(
        _ reason: UnusedDevice.Reason, in shards: ShardSet, by cutoff: RetentionCutoff, limit: Int
    ) async throws -> [UnusedDevice]
    /// Resets the number on the app's icon to zero. Returns false if there is no such device.
    func resetBadge(of device: DeviceSerial) async throws -> Bool
    /// Replaces a device's credential, and removes the secret of its registration. The former credential becomes unknown, and a
    /// registration with the secret makes another device. Returns false if there is no such device.
    func renewCredential(of device: DeviceSerial, to hash: SecretHash) async throws -> Bool
    /// Returns a part of the devices that registered with a key, in the order of their registration. One call compares a limited
    /// number of the app's devices with the key, also if it finds none.
    ///
    /// Each call is one read: it sees all of a concurrent registration or deletion, or nothing. The parts together contain each
    /// device that registered before the first call and was not deleted before its part was read. No device registers with a
    /// revoked key. Therefore the parts are complete if the key was revoked before the first call. The device at the end of a
    /// part can be deleted before the next call.
    ///
    /// - Parameters:
    ///   - app: The app of the key. No device is found if the app does not exist.
    ///   - place: The end of the part before; nil for the first.
    ///   - limit: The number of the app's devices that are compared with the key.
    func devices(
        registeredWith key: KeyID, of app: AppID, after place: DeviceSerial?, limit: Int
    ) async throws -> KeyDevices
    /// Removes a device with its channels. Its waiting messages end as ``Outcome/gone``. Messages of a long inbox end by
    /// ``DeletionStore/continueDeletions(at:limit:)``, and are not found until then. Of concurrent calls, one removes the device;
    /// the others return nil, as for an unknown device.
    ///
    /// - Parameter cutoff: A device that was seen later stays, and nil is returned.
    func deleteDevice(_ serial: DeviceSerial, unlessSeenAfter cutoff: RetentionCutoff?, at now: Timestamp) async throws
        -> RemovedDevices?
}

extension DeviceStore {
    /// Removes a device independently of the time at which it was seen.
    package func deleteDevice(_ serial: DeviceSerial, at now: Timestamp) async throws -> RemovedDevices? {
        try await deleteDevice(serial, unlessSeenAfter: nil, at: now)
    }
}

/// Selects devices of a list.
package struct DeviceFilter: Equatable, Sendable {
    /// True: suspended devices; false: the other devices.
    package var isSuspended: Bool?
    /// The devices of a platform, or the devices without a push token.
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

package enum RegistrationRequest: Sendable {
    case nothing
    /// The device reports a profile. `confirms`: whether it reports its address too. `user`: nil if it reports nothing about its
    /// user.
    case reports(DeviceProfile, confirms: Bool, user: UserClaim? = nil)
    /// The device is suspended or resumed.
    case becomes(DeviceRegistration)
}

package enum RegistrationWrite: Equatable, Sendable {
    case decided(RegistrationRules.Decision)
    case refused(Refusal)
    /// The device has another registration than the basis of the change.
    case outdated(DeviceRegistration)
    case deviceGone
}

/// Devices of an app that were found in one read, which compares a limited number of them with a filter.
package struct DevicePart: Sendable {
    package var devices: [(device: Device, registration: DeviceRegistration)]
    /// The place where the next part begins; nil at the end of the list.
    package var end: DeviceSerial?

    package init(_ devices: [(device: Device, registration: DeviceRegistration)], end: DeviceSerial?) {
        self.devices = devices
        self.end = end
    }
}

/// Devices that registered with a key, from one read, which compares a limited number of an app's devices with the key.
package struct KeyDevices: Equatable, Sendable {
    package var serials: [DeviceSerial]
    /// The last device that was compared, where the next part begins; nil at the end of the list.
    package var end: DeviceSerial?

    package init(_ serials: [DeviceSerial], end: DeviceSerial?) {
        self.serials = serials
        self.end = end
    }
}

package enum InsertedDevice: Sendable {
    /// `changesStatus`: whether the status changed of this device, or of a device that lost its token to this device.
    case stored(Device, changesStatus: Bool)
    /// As `stored`, and the device's user changed. `ended`: the positions of the envelopes that ended with the change.
    case handedOver(Device, ended: [Int64], changesStatus: Bool)
    /// The app does not exist, or the key of the registration is not valid any more.
    case notAllowed
    case refused(Refusal)
    /// The address has reached its limit of anonymous devices.
    case addressFull
}

/// A device to be stored.
package struct NewDevice: Sendable {
    package var proposed: DeviceID
    package var app: AppID
    /// The hash of the secret that identifies the device when it registers again.
    package var registration: SecretHash?
    package var key: KeyID?
    package var isAnonymous: Bool
    /// For an anonymous device: its network address, and the limit of devices of an address.
    package var quota: AddressQuota?
    /// The profile that the device reports; nil if it reports none, and then a stored profile stays.
    package var profile: DeviceProfile?
    /// The user that the device reports; nil if it reports none, and then a stored user stays.
    package var user: UserClaim?

    package init(
        _ proposed: DeviceID, app: AppID, registration: SecretHash? = nil, key: KeyID? = nil, isAnonymous: Bool = false,
        quota: AddressQuota? = nil,
        profile: DeviceProfile? = nil, user: UserClaim? = nil
    ) {
        self.proposed = proposed
        self.app = app
        self.registration = registration
        self.key = key
        self.isAnonymous = isAnonymous
        self.quota = quota
        self.profile = profile
        self.user = user
    }
}
