import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = StoreFixture.start
private let everyone = ServiceQuery()

extension StoreCase {
    static let providers: [StoreCase] = [
        StoreCase("a provider is found with its last description", profileIsKept),
        StoreCase("an icon is stored with its profile, and is read separately", iconIsKept),
        StoreCase("a device finds the providers of its user in its app and its realm", userFindsOwnDevices),
        StoreCase("a query finds the entries that match all of it", queriesAreNarrow),
        StoreCase("the limit of providers applies to all that are found", providersAreLimited),
        StoreCase("a server is found by all users, and finds the devices of a named user", serverIsFound),
        StoreCase("the peers of a provider are the other devices of its user", peersAreOfOneUser),
        StoreCase("a profile ends with its device's user, and with its device", profileEnds),
    ]
}

private func profileIsKept(_ stores: any StoreMaker) async throws {
    let fixture = try await ServiceFixture(stores)
    let store = fixture.store
    let (phone, tablet) = (try await fixture.device(1), try await fixture.device(2))
    func found() async throws -> [ServiceProvider] {
        try #require(try await store.serviceProviders(for: tablet.serial, everyone, limit: 10)).providers
    }
    #expect(try await found().isEmpty)
    #expect(try await !store.removeServiceProfile(of: phone.serial))
    var profile = try ServiceFixture.profile(offering: ["1.0", "2.0"], revision: "a")
    #expect(try await store.putServiceProfile(profile, of: phone.serial) == true)
    let provider = try #require(try await found().first)
    #expect(provider.device == phone.serial && provider.id == phone.id)
    #expect(provider.app == phone.app && provider.appID == phone.appID)
    #expect(try provider.user == ServiceFixture.user("ada"))
    #expect(provider.cluster == nil && provider.seenAt == start)
    #expect(try provider.profile == ServiceFixture.profile(offering: ["1.0", "2.0"]), "the revision is the device's own")
    #expect(try await store.putServiceProfile(profile, of: phone.serial) == false)
    profile.revision = "b"
    #expect(try await store.putServiceProfile(profile, of: phone.serial) == false)
    let other = try ServiceFixture.profile("my phone", offering: ["2.0", "3.0"])
    #expect(try await store.putServiceProfile(other, of: phone.serial) == true)
    #expect(try await found().map(\.profile) == [other])
    #expect(try await store.removeServiceProfile(of: phone.serial))
    #expect(try await !store.removeServiceProfile(of: phone.serial))
    #expect(try await found().isEmpty)
    _ = try await store.deleteDevice(phone.serial, at: start)
    #expect(try await store.putServiceProfile(other, of: phone.serial) == nil)
}

private func iconIsKept(_ stores: any StoreMaker) async throws {
    let fixture = try await ServiceFixture(stores)
    let store = fixture.store
    let (phone, tablet) = (try await fixture.device(1), try await fixture.device(2))
    #expect(try await store.serviceIcon(of: phone.serial) == nil)
    let icon = ServiceIcon(name: "0123456789abcdef", bytes: [9, 8, 7])
    _ = try await store.putServiceProfile(ServiceFixture.profile(icon: icon), of: phone.serial)
    #expect(try await store.serviceIcon(of: phone.serial) == icon)
    #expect(try await store.serviceIcon(of: tablet.serial) == nil)
    let reach = try #require(try await store.serviceProviders(for: tablet.serial, everyone, limit: 10))
    #expect(reach.providers.map(\.profile.icon) == [ServiceIcon(name: icon.name)])
    #expect(try await store.putServiceProfile(ServiceFixture.profile(), of: phone.serial) == true)
    #expect(try await store.serviceIcon(of: phone.serial) == nil)
}

private func userFindsOwnDevices(_ stores: any StoreMaker) async throws {
    let fixture = try await ServiceFixture(stores)
    let store = fixture.store
    let (phone, tablet) = (try await fixture.device(1), try await fixture.device(2))
    let bobs = try await fixture.device(3, of: "bob")
    let elsewhere = try await fixture.device(4, app: "com.example.other")
    try await fixture.offer(phone, tablet, bobs, elsewhere, fixture.base.device)
    #expect(try await fixture.found(by: phone) == [tablet.id], "without itself")
    #expect(try await fixture.found(by: bobs) == [])
    #expect(try await fixture.found(by: fixture.base.device) == nil, "it belongs to no user")
    let reach = try await store.serviceProviders(for: phone.serial, everyone, limit: 10)
    #expect(try reach?.caller == .user(ServiceFixture.user("ada")))
    try await store.setDocument(.realm, of: phone.app, to: "home")
    #expect(try await fixture.found(by: phone) == [tablet.id], "the other app is not in the realm")
    try await store.setDocument(.realm, of: elsewhere.app, to: "home")
    #expect(try await fixture.found(by: phone) == [tablet.id, elsewhere.id])
    #expect(try await fixture.found(by: elsewhere) == [phone.id, tablet.id])
    _ = try await store.deleteApp(elsewhere.appID, at: start)
    #expect(try await fixture.found(by: phone) == [tablet.id])
    try await store.setDocument(.realm, of: phone.app, to: nil)
    #expect(try await fixture.found(by: phone) == [tablet.id])
}

private func queriesAreNarrow(_ stores: any StoreMaker) async throws {
    let fixture = try await ServiceFixture(stores)
    let store = fixture.store
    let (phone, tablet) = (try await fixture.device(1), try await fixture.device(2))
    let (old, bobs) = (try await fixture.device(3), try await fixture.device(4, of: "bob"))
    let elsewhere = try await fixture.device(5, app: "com.example.other")
    try await fixture.offer(phone, tablet, bobs, elsewhere)
    _ = try await store.putServiceProfile(ServiceFixture.profile(offering: ["0.9"]), of: old.serial)
    for app in [phone.app, elsewhere.app] { try await store.setDocument(.realm, of: app, to: "home") }
    func find(_ query: ServiceQuery) async throws -> Set<DeviceID>? { try await fixture.found(by: phone, query) }
    let service = try #require(ServiceID(ServiceFixture.service))
    let version = try #require(ServiceVersion("1.0"))
    let none = try #require(ServiceID("com.example.none"))
    #expect(try await find(ServiceQuery(service: service)) == [tablet.id, old.id, elsewhere.id])
    #expect(try await find(ServiceQuery(service: service, version: version)) == [tablet.id, elsewhere.id])
    #expect(try await find(ServiceQuery(service: service, version: version, app: elsewhere.appID)) == [elsewhere.id])
    #expect(try await find(ServiceQuery(service: none)) == [])
    #expect(try await find(ServiceQuery(kind: .application)) == [tablet.id, old.id, elsewhere.id])
    #expect(try await find(ServiceQuery(kind: .server)) == [])
    #expect(try await find(ServiceQuery(device: tablet.id)) == [tablet.id])
    #expect(try await find(ServiceQuery(service: service, version: version, device: old.id)) == [])
    #expect(try await find(ServiceQuery(app: phone.appID, device: elsewhere.id)) == [])
    for hidden in [phone, bobs] { #expect(try await find(ServiceQuery(device: hidden.id)) == []) }
}

private func providersAreLimited(_ stores: any StoreMaker) async throws {
    let fixture = try await ServiceFixture(stores)
    let phone = try await fixture.device(1)
    var all: Set<DeviceID> = []
    for number in UInt64(2)...4 {
        let device = try await fixture.device(number)
        try await fixture.offer(device)
        all.insert(device.id)
    }
    let server = try await fixture.device(5, of: nil)
    try await fixture.offer(server)
    #expect(try await fixture.store.setClusterPlace(ClusterPlace(), of: server.id, app: server.app) == true)
    all.insert(server.id)
    for limit in 1...5 {
        let found = try #require(try await fixture.found(by: phone, limit: limit))
        #expect(found.count == min(limit, 4) && found.isSubset(of: all))
    }
}

private func serverIsFound(_ stores: any StoreMaker) async throws {
    let fixture = try await ServiceFixture(stores)
    let store = fixture.store
    let (phone, bobs) = (try await fixture.device(1), try await fixture.device(2, of: "bob"))
    let (server, second) = (try await fixture.device(3, of: nil), try await fixture.device(4, of: nil))
    let elsewhere = try await fixture.device(5, app: "com.example.other")
    let nobodys = try await fixture.device(6, of: nil)
    try await fixture.offer(phone, bobs, server, second, elsewhere, nobodys)
    #expect(try await fixture.found(by: server) == nil, "it is no server yet")
    let place = ClusterPlace(host: "server.example.com", port: 8443, priority: 7)
    for device in [server, second] {
        #expect(try await store.setClusterPlace(place, of: device.id, app: device.app) == true)
    }
    #expect(try await fixture.found(by: phone) == [server.id, second.id])
    #expect(try await fixture.found(by: bobs, ServiceQuery(kind: .server)) == [server.id, second.id])
    #expect(try await fixture.found(by: bobs, ServiceQuery(kind: .application)) == [])
    #expect(try await fixture.found(by: elsewhere) == [], "its app is not in the realm")
    let named = try await store.serviceProviders(for: phone.serial, ServiceQuery(device: server.id), limit: 10)
    #expect(named?.providers.map(\.cluster) == [place])
    // The devices that the server finds.
    let reach = try await store.serviceProviders(for: server.serial, everyone, limit: 10)
    #expect(reach?.caller == .server && reach?.providers.map(\.id) == [second.id])
    let ada = try ServiceFixture.user("ada")
    #expect(try await fixture.found(by: server, ServiceQuery(kind: .application, user: ada)) == [phone.id])
    #expect(try await fixture.found(by: server, ServiceQuery(user: ada)) == [phone.id, second.id])
    #expect(try await fixture.found(by: server, ServiceQuery(device: bobs.id)) == [bobs.id])
    #expect(try await fixture.found(by: server, ServiceQuery(device: bobs.id, user: ada)) == [])
    #expect(try await fixture.found(by: server, ServiceQuery(device: nobodys.id)) == [], "it is no user's, and no server")
    #expect(try await store.setClusterPlace(nil, of: server.id, app: server.app) == true)
    #expect(try await fixture.found(by: server) == nil)
    #expect(try await fixture.found(by: phone) == [second.id])
}

private func peersAreOfOneUser(_ stores: any StoreMaker) async throws {
    let fixture = try await ServiceFixture(stores)
    let store = fixture.store
    let (phone, tablet) = (try await fixture.device(1), try await fixture.device(2))
    let (watch, _) = (try await fixture.device(3), try await fixture.device(4, of: "bob"))
    let elsewhere = try await fixture.device(5, app: "com.example.other")
    func peers(of device: Device, limit: Int = 10) async throws -> Set<DeviceSerial> {
        Set(try await store.servicePeers(of: device.serial, limit: limit))
    }
    #expect(try await peers(of: phone).isEmpty, "it provides nothing")
    try await fixture.offer(phone, fixture.base.device)
    #expect(try await peers(of: phone) == [tablet.serial, watch.serial], "whether they provide something or not")
    #expect(try await peers(of: phone, limit: 1).count == 1)
    #expect(try await peers(of: fixture.base.device).isEmpty, "it has no user")
    for app in [phone.app, elsewhere.app] { try await store.setDocument(.realm, of: app, to: "home") }
    #expect(try await peers(of: phone) == [tablet.serial, watch.serial, elsewhere.serial])
    try await fixture.signIn("bob", on: watch)
    #expect(try await peers(of: phone) == [tablet.serial, elsewhere.serial])
}

private func profileEnds(_ stores: any StoreMaker) async throws {
    let fixture = try await ServiceFixture(stores)
    let store = fixture.store
    let (phone, tablet) = (try await fixture.device(1), try await fixture.device(2))
    let icon = ServiceIcon(name: "0123456789abcdef", bytes: [9])
    func offer() async throws -> Bool? {
        try await store.putServiceProfile(ServiceFixture.profile(icon: icon), of: phone.serial)
    }
    #expect(try await offer() == true)
    try await fixture.signIn("bob", on: phone)
    #expect(try await store.serviceIcon(of: phone.serial) == nil)
    #expect(try await !store.removeServiceProfile(of: phone.serial))
    try await fixture.signIn("ada", on: phone)
    #expect(try await fixture.found(by: tablet) == [], "the user returns, and the profile does not")
    #expect(try await offer() == true)
    _ = try await store.deleteDevice(phone.serial, at: start)
    #expect(try await store.serviceIcon(of: phone.serial) == nil)
    #expect(try await fixture.found(by: tablet) == [])
}
