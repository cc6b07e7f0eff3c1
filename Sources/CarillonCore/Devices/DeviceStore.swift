package import CarillonWire

/// Keeps devices, their registrations and their credentials.
///
/// Each change is one transaction: a concurrent call sees all of it or nothing. Concurrent changes of one device follow each other, and
/// each decides on what the change before it left. Every method throws ``StoreFault`` if the store cannot be read or written; a change
/// that throws is not made. Devices of deleted apps are not found. Methods with a set of shards return nothing of devices in other shards.
package protocol DeviceStore: Sendable {
    /// Stores a device under a proposed identifier with its profile and user; or, if the secret registered a device before, replaces that
    /// device's credential. Concurrent calls with one secret make one device, and concurrent calls exceed neither the limit of the app nor
    /// that of an address. A refusal changes nothing.
    ///
    /// The serial of a new device is larger than every serial that was assigned before, and not smaller than ``Shard/firstWithShard``. Its
    /// last 10 bits are the shard that the proposed identifier names.
    func insertDevice(_ new: NewDevice, at now: Timestamp, credential: NewCredential) async throws -> InsertedDevice
    /// Returns the registration of a device; nil if there is no such device.
    func registration(of device: DeviceSerial) async throws -> DeviceRegistration?
    /// Changes a registration by ``RegistrationRules``, with what follows for pushes, the former user's envelopes and a device that loses
    /// its token. Of concurrent calls with one basis that change something, one changes the registration. Nothing is changed if the basis is
    /// outdated or the change is refused. ``changeRegistration(of:at:_:)`` decides again then.
    ///
    /// - Parameter basis: The registration that the caller read and decided on.
    func writeRegistration(
        _ request: RegistrationRequest, decidedOn basis: DeviceRegistration, at now: Timestamp
    ) async throws -> RegistrationWrite
    /// Returns devices whose status changed, and that were not told yet. ``Effect/statusNotified(_:at:)`` removes them.
    func pendingStatuses(in shards: ShardSet, limit: Int) async throws -> [PendingStatus]
    /// Returns a device by its identifier; nil after its deletion.
    func device(_ id: DeviceID) async throws -> Device?
    /// Returns a device by its number, which is never used again; nil after its deletion.
    func device(_ serial: DeviceSerial) async throws -> Device?
    /// Returns the device with this credential at present; nil without one.
    func device(withCredential hash: SecretHash) async throws -> Device?
    /// Returns the device that a registration with this secret leads to; nil if such a registration makes a new device.
    func device(registeredBy secret: SecretHash, in app: AppID) async throws -> Device?
    /// Returns a part of an app's devices in the order of their registration, with their registrations.
    ///
    /// - Parameter place: The end of the part before; nil for the first.
    func devices(app: AppID, _ filter: DeviceFilter, after place: DeviceSerial?, limit: Int) async throws -> DevicePart
    /// Notes that devices were seen; unknown devices are left out.
    ///
    /// - Parameter areAnonymous: Whether they came with nothing but a user agent identifier.
    func markSeen(_ devices: [DeviceSerial], areAnonymous: Bool, at now: Timestamp) async throws
    /// Notes that devices connected: devices that were woken rarely are woken at the usual pace again. Unknown devices are left out.
    func devicesCame(_ devices: [DeviceSerial], at now: Timestamp) async throws
    /// Returns devices that may be removed for a reason: the first that were last seen by a moment. A suspended device must
    /// have been suspended by then as well.
    func idleDevices(
        _ reason: CollectionReason, in shards: ShardSet, by cutoff: RetentionCutoff, limit: Int
    ) async throws -> [IdleDevice]
    /// Resets the number on the app's icon to zero. Returns false if there is no such device.
    func resetBadge(of device: DeviceSerial) async throws -> Bool
    /// Replaces a device's credential, and forgets the secret of its registration: the credential before is unknown from then on, and a
    /// registration with the secret makes another device. Returns false if there is no such device.
    func renewCredential(of device: DeviceSerial, to hash: SecretHash) async throws -> Bool
    /// Returns a part of the devices that registered with a key, in the order of their registration. One call compares a limited number of
    /// the app's devices with the key, also if it finds none.
    ///
    /// Each call is one read: it sees all of a concurrent registration or deletion, or nothing. The parts together have each device that
    /// registered before the first call and was not deleted before its part was read. No device registers with a revoked key, so that the
    /// parts are complete if the key was revoked before the first call. The device at the end of a part can be deleted before the next call.
    ///
    /// - Parameters:
    ///   - app: The app of the key. No device is found if the app does not exist.
    ///   - place: The end of the part before; nil for the first.
    ///   - limit: The number of the app's devices that are compared with the key.
    func devices(
        registeredWith key: KeyID, of app: AppID, after place: DeviceSerial?, limit: Int
    ) async throws -> KeyDevices
    /// Removes a device with its channels. Its waiting messages end as ``Outcome/gone``, those of a long inbox by
    /// ``DeletionStore/continueDeletions(at:limit:)``; they are not found meanwhile. Of concurrent calls one removes it; the others return nil, as
    /// for an unknown device.
    ///
    /// - Parameter cutoff: A device that was seen later stays, and nil is returned.
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

package enum RegistrationRequest: Sendable {
    case nothing
    /// It says this of itself. `confirms`: its address with the rest. `user`: nil for no word of it.
    case says(DeviceProfile, confirms: Bool, user: UserClaim? = nil)
    /// It is suspended or resumed.
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
    /// Where to go on; nil at the end of the list.
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
    /// `changesStatus`: whether the status of the device changed, or that of a device that lost its token to the device.
    case stored(Device, changesStatus: Bool)
    /// The same, and the device's user changed; `ended` are the positions of the envelopes that ended with it.
    case handedOver(Device, ended: [Int64], changesStatus: Bool)
    /// The app does not exist, or the key that the device registers with does not open anything any more.
    case notAllowed
    case refused(Refusal)
    /// Its address has as many anonymous devices as it may.
    case addressFull
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
    package var user: UserClaim?

    package init(
        _ proposed: DeviceID, app: AppID, registration: SecretHash? = nil, key: KeyID? = nil, isAnonymous: Bool = false,
        share: AddressShare? = nil,
        profile: DeviceProfile? = nil, user: UserClaim? = nil
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
