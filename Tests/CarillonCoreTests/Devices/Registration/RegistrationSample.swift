import CarillonCore
import CarillonWire

/// Values that tests of ``RegistrationRules`` are made of.
enum RegistrationSample {
    static let now = Timestamp(milliseconds: 1_800_000_000_000)
    static let app = AppSerial(1)
    static let device = DeviceSerial(7)

    static func appID(_ number: Int64 = 1) -> AppID {
        guard let id = AppID("com.example.app\(number)") else { preconditionFailure("the name of an app is invalid") }
        return id
    }

    static func user(_ number: Int) -> UserID {
        guard let user = UserID("user\(number)") else { preconditionFailure("the name of a user is invalid") }
        return user
    }

    static func address(_ token: UInt8) -> DeviceProfile.Address {
        guard let token = PushToken(stored: [0xAA, token]) else { preconditionFailure("a token is invalid") }
        return DeviceProfile.Address(platform: .apple, token: token, environment: .production)
    }

    static func token(_ token: UInt8) -> PlatformToken {
        let address = address(token)
        return PlatformToken(platform: address.platform, token: address.token)
    }

    static func profile(_ token: UInt8?) -> DeviceProfile {
        var profile = DeviceProfile()
        profile.address = token.map(address)
        return profile
    }

    static func registration(
        _ device: DeviceSerial = device, _ token: UInt8? = nil, tokenTransfers: Int = 0, user: Int? = nil
    ) -> DeviceRegistration {
        var registration = DeviceRegistration(device: device, at: now)
        registration.profile = profile(token)
        registration.tokenTransfers = tokenTransfers
        registration.takenOn = now.seconds / 86_400
        registration.user = user.map { self.user($0) }
        return registration
    }

    static func known(_ serial: DeviceSerial = device) -> Device {
        Device(
            serial: serial, id: DeviceID(Bytes16(high: 1, low: 1)), app: app, appID: appID(),
            credentialHash: SecretHash(of: [1]), createdAt: now, isAnonymous: false, seenAt: now)
    }

    static func new(
        registration: UInt8? = nil, key: KeyID? = nil, address: UInt32? = nil, reporting profile: DeviceProfile? = nil,
        user: UserClaim? = nil
    ) -> NewDevice {
        NewDevice(
            DeviceID(Bytes16(high: 2, low: 2)), app: appID(), registration: registration.map { SecretHash(of: [$0]) },
            key: key, isAnonymous: address != nil, quota: address.map { .init(address: .v4($0), limit: 3) },
            profile: profile, user: user)
    }

    static let credential = NewCredential.made(of: .ofRegistration(secret))
    private static let secret = "a secret"

    static func credentialHash(of device: DeviceID) -> SecretHash {
        DeviceCredential(device: device, registration: secret).hash
    }
}
