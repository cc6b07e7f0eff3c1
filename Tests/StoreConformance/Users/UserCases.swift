import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = StoreFixture.start

extension StoreCase {
    static let users: [StoreCase] = [
        StoreCase("a device belongs to a user until another user is set", deviceBelongsToUser),
        StoreCase(
            "a channel that was opened for a user is closed to senders when the device has another user", formerChannels),
        StoreCase("a channel that must be closed is not opened again before", formerChannelIsNotOpened),
        StoreCase("a device can register as a user's, and devices are found by their user", registeredAsUsers),
    ]
}

private func user(_ text: String) throws -> UserID { try #require(UserID(text)) }

private func say(_ claim: UserClaim?, _ fixture: StoreFixture) async throws -> RegistrationRules.Decision {
    let result = try await fixture.store.changeRegistration(of: fixture.device.serial, at: start) { current in
        .reports(current.profile, confirms: false, user: claim)
    }
    return try #require(result).get()
}

private func deviceBelongsToUser(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    func owner() async throws -> UserID? {
        try await fixture.store.registration(of: fixture.device.serial)?.user
    }
    let first = try await say(.signedIn(user("ada")), fixture)
    #expect(first.isChanged && !first.losesUser)
    #expect(try await owner()?.text == "ada")
    let silent = try await say(nil, fixture)
    #expect(!silent.isChanged && !silent.losesUser)
    let same = try await say(.signedIn(user("ada")), fixture)
    #expect(!same.isChanged && !same.losesUser)
    let other = try await say(.signedIn(user("bob")), fixture)
    #expect(other.isChanged && other.losesUser)
    #expect(try await owner()?.text == "bob")
    let out = try await say(.signedOut, fixture)
    #expect(out.losesUser)
    #expect(try await owner() == nil)
    #expect(try await !say(.signedOut, fixture).losesUser)
}

private func formerChannels(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let store = fixture.store
    _ = try await say(.signedIn(user("ada")), fixture)
    let hers = try await StoreFixture.open(3, of: fixture.device, in: store)
    #expect(try await store.channelsOfFormerUsers(of: nil, limit: 10).isEmpty)
    _ = try await say(.signedIn(user("bob")), fixture)
    #expect(try await store.channelsOfFormerUsers(of: nil, limit: 10) == [hers])
    #expect(try await store.channel(hers.serial) == nil)
    #expect(try await store.channel(hers.id, device: hers.device) == nil)
    #expect(try await store.channels(device: hers.device) == [fixture.first, fixture.second], "channels without a user")
    let his = try await StoreFixture.open(4, of: fixture.device, in: store)
    _ = try await say(.signedOut, fixture)
    #expect(try await store.channelsOfFormerUsers(of: nil, limit: 10) == [hers, his])
    #expect(try await store.channelsOfFormerUsers(of: nil, limit: 1) == [hers])
    #expect(try await store.channelsOfFormerUsers(of: hers.device, limit: 10) == [hers, his])
    #expect(try await store.channelsOfFormerUsers(of: DeviceSerial(hers.device.rawValue + 1), limit: 10).isEmpty)
    // Without a user again.
    let free = try await StoreFixture.open(5, of: fixture.device, in: store)
    _ = try await say(.signedIn(user("ada")), fixture)
    _ = try await say(.signedOut, fixture)
    #expect(try await store.channel(free.serial) == free)
}

private func formerChannelIsNotOpened(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let store = fixture.store
    _ = try await say(.signedIn(user("ada")), fixture)
    let hers = try await StoreFixture.open(3, of: fixture.device, in: store)
    _ = try await say(.signedOut, fixture)
    let again = try await store.openChannel(
        hers.id, device: hers.device, name: nil, vapidKey: nil, wake: nil, limit: 10, at: start)
    #expect(again == .ofFormerUser)
}

private func registeredAsUsers(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let ada = try user("ada")
    let app = try StoreFixture.appID
    let new = NewDevice(DeviceID(Bytes16(high: 9, low: 1)), app: app, user: .signedIn(ada))
    let device = try #require(try await fixture.insert(new, secret: [9]))
    #expect(try await fixture.store.registration(of: device.serial)?.user == ada)
    func found(_ filter: DeviceFilter) async throws -> [DeviceSerial] {
        try await fixture.store.devices(app: app, filter, after: nil, limit: 10).devices.map(\.device.serial)
    }
    #expect(try await found(DeviceFilter(user: ada)) == [device.serial])
    #expect(try await found(DeviceFilter(user: user("bob"))).isEmpty)
    #expect(try await found(.all) == [fixture.device.serial, device.serial])
}
