/// The rows that ``RegistrationRules`` changes: the net effect of one call.
package struct RegistrationChanges: Equatable, Sendable {
    /// A device that is stored. The store assigns its serial.
    package struct NewRow: Equatable, Sendable {
        package var device: Device
        package var key: KeyID?
        package var registration: SecretHash?
        /// The address of a device whose address has a limit.
        package var address: NetworkAddress?

        package init(device: Device, key: KeyID?, registration: SecretHash?, address: NetworkAddress?) {
            self.device = device
            self.key = key
            self.registration = registration
            self.address = address
        }
    }

    /// A registration that is written, and the facts of the change that other features need.
    package struct Profile: Equatable, Sendable {
        /// The store sets the serial of a new device.
        package var registration: DeviceRegistration
        /// Whether the device had no row before.
        package var isFirst: Bool
        /// Nil if the status stays.
        package var statusChange: StatusChange?
        /// Whether the address changed, so that earlier answers of the vendor's service do not apply to it.
        package var isAddressChanged: Bool
        /// Nil if the user stays.
        package var userChange: ChangeOfUser?
        /// Whether the device is the one of ``RegistrationChanges/new``, which has no pushes and no wake yet.
        package var isOfNewDevice: Bool

        package init(
            registration: DeviceRegistration, isFirst: Bool, statusChange: StatusChange?, isAddressChanged: Bool = false,
            userChange: ChangeOfUser? = nil, isOfNewDevice: Bool = false
        ) {
            self.registration = registration
            self.isFirst = isFirst
            self.statusChange = statusChange
            self.isAddressChanged = isAddressChanged
            self.userChange = userChange
            self.isOfNewDevice = isOfNewDevice
        }

        /// Whether the status changed, so that the device must be notified.
        package var isStatusChanged: Bool { statusChange != nil }
    }

    package enum ChangeOfUser: Equatable, Sendable {
        /// The device had no user before.
        case first
        /// The former user's data ends.
        case replaced
    }

    /// A token that no device has any more, with its transfers.
    package struct ReleasedToken: Equatable, Sendable {
        package var app: AppSerial
        package var token: PlatformToken
        package var tokenTransfers: RegistrationRules.TokenTransfers
        /// The number of such tokens, taken on earlier days, that are removed.
        package var forgotten: Int

        package init(app: AppSerial, token: PlatformToken, tokenTransfers: RegistrationRules.TokenTransfers, forgotten: Int)
        {
            self.app = app
            self.token = token
            self.tokenTransfers = tokenTransfers
            self.forgotten = forgotten
        }
    }

    package var new: NewRow?
    /// A device that gets another credential.
    package var renewed: Device?
    package var app: AppSerial
    /// The registrations in the order in which they are written. In this order, a token is free before another device gets it.
    package var profiles: [Profile] = []
    package var released: ReleasedToken?
    /// The device that is removed with its channels and its registration.
    package var removed: DeviceSerial?
    /// The change of the number of devices of the app.
    package var devices = 0

    package init(in app: AppSerial) { self.app = app }

    package var isEmpty: Bool { self == RegistrationChanges(in: app) }
}
