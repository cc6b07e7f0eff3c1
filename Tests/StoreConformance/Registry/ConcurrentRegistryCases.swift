import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = StoreFixture.start

extension StoreCase {
    static let concurrentRegistry: [StoreCase] = [
        StoreCase("concurrent registrations do not exceed the devices of their app", devicesStayLimited),
        StoreCase("concurrent registrations with one secret lead to one device", oneSecretOneDevice),
        StoreCase("concurrent anonymous devices do not exceed the quota of their address", addressStaysLimited),
        StoreCase("each change of a registration sees the change before", changesFollowEachOther),
        StoreCase("a change that was decided on an older registration is not written", outdatedChangeIsNotWritten),
        StoreCase("of concurrent devices with one token one has it", tokenHasOneHolder),
        StoreCase("of concurrent deletions of a device one removes it", deviceIsRemovedOnce),
        StoreCase("a device is found by its number, and an unknown one has nothing to change", unknownDevice),
        StoreCase("concurrent requests open a channel once, and no more than the limit", channelsStayLimited),
        StoreCase("a channel is closed once, by its device, with its messages", channelIsClosedOnce),
        StoreCase("the wake setting of a channel is changed with its restriction alone", wakeIsChanged),
    ]
}

private func new(_ number: UInt64, registration: SecretHash? = nil) throws -> NewDevice {
    NewDevice(DeviceID(Bytes16(high: 9, low: number)), app: try StoreFixture.appID, registration: registration)
}

private func secret(_ number: UInt64) -> SecretHash { SecretHash(of: [9, UInt8(number)]) }

private func devicesStayLimited(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores.open(StoreSettings(devicesPerApp: 4)))
    let store = fixture.store
    let codes = try await concurrently(8) { number -> ErrorCode? in
        switch try await store.insertDevice(new(number), at: start, credential: .fixed(secret(number))) {
        case .stored: return nil
        case .refused(let refusal): return refusal.code
        default: throw StoreFixture.Missing()
        }
    }
    #expect(codes.filter { $0 == nil }.count == 3 && codes.filter { $0 == .devicesTooMany }.count == 5)
    let part = try await store.devices(app: try StoreFixture.appID, .all, after: nil, limit: 9)
    #expect(part.devices.count == 4)
}

private func oneSecretOneDevice(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let store = fixture.store
    let devices = try await concurrently(8) { number -> Device in
        let request = try new(number, registration: SecretHash(of: [5]))
        let inserted = try await store.insertDevice(request, at: start, credential: .fixed(secret(number)))
        guard case .stored(let device, _) = inserted else { throw StoreFixture.Missing() }
        return device
    }
    #expect(Set(devices.map(\.serial)).count == 1 && Set(devices.map(\.id)).count == 1)
    #expect(Set(devices.map(\.credentialHash.bytes)).count == 8, "each receives its own credential")
    var found = 0
    for number in UInt64(1)...8 where try await store.device(withCredential: secret(number)) != nil { found += 1 }
    #expect(found == 1, "the last one counts")
}

private func addressStaysLimited(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let store = fixture.store
    @Sendable func register(_ number: UInt64, _ address: UInt32, registration: SecretHash? = nil) async throws -> Device? {
        var request = try new(number, registration: registration)
        request.isAnonymous = true
        request.quota = .init(address: .v4(address), limit: 3)
        switch try await store.insertDevice(request, at: start, credential: .fixed(secret(number))) {
        case .stored(let device, _): return device
        case .addressFull: return nil
        default: throw StoreFixture.Missing()
        }
    }
    let known = try #require(try await register(20, 0x0102_0304, registration: SecretHash(of: [5])))
    let devices = try await concurrently(8) { try await register($0, 0x0102_0304) }.compactMap(\.self)
    #expect(devices.count == 2)
    #expect(try await register(21, 0x0102_0304, registration: SecretHash(of: [5]))?.serial == known.serial, "it is there")
    #expect(try await register(22, 0x0908_0706) != nil, "another address")
    _ = try await store.deleteDevice(devices[0].serial, at: start)
    #expect(try await register(23, 0x0102_0304) != nil)
    #expect(try await register(24, 0x0102_0304) == nil)
}

private func changesFollowEachOther(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let (store, device) = (fixture.store, fixture.device.serial)
    let changes = try await concurrently(10) { _ in
        try await store.changeRegistration(of: device, at: start) { current in
            var profile = current.profile
            profile.appVersion = (profile.appVersion ?? "") + "x"
            return .reports(profile, confirms: false)
        }
    }
    let written = try changes.map { try #require($0).get().registration.profile.appVersion?.utf8.count ?? 0 }
    #expect(written.sorted() == Array(1...10))
    #expect(try await store.registration(of: device)?.profile.appVersion == "xxxxxxxxxx")
}

private func outdatedChangeIsNotWritten(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let (store, device) = (fixture.store, fixture.device.serial)
    @Sendable func says(_ version: String, on basis: DeviceRegistration) async throws -> RegistrationWrite {
        var profile = basis.profile
        profile.appVersion = version
        return try await store.writeRegistration(.reports(profile, confirms: false), decidedOn: basis, at: start)
    }
    let first = try #require(try await store.registration(of: device))
    let results = try await concurrently(8) { try await says("\($0)", on: first) }
    let second = try #require(try await store.registration(of: device))
    let decided = results.compactMap { result -> DeviceRegistration? in
        guard case .decided(let decision) = result else { return nil }
        return decision.registration
    }
    #expect(decided == [second])
    #expect(results.filter { $0 == .outdated(second) }.count == 7)
    let suspended = try #require(RegistrationRules.suspend(first, because: .byOperator, at: start))
    #expect(try await store.writeRegistration(.becomes(suspended), decidedOn: first, at: start) == .outdated(second))
    #expect(try await store.registration(of: device) == second)
    let same = RegistrationRules.Decision.unchanged(second)
    #expect(try await store.writeRegistration(.nothing, decidedOn: second, at: start) == .decided(same))
    guard case .decided = try await says("9", on: second) else { throw StoreFixture.Missing() }
    #expect(try await store.registration(of: device)?.profile.appVersion == "9")
    _ = try await store.deleteDevice(device, at: start)
    #expect(try await says("10", on: second) == .deviceGone)
}

private func tokenHasOneHolder(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let store = fixture.store
    var devices: [DeviceSerial] = []
    for number in UInt64(1)...3 {
        devices.append(try #require(try await fixture.insert(new(number), secret: [9, UInt8(number)])).serial)
    }
    let (all, profile) = (devices, try PushFixture.profile("aa01"))
    _ = try await concurrently(3) { number in
        try await store.changeRegistration(of: all[Int(number) - 1], at: start) { _ in .reports(profile, confirms: true) }
    }
    var holders = 0
    for device in devices {
        let registration = try #require(try await store.registration(of: device))
        if registration.profile.address != nil {
            holders += 1
            #expect(registration.status == .registered)
        } else {
            #expect(registration.status == .suspended(.tokenTaken))
        }
    }
    #expect(holders == 1)
}

private func deviceIsRemovedOnce(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let (store, device) = (fixture.store, fixture.device.serial)
    let removed = try await concurrently(5) { _ in try await store.deleteDevice(device, at: start) }.compactMap(\.self)
    #expect(removed.map(\.devices) == [[device]])
    #expect(try await store.device(device) == nil)
}

private func unknownDevice(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let (store, device) = (fixture.store, fixture.device)
    #expect(try await store.device(device.serial) == device)
    #expect(try await store.resetBadge(of: device.serial))
    let nobody = DeviceSerial(device.serial.rawValue + 99)
    #expect(try await store.device(nobody) == nil)
    #expect(try await store.registration(of: nobody) == nil)
    #expect(try await store.changeRegistration(of: nobody, at: start) { _ in .nothing } == nil)
    #expect(try await !store.resetBadge(of: nobody))
    #expect(try await !store.renewCredential(of: nobody, to: secret(1)))
    #expect(try await store.deleteDevice(nobody, at: start) == nil)
    try await store.markSeen([nobody], areAnonymous: true, at: start)
    try await store.devicesCame([nobody, device.serial], at: start)
    #expect(try await store.channels(device: nobody).isEmpty)
    #expect(try await store.device(device.serial) == device)
}

private func channelsStayLimited(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let (store, device) = (fixture.store, fixture.device.serial)
    @Sendable func open(_ number: UInt64, limit: Int) async throws -> OpenChannelResult {
        try await store.openChannel(
            ChannelID(Bytes16(high: 8, low: number)), device: device, name: nil, vapidKey: nil, wake: nil, limit: limit,
            at: start)
    }
    let same = try await concurrently(8) { _ in try await open(100, limit: 3) }
    var (opened, known): ([PushChannel], [PushChannel]) = ([], [])
    for result in same {
        switch result {
        case .opened(let channel): opened.append(channel)
        case .alreadyOpen(let channel): known.append(channel)
        default: Issue.record("\(result)")
        }
    }
    let one = try #require(opened.first)
    #expect(opened.count == 1 && known == Array(repeating: one, count: 7))
    let results = try await concurrently(8) { try await open($0, limit: 6) }
    #expect(results.filter { $0 == .tooMany }.count == 5)
    #expect(try await store.channels(device: device).count == 6)
    let nobody = try await store.openChannel(
        ChannelID(Bytes16(high: 8, low: 1)), device: DeviceSerial(device.rawValue + 99), name: nil, vapidKey: nil,
        wake: nil, limit: 9, at: start)
    #expect(nobody == .deviceGone)
}

private func channelIsClosedOnce(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let (store, channel) = (fixture.store, fixture.first)
    _ = try await fixture.append(fixture.envelope(1))
    _ = try await fixture.append(fixture.envelope(2, on: fixture.second))
    let other = try #require(try await fixture.insert(new(1), secret: [9, 1]))
    #expect(try await store.channel(channel.id, device: other.serial) == nil)
    #expect(try await store.closeChannel(channel.id, device: other.serial, at: start) == nil)
    let closed = try await concurrently(5) { _ in
        try await store.closeChannel(channel.id, device: channel.device, at: start)
    }
    #expect(closed.compactMap(\.self) == [channel.serial])
    #expect(try await fixture.outcome(1) == .gone)
    #expect(try await fixture.waiting().map(\.position) == [2])
    #expect(try await fixture.append(fixture.envelope(3)) == .originGone)
    let again = try await StoreFixture.open(1, of: fixture.device, in: store)
    #expect(again.id == channel.id && again.serial != channel.serial, "it is another channel")
}

private func wakeIsChanged(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let (store, device) = (fixture.store, fixture.device.serial)
    func open(_ key: [UInt8]?, _ wake: WakeMode?) async throws -> OpenChannelResult {
        try await store.openChannel(
            ChannelID(Bytes16(high: 8, low: 1)), device: device, name: nil, vapidKey: key, wake: wake, limit: 9, at: start)
    }
    guard case .opened(var channel) = try await open([4], nil) else { throw StoreFixture.Missing() }
    #expect(channel.wake == .background)
    #expect(try await open([5], .alert) == .alreadyOpen(channel), "with another restriction")
    #expect(try await open(nil, .alert) == .alreadyOpen(channel))
    channel.wake = .alert
    #expect(try await open([4], .alert) == .alreadyOpen(channel))
    #expect(try await open([4], nil) == .alreadyOpen(channel))
    #expect(try await store.channel(channel.serial) == channel)
}
