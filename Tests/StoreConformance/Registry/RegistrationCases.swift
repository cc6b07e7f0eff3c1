import CarillonBasics
import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = StoreFixture.start

extension StoreCase {
    static let registrations: [StoreCase] = [
        StoreCase("the report of a device is stored completely", whatADeviceSaysIsKept),
        StoreCase("a token keeps the number of its transfers after its device is removed", tokenTransfersOutliveTheirDevice),
        StoreCase("an app has a limited number of devices", devicesAreLimited),
        StoreCase("a token belongs to one device of an app, and the last one that presents it receives it", tokenIsTaken),
        StoreCase("a registration returns whether it changed a status", changedStatusIsReturned),
        StoreCase("apps have tokens of their own", appsHaveTokensOfTheirOwn),
        StoreCase("a refused registration leaves no device and changes none", whatIsRefusedLeavesNothing),
        StoreCase("the report of a device is removed with it, and its token is free", registrationGoesWithItsDevice),
        StoreCase("a device that registers once more keeps its identity", registeringOnceMoreKeeps),
        StoreCase("a device is found by the secret that registers it once more", secretLeadsToItsDevice),
    ]
}

private func profile(_ token: String?, _ environment: PushEnvironment = .production) throws -> DeviceProfile {
    var profile = DeviceProfile()
    if let token {
        profile.address = .init(
            platform: .apple, token: try PushToken(hexadecimal: token), environment: environment)
    }
    return profile
}

private func change(
    _ device: DeviceSerial, _ fixture: StoreFixture, at now: Timestamp = start, to request: RegistrationRequest
) async throws -> RegistrationRules.Decision {
    let result = try await fixture.store.changeRegistration(of: device, at: now) { _ in request }
    return try #require(result).get()
}

private func another(_ number: UInt64, _ fixture: StoreFixture, reporting profile: DeviceProfile? = nil) async throws
    -> Device
{
    let new = NewDevice(DeviceID(Bytes16(high: 9, low: number)), app: try StoreFixture.appID, profile: profile)
    return try #require(try await fixture.insert(new, secret: [9, UInt8(number)]))
}

private func whatADeviceSaysIsKept(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let device = fixture.device.serial
    let fresh = try #require(try await fixture.store.registration(of: device))
    #expect(fresh.profile == DeviceProfile() && fresh.status == .registered && fresh.statusAt == start)
    var said = try profile("00ff10", .sandbox)
    said.appVersion = "1.2.3"
    said.locale = "de-AT"
    said.timeZone = "Europe/Vienna"
    said.parameters = try DeviceParameters(
        .object([
            .init(name: "plan", value: .string("gold ✓")), .init(name: "level", value: .integer(7)),
            .init(name: "weight", value: .number(1.5)), .init(name: "beta", value: .bool(true)),
            .init(name: "tags", value: .array([.string("a"), .string("b")])),
        ]))
    let decision = try await change(device, fixture, to: .reports(said, confirms: true))
    #expect(decision.isChanged)
    #expect(try await fixture.store.registration(of: device) == decision.registration)
    #expect(decision.registration.profile == said)
    #expect(try await !change(device, fixture, to: .reports(said, confirms: true)).isChanged)
    let suspended = try #require(RegistrationRules.suspend(decision.registration, because: .tokenDead, at: start))
    _ = try await change(device, fixture, to: .becomes(suspended))
    #expect(try await fixture.store.registration(of: device) == suspended)
    _ = try await change(device, fixture, to: .reports(DeviceProfile(), confirms: true))
    #expect(try await fixture.store.registration(of: device)?.profile == DeviceProfile())
}

private func tokenIsTaken(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let holder = try await another(1, fixture, reporting: profile("aa01"))
    let decision = try await change(fixture.device.serial, fixture, to: .reports(profile("aa01"), confirms: true))
    #expect(decision.displaced?.device == holder.serial)
    let displaced = try await fixture.store.registration(of: holder.serial)
    #expect(displaced?.status == .suspended(.tokenTaken) && displaced?.profile.address == nil)
    #expect(displaced?.profile.formerService == DeviceProfile.Service(platform: .apple, environment: .production))
    #expect(displaced == decision.displaced)
    // Without a credential it is another device, and receives the token all the same.
    let stranger = try await another(2, fixture, reporting: profile("aa01"))
    #expect(try await fixture.store.registration(of: stranger.serial)?.tokenTransfers == 2)
    #expect(
        try await fixture.store.registration(of: fixture.device.serial)?.status == .suspended(.tokenTaken))
    // The other environment is not another token.
    let again = try await change(holder.serial, fixture, to: .reports(profile("aa01", .sandbox), confirms: true))
    #expect(again.displaced?.device == stranger.serial)
    #expect(again.registration.status == .registered)
    #expect(try await fixture.store.registration(of: holder.serial)?.profile.formerService == nil)
}

private func changedStatusIsReturned(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    func changesStatus(
        _ number: UInt64, registration: SecretHash? = nil, reporting profile: DeviceProfile?
    ) async throws -> Bool? {
        let new = NewDevice(
            DeviceID(Bytes16(high: 9, low: number)), app: try StoreFixture.appID, registration: registration,
            profile: profile)
        let credential = NewCredential.fixed(SecretHash(of: [9, UInt8(number)]))
        let inserted = try await fixture.store.insertDevice(new, at: start, credential: credential)
        guard case .stored(_, let changesStatus) = inserted else { return nil }
        return changesStatus
    }
    let (token, known) = (try profile("aa01"), SecretHash(of: [5]))
    #expect(try await changesStatus(1, registration: known, reporting: token) == false)
    #expect(try await changesStatus(2, reporting: nil) == false)
    #expect(try await changesStatus(3, reporting: token) == true, "the first device loses its token")
    #expect(try await changesStatus(4, registration: known, reporting: token) == true, "the first device takes it back")
    #expect(try await changesStatus(5, registration: known, reporting: token) == false)
}

private func appsHaveTokensOfTheirOwn(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    _ = try await another(1, fixture, reporting: profile("aa01"))
    let other = try #require(AppID("com.example.other"))
    _ = try await fixture.store.createApp(other, at: start)
    let new = NewDevice(DeviceID(Bytes16(high: 9, low: 2)), app: other, profile: try profile("aa01"))
    let device = try #require(try await fixture.insert(new, secret: [9, 2]))
    #expect(try await fixture.store.registration(of: device.serial)?.tokenTransfers == 0)
}

private func whatIsRefusedLeavesNothing(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    for number in UInt64(1)...UInt64(1 + RegistrationRules.tokenTransfersPerDay) {
        _ = try await another(number, fixture, reporting: profile("aa01"))
    }
    let new = NewDevice(
        DeviceID(Bytes16(high: 9, low: 99)), app: try StoreFixture.appID, profile: try profile("aa01"))
    let inserted = try await fixture.store.insertDevice(new, at: start, credential: .fixed(SecretHash(of: [9, 99])))
    guard case .refused(let refusal) = inserted else {
        Issue.record("a token may be taken without end")
        return
    }
    #expect(refusal.code == .pushTokenContested)
    #expect(try await fixture.store.device(new.proposed) == nil)
    let before = try await fixture.store.registration(of: fixture.device.serial)
    let request = RegistrationRequest.reports(try profile("aa01"), confirms: true)
    let result = try await fixture.store.changeRegistration(of: fixture.device.serial, at: start) { _ in request }
    #expect(throws: refusal) { try result?.get() }
    #expect(try await fixture.store.registration(of: fixture.device.serial) == before)
}

private func tokenTransfersOutliveTheirDevice(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let owner = try await another(1, fixture, reporting: profile("aa01"))
    // A device that acquires and releases a token, by another token or by its removal, counts as a transfer all the same.
    for number in UInt64(2)...3 {
        let thief = try await another(number, fixture, reporting: profile("aa01"))
        if number == 2 {
            _ = try await change(thief.serial, fixture, to: .reports(profile("aa99"), confirms: true))
        } else {
            _ = try await fixture.store.deleteDevice(thief.serial, at: start)
        }
        let back = try await change(owner.serial, fixture, to: .reports(profile("aa01"), confirms: true))
        #expect(back.registration.tokenTransfers == Int(number) - 1)
        #expect(try await fixture.store.registration(of: owner.serial)?.tokenTransfers == Int(number) - 1)
    }
    let tomorrow = start.adding(seconds: 86_400)
    _ = try await fixture.store.deleteDevice(owner.serial, at: start)
    let request = RegistrationRequest.reports(try profile("aa01"), confirms: true)
    let result = try await fixture.store.changeRegistration(of: fixture.device.serial, at: tomorrow) { _ in request }
    #expect(try #require(result).get().registration.tokenTransfers == 0)
}

private func devicesAreLimited(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores.open(StoreSettings(devicesPerApp: 3)))
    let second = try await another(1, fixture, reporting: profile("aa01"))
    _ = try await another(2, fixture, reporting: profile("aa02"))
    let new = NewDevice(DeviceID(Bytes16(high: 9, low: 3)), app: try StoreFixture.appID, profile: try profile("aa03"))
    func insert() async throws -> ErrorCode? {
        guard
            case .refused(let refusal) = try await fixture.store.insertDevice(
                new, at: start, credential: .fixed(SecretHash(of: [9, 3])))
        else { return nil }
        return refusal.code
    }
    #expect(try await insert() == .devicesTooMany)
    #expect(try await fixture.store.device(new.proposed) == nil)
    let other = try #require(AppID("com.example.other"))
    _ = try await fixture.store.createApp(other, at: start)
    let elsewhere = NewDevice(DeviceID(Bytes16(high: 9, low: 4)), app: other, profile: try profile("aa03"))
    let inserted = try await fixture.insert(elsewhere, secret: [9, 4])
    #expect(inserted != nil, "each app has its own")
    _ = try await fixture.store.deleteDevice(second.serial, at: start)
    #expect(try await insert() == nil)
    #expect(try await fixture.store.device(new.proposed) != nil)
}

private func registrationGoesWithItsDevice(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let device = try await another(1, fixture, reporting: profile("aa01"))
    _ = try await fixture.store.deleteDevice(device.serial, at: start)
    #expect(try await fixture.store.registration(of: device.serial) == nil)
    #expect(try await fixture.store.changeRegistration(of: device.serial, at: start) { _ in .nothing } == nil)
    let next = try await another(2, fixture, reporting: profile("aa01"))
    #expect(try await fixture.store.registration(of: next.serial)?.tokenTransfers == 0)
}

private func registeringOnceMoreKeeps(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    func register(_ number: UInt64, reporting profile: DeviceProfile?) async throws -> Device {
        let new = NewDevice(
            DeviceID(Bytes16(high: 9, low: number)), app: try StoreFixture.appID, registration: SecretHash(of: [5]),
            profile: profile)
        return try #require(try await fixture.insert(new, secret: [9, UInt8(number)]))
    }
    let first = try await register(1, reporting: profile("aa01"))
    let again = try await register(2, reporting: nil)
    #expect(again.id == first.id)
    #expect(try await fixture.store.registration(of: first.serial)?.profile == profile("aa01"))
    let moved = try await register(3, reporting: profile("aa02"))
    #expect(moved.id == first.id)
    let registration = try #require(try await fixture.store.registration(of: first.serial))
    #expect(registration.profile == (try profile("aa02")) && registration.addressRevision == 2)
    let secret = DeviceCredential.Secret.ofRegistration("a secret")
    let request = NewDevice(
        DeviceID(Bytes16(high: 9, low: 4)), app: try StoreFixture.appID, registration: SecretHash(of: [5]))
    _ = try await fixture.store.insertDevice(request, at: start, credential: .made(of: secret))
    let hash = DeviceCredential(device: first.id, of: secret).hash
    #expect(try await fixture.store.device(withCredential: hash)?.id == first.id, "of the identifier that it has")
}

private func secretLeadsToItsDevice(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let (store, app) = (fixture.store, try StoreFixture.appID)
    let (other, unknown) = (try #require(AppID("com.example.other")), try #require(AppID("com.example.unknown")))
    _ = try await store.createApp(other, at: start)
    func register(_ number: UInt64, in app: AppID) async throws -> Device {
        let new = NewDevice(DeviceID(Bytes16(high: 9, low: number)), app: app, registration: SecretHash(of: [5]))
        return try #require(try await fixture.insert(new, secret: [9, UInt8(number)]))
    }
    func found(_ secret: UInt8, in app: AppID) async throws -> DeviceSerial? {
        try await store.device(registeredBy: SecretHash(of: [secret]), in: app)?.serial
    }
    let (first, second) = (try await register(1, in: app), try await register(2, in: other))
    #expect(first.serial != second.serial)
    #expect(try await found(5, in: app) == first.serial)
    #expect(try await found(5, in: other) == second.serial)
    #expect(try await found(6, in: app) == nil)
    #expect(try await found(5, in: unknown) == nil)
    #expect(try await store.renewCredential(of: first.serial, to: SecretHash(of: [7])))
    #expect(try await found(5, in: app) == nil, "the next registration makes another device")
    _ = try await store.deleteDevice(second.serial, at: start)
    #expect(try await found(5, in: other) == nil)
}
