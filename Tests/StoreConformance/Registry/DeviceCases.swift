import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = StoreFixture.start

private func key(_ number: UInt64, in fixture: StoreFixture) async throws -> KeyID {
    let key = AccessKey(
        id: KeyID(number), role: .client, app: try StoreFixture.appID, name: nil, secretHash: SecretHash(of: [1]),
        createdAt: StoreFixture.start)
    #expect(try await fixture.store.insertKey(key))
    return key.id
}

private func anonymous(_ number: UInt64, seenAt: Int64, _ fixture: StoreFixture) async throws -> Device {
    let new = NewDevice(DeviceID(Bytes16(high: 9, low: number)), app: try StoreFixture.appID, isAnonymous: true)
    return try #require(
        try await fixture.insert(new, secret: [9, UInt8(number)], at: start.adding(seconds: seenAt)))
}

private func cutoff(_ seconds: Int64) -> RetentionCutoff {
    RetentionCutoff(wall: start.adding(seconds: seconds), served: 0)
}

private func register(_ number: UInt64, _ key: KeyID?, _ fixture: StoreFixture) async throws -> DeviceSerial? {
    let new = NewDevice(DeviceID(Bytes16(high: 9, low: number)), app: try StoreFixture.appID, key: key)
    return try await fixture.insert(new, secret: [9, UInt8(number)])?.serial
}

extension StoreCase {
    static let devices: [StoreCase] = [
        StoreCase("a device is found by its id and by its credential, until it is deleted", deviceIsFound),
        StoreCase("one registration leads to one device, which has the newest credential", oneRegistrationLeadsToOneDevice),
        StoreCase(
            "an app's devices are listed by the page, in the order of their registration", devicesAreListed),
        StoreCase(
            "an anonymous device is idle when it was not seen, sooner when it has no channel",
            anonymousDeviceIsIdle),
        StoreCase("a registered device is idle when it was not seen, sooner when it is suspended", registeredDeviceIsIdle),
        StoreCase("a device's credential is renewed, and the earlier one is invalid", credentialIsRenewed),
        StoreCase("a registration that is repeated after a renewal creates another device", renewalEndsTheRegistration),
        StoreCase("devices are listed by status and platform", devicesAreFiltered),
        StoreCase("a device whose status was not reported is known until it was reported", statusIsTold),
        StoreCase(
            "a device is found by the key that it registered with, and a revoked key registers none",
            deviceOfAKeyIsFound),
        StoreCase("the devices of a key are read in parts, among the devices of its app", devicesOfAKeyAreReadInParts),
        StoreCase("the number of a new device has the shard of its id, and is larger than all others", numbersHaveShards),
        StoreCase(
            "devices that are stored concurrently have different numbers with the shards of their ids", numbersMadeAtOnce),
    ]
}

private func deviceIsFound(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let (store, device) = (fixture.store, fixture.device)
    #expect(device.credentialHash == SecretHash(of: [1]) && device.createdAt == start)
    #expect(try await store.device(device.id) == device)
    #expect(try await store.device(withCredential: SecretHash(of: [1])) == device)
    #expect(try await store.device(withCredential: SecretHash(of: [2])) == nil)
    _ = try await store.deleteDevice(device.serial, at: start)
    #expect(try await store.device(device.id) == nil)
    #expect(try await store.device(withCredential: SecretHash(of: [1])) == nil)
}

private func oneRegistrationLeadsToOneDevice(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    func register(_ number: UInt64, as registration: UInt8) async throws -> Device? {
        let new = NewDevice(
            DeviceID(Bytes16(high: 9, low: number)), app: try StoreFixture.appID,
            registration: SecretHash(of: [registration]))
        return try await fixture.insert(new, secret: [9, UInt8(number)])
    }
    let first = try #require(try await register(1, as: 1))
    let again = try #require(try await register(2, as: 1))
    #expect(again.serial == first.serial && again.id == first.id)
    #expect(try await fixture.store.device(withCredential: SecretHash(of: [9, 1])) == nil)
    #expect(try await fixture.store.device(withCredential: SecretHash(of: [9, 2])) == again)
    #expect(try await register(3, as: 2)?.serial != first.serial)
}

private func devicesAreListed(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let app = try StoreFixture.appID
    var ids = [fixture.device.id]
    for number in [UInt64(9), 2, 5] {
        let new = NewDevice(DeviceID(Bytes16(high: 9, low: number)), app: app)
        ids.append(try #require(try await fixture.insert(new, secret: [9, UInt8(number)])).id)
    }
    let first = try await fixture.store.devices(app: app, .all, after: nil, limit: 3)
    #expect(first.devices.map(\.device.id) == Array(ids[..<3]))
    let rest = try await fixture.store.devices(app: app, .all, after: first.devices[2].device.serial, limit: 3)
    #expect(rest.devices.map(\.device.id) == [ids[3]] && rest.end == nil)
    let other = try #require(AppID("com.example.other"))
    _ = try await fixture.store.createApp(other, at: start)
    #expect(try await fixture.store.devices(app: other, .all, after: nil, limit: 3).devices.isEmpty)
    let homeless = NewDevice(DeviceID(Bytes16(high: 9, low: 99)), app: try #require(AppID("com.example.none")))
    #expect(try await fixture.insert(homeless, secret: [99]) == nil)
}

private func anonymousDeviceIsIdle(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let store = fixture.store
    let old = try await anonymous(1, seenAt: 0, fixture)
    let bare = try await anonymous(2, seenAt: 50, fixture)
    let used = try await anonymous(3, seenAt: 50, fixture)
    for device in [old, used] { _ = try await StoreFixture.open(1, of: device, in: store) }
    func idle(_ reason: UnusedDevice.Reason, _ seen: Int64) async throws -> [DeviceSerial] {
        try await store.unusedDevices(reason, by: cutoff(seen), limit: 10).map(\.serial)
    }
    #expect(try await idle(.anonymousIdle, -1).isEmpty)
    #expect(try await idle(.anonymousIdle, 0) == [old.serial])
    #expect(try await idle(.anonymousUnused, 49).isEmpty)
    #expect(try await idle(.anonymousUnused, 50) == [bare.serial])
    #expect(try await idle(.anonymousIdle, 50) == [old.serial, bare.serial, used.serial])
    let found = try await store.unusedDevices(.anonymousIdle, by: cutoff(0), limit: 10)
    #expect(found == [UnusedDevice(serial: old.serial, id: old.id, app: try StoreFixture.appID, seenAt: start)])
    try await store.markSeen([old.serial], areAnonymous: true, at: start.adding(seconds: 100))
    #expect(try await idle(.anonymousIdle, 50) == [bare.serial, used.serial])
    #expect(try await store.device(fixture.device.id)?.isAnonymous == false)
}

private func deviceOfAKeyIsFound(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let (store, app) = (fixture.store, try StoreFixture.appID)
    let one = try await key(.max, in: fixture)
    let other = try await key(2, in: fixture)
    let first = try #require(try await register(1, one, fixture))
    let second = try #require(try await register(2, one, fixture))
    let third = try #require(try await register(3, other, fixture))
    _ = try await register(4, nil, fixture)
    func devices(of key: KeyID) async throws -> KeyDevices {
        try await store.devices(registeredWith: key, of: app, after: nil, limit: 9)
    }
    #expect(try await devices(of: one) == KeyDevices([first, second], end: nil))
    #expect(try await devices(of: other) == KeyDevices([third], end: nil))
    #expect(try await store.revokeKey(one, at: start))
    #expect(try await register(5, one, fixture) == nil)
    #expect(try await register(6, KeyID(77), fixture) == nil)
    #expect(try await devices(of: one) == KeyDevices([first, second], end: nil))
    #expect(try await devices(of: KeyID(77)) == KeyDevices([], end: nil))
}

private func devicesOfAKeyAreReadInParts(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let (store, app) = (fixture.store, try StoreFixture.appID)
    let one = try await key(1, in: fixture)
    let other = try #require(AppID("com.example.other"))
    _ = try await store.createApp(other, at: start)
    // The first device has no key. A device of another app does not count as one of a part.
    var serials = [fixture.device.serial]
    for number in UInt64(1)...5 {
        serials.append(try #require(try await register(number, number == 3 ? nil : one, fixture)))
        let new = NewDevice(DeviceID(Bytes16(high: 8, low: number)), app: other)
        #expect(try await fixture.insert(new, secret: [8, UInt8(number)]) != nil)
    }
    func part(after place: DeviceSerial?) async throws -> KeyDevices {
        try await store.devices(registeredWith: one, of: app, after: place, limit: 2)
    }
    #expect(try await part(after: nil) == KeyDevices([serials[1]], end: serials[1]))
    #expect(try await part(after: serials[1]) == KeyDevices([serials[2]], end: serials[3]))
    _ = try await store.deleteDevice(serials[3], at: start)
    #expect(try await part(after: serials[3]) == KeyDevices([serials[4], serials[5]], end: serials[5]))
    #expect(try await part(after: serials[5]) == KeyDevices([], end: nil))
    _ = try await store.deleteDevice(serials[4], at: start)
    #expect(try await part(after: serials[2]) == KeyDevices([serials[5]], end: nil))
    let elsewhere = try await store.devices(registeredWith: one, of: other, after: nil, limit: 9)
    #expect(elsewhere == KeyDevices([], end: nil))
    #expect(try await store.deleteApp(app, at: start))
    #expect(try await part(after: nil) == KeyDevices([], end: nil))
}

/// Stores a device whose id has these last bits.
private func stored(_ number: UInt64, low: UInt64, in store: any Store) async throws -> Device {
    let new = NewDevice(DeviceID(Bytes16(high: 100 + number, low: low)), app: try StoreFixture.appID)
    return try #require(try await StoreFixture.insert(new, secret: [100, UInt8(number)], in: store))
}

private func numbersHaveShards(_ stores: any StoreMaker) async throws {
    let store = try await stores.open()
    let app = try #require(try await store.createApp(StoreFixture.appID, at: start)).serial
    // Devices of an earlier version.
    try await stores.addDevices(3, to: app, in: store)
    let before = DeviceSerial(Shard.firstWithShard - 1)
    #expect(try await stores.countDevices(upTo: before, in: store) == 3)
    var last = before
    for (number, low) in ([0, 5, 1023, 1023, 0, 1024, 7170, .max] as [UInt64]).enumerated() {
        let device = try await stored(UInt64(number), low: low, in: store)
        #expect(Shard(of: device.id) == Shard(of: device.serial) && device.id.value.low == low)
        #expect(device.serial.rawValue > last.rawValue)
        #expect(try await store.device(device.id) == device)
        last = device.serial
    }
    #expect(try await store.deleteDevice(last, at: start) != nil)
    let next = try await stored(99, low: 0, in: store)
    #expect(next.serial.rawValue > last.rawValue, "a number is not used again")
    #expect(try await stores.countDevices(upTo: before, in: store) == 3, "the devices of before keep their numbers")
    #expect(try await stores.wrongCounters(in: store) == [])
}

private func numbersMadeAtOnce(_ stores: any StoreMaker) async throws {
    let store = try await stores.open()
    _ = try await store.createApp(StoreFixture.appID, at: start)
    let devices: [Device] = try await withThrowingTaskGroup(of: Device.self) { group in
        for number in UInt64(0)..<40 {
            group.addTask { try await stored(number, low: number % 3, in: store) }
        }
        var devices: [Device] = []
        for try await device in group { devices.append(device) }
        return devices
    }
    #expect(Set(devices.map(\.serial)).count == 40)
    #expect(devices.allSatisfy { Shard(of: $0.id) == Shard(of: $0.serial) })
}

private func registeredDeviceIsIdle(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let (store, device) = (fixture.store, fixture.device.serial)
    func idle(_ reason: UnusedDevice.Reason, _ seen: Int64) async throws -> [DeviceSerial] {
        try await store.unusedDevices(reason, by: cutoff(seen), limit: 10).map(\.serial)
    }
    #expect(try await idle(.inactive, -1).isEmpty)
    #expect(try await idle(.suspended, 1000).isEmpty)
    #expect(try await idle(.inactive, 0) == [device])
    try await store.markSeen([device], areAnonymous: false, at: start.adding(seconds: 100))
    #expect(try await store.device(fixture.device.id)?.isAnonymous == false)
    #expect(try await idle(.inactive, 99).isEmpty)
    #expect(try await idle(.inactive, 100) == [device])
    _ = try await store.changeRegistration(of: device, at: start) { current in
        RegistrationRules.suspend(current, because: .byOperator, at: start.adding(seconds: 50)).map { .becomes($0) }
            ?? .nothing
    }
    #expect(try await idle(.suspended, 99).isEmpty, "it was seen since")
    #expect(try await idle(.suspended, 100) == [device])
    for reason in [UnusedDevice.Reason.anonymousIdle, .anonymousUnused] { #expect(try await idle(reason, 1000).isEmpty) }
    let seen = start.adding(seconds: 100)
    func collect(_ moment: Timestamp) async throws -> RemovedDevices? {
        try await store.deleteDevice(device, unlessSeenAfter: .init(wall: moment, served: 0), at: seen)
    }
    #expect(try await collect(start.adding(seconds: 99)) == nil, "it came meanwhile")
    #expect(try await store.device(fixture.device.id) != nil)
    #expect(try await collect(seen)?.devices == [device])
    #expect(try await collect(seen) == nil)
}

private func credentialIsRenewed(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let (store, device) = (fixture.store, fixture.device)
    #expect(try await store.renewCredential(of: device.serial, to: SecretHash(of: [7])))
    #expect(try await store.device(device.id)?.credentialHash == SecretHash(of: [7]))
    #expect(try await store.device(withCredential: SecretHash(of: [1])) == nil)
    #expect(try await !store.renewCredential(of: DeviceSerial(device.serial.rawValue + 9), to: SecretHash(of: [8])))
}

private func renewalEndsTheRegistration(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    func register(_ number: UInt64, as registration: UInt8) async throws -> Device? {
        let new = NewDevice(
            DeviceID(Bytes16(high: 9, low: number)), app: try StoreFixture.appID,
            registration: SecretHash(of: [registration]))
        return try await fixture.insert(new, secret: [9, UInt8(number)])
    }
    let first = try #require(try await register(1, as: 1))
    let other = try #require(try await register(2, as: 2))
    #expect(try await fixture.store.renewCredential(of: first.serial, to: SecretHash(of: [7])))
    let again = try #require(try await register(3, as: 1))
    #expect(again.serial != first.serial)
    #expect(try await fixture.store.device(withCredential: SecretHash(of: [7]))?.serial == first.serial)
    #expect(try await register(4, as: 1)?.serial == again.serial)
    #expect(try await register(5, as: 2)?.serial == other.serial, "its registration stays")
}

private func devicesAreFiltered(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let app = try StoreFixture.appID
    var profile = DeviceProfile()
    profile.address = .init(platform: .apple, token: try PushToken(hexadecimal: "aa"), environment: .sandbox)
    let new = NewDevice(DeviceID(Bytes16(high: 9, low: 1)), app: app, profile: profile)
    let other = try #require(try await fixture.insert(new, secret: [9]))
    _ = try await fixture.store.changeRegistration(of: other.serial, at: start) { current in
        RegistrationRules.suspend(current, because: .byOperator, at: start).map { .becomes($0) } ?? .nothing
    }
    func ids(_ filter: DeviceFilter) async throws -> [DeviceID] {
        try await fixture.store.devices(app: app, filter, after: nil, limit: 10).devices.map(\.device.id)
    }
    #expect(try await ids(.all) == [fixture.device.id, other.id])
    #expect(try await ids(DeviceFilter(isSuspended: true)) == [other.id])
    #expect(try await ids(DeviceFilter(isSuspended: false)) == [fixture.device.id])
    #expect(try await ids(DeviceFilter(platform: .of(.apple))) == [other.id])
    #expect(try await ids(DeviceFilter(platform: DeviceFilter.Platform.none)) == [fixture.device.id])
    #expect(try await ids(DeviceFilter(isSuspended: false, platform: .of(.apple))).isEmpty)
    let page = try await fixture.store.devices(app: app, .all, after: fixture.device.serial, limit: 10)
    #expect(page.devices.map(\.registration.profile) == [profile])
}

private func statusIsTold(_ stores: any StoreMaker) async throws {
    let fixture = try await StoreFixture(stores)
    let (store, device) = (fixture.store, fixture.device.serial)
    func change(at now: Timestamp, _ rule: @escaping @Sendable (DeviceRegistration) -> DeviceRegistration?) async throws {
        _ = try await store.changeRegistration(of: device, at: now) { rule($0).map { .becomes($0) } ?? .nothing }
    }
    func news(_ position: Int64, _ at: Timestamp) -> InboxOperation {
        let envelope = Envelope(
            id: MessageID(position: position, secret: Bytes16(high: 1, low: 1)), device: device, app: fixture.device.app,
            origin: .device(device), kind: .deviceStatus(.suspended(.byOperator)), acceptedAt: at, expiresAt: .never)
        return .append(envelope, AppendRules(topic: "device:status", effects: [.statusNotified(device, at: at)]))
    }
    #expect(try await store.pendingStatuses(limit: 10).isEmpty)
    try await change(at: start) { RegistrationRules.suspend($0, because: .byOperator, at: start) }
    // Later than its registration, at the same time.
    let at = start.adding(milliseconds: 1)
    let pending = PendingStatus(device: device, app: fixture.device.app, status: .suspended(.byOperator), at: at)
    #expect(try await store.pendingStatuses(limit: 10) == [pending])
    #expect(try await store.pendingStatuses(limit: 0).isEmpty)
    func say(_ locale: String) async throws {
        var said = DeviceProfile()
        said.locale = locale
        let profile = said
        _ = try await store.changeRegistration(of: device, at: start) { _ in .reports(profile, confirms: true) }
    }
    try await say("de")
    #expect(try await store.pendingStatuses(limit: 10) == [pending], "it still must be reported")
    // An outdated status is not reported.
    #expect(try await store.commit([news(1, start)]) == [.originGone])
    #expect(try await store.commit([news(2, at)]) == [.stored(replaced: nil)])
    #expect(try await store.pendingStatuses(limit: 10).isEmpty)
    #expect(try await store.commit([news(3, at)]) == [.originGone], "once")
    try await say("fr")
    #expect(try await store.pendingStatuses(limit: 10).isEmpty, "its status is unchanged")
    let later = start.adding(seconds: 9)
    try await change(at: later) { RegistrationRules.resume($0, at: later) }
    #expect(try await store.pendingStatuses(limit: 10).map(\.status) == [.registered])
    let waiting = try await fixture.waiting()
    #expect(waiting.map(\.kind) == [.deviceStatus(.suspended(.byOperator))] && waiting.map(\.acceptedAt) == [at])
}
