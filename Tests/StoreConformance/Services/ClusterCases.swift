import CarillonCore
import CarillonWire
import TestStores
import Testing

private let start = StoreFixture.start

extension StoreCase {
    static let clusters: [StoreCase] = [
        StoreCase("a server has the place that was set last, by priority", placesAreKept),
        StoreCase("an app has a limited number of servers, also if several are created concurrently", serversAreLimited),
    ]
}

private func placesAreKept(_ stores: any StoreMaker) async throws {
    let fixture = try await ServiceFixture(stores)
    let store = fixture.store
    let (one, two) = (try await fixture.device(1, of: nil), try await fixture.device(2, of: nil))
    let elsewhere = try await fixture.device(3, app: "com.example.other")
    func cluster() async throws -> [(device: DeviceID, place: ClusterPlace)] { try await store.cluster(of: one.app) }
    #expect(try await cluster().isEmpty)
    let place = ClusterPlace(host: "one.example.com", port: 443, priority: 5)
    #expect(try await store.setClusterPlace(place, of: one.id, app: one.app) == true)
    #expect(try await store.setClusterPlace(ClusterPlace(priority: 2), of: two.id, app: two.app) == true)
    #expect(try await cluster().map { $0.device } == [two.id, one.id])
    #expect(try await cluster().map { $0.place } == [ClusterPlace(priority: 2), place])
    #expect(try await store.setClusterPlace(ClusterPlace(priority: 1), of: one.id, app: one.app) == true)
    #expect(try await cluster().map { $0.device } == [one.id, two.id])
    #expect(try await cluster().map { $0.place } == [ClusterPlace(priority: 1), ClusterPlace(priority: 2)])
    #expect(try await store.setClusterPlace(place, of: elsewhere.id, app: one.app) == false, "it is another app's")
    #expect(try await store.setClusterPlace(nil, of: one.id, app: elsewhere.app) == false)
    #expect(try await store.cluster(of: elsewhere.app).isEmpty)
    #expect(try await cluster().count == 2)
    #expect(try await store.setClusterPlace(nil, of: one.id, app: one.app) == true)
    #expect(try await store.setClusterPlace(nil, of: one.id, app: one.app) == false)
    #expect(try await cluster().map { $0.device } == [two.id])
    _ = try await store.deleteDevice(two.serial, at: start)
    #expect(try await cluster().isEmpty)
    #expect(try await store.setClusterPlace(place, of: two.id, app: two.app) == false)
}

private func serversAreLimited(_ stores: any StoreMaker) async throws {
    let fixture = try await ServiceFixture(stores)
    let store = fixture.store
    var devices: [Device] = []
    for number in 1...UInt64(ClusterPlace.mostOfApp + 3) { devices.append(try await fixture.device(number, of: nil)) }
    let servers = devices
    @Sendable func set(_ number: Int) async throws -> Bool? {
        try await store.setClusterPlace(ClusterPlace(priority: 3), of: servers[number].id, app: servers[number].app)
    }
    for number in 0..<ClusterPlace.mostOfApp - 1 { #expect(try await set(number) == true) }
    let last = try await atOnce(4) { try await set(ClusterPlace.mostOfApp - 1 + $0) }
    #expect(last.filter { $0 == true }.count == 1 && last.filter { $0 == nil }.count == 3)
    let full = try await store.cluster(of: fixture.base.device.app).map { $0.device }
    #expect(full.count == ClusterPlace.mostOfApp)
    #expect(try await set(0) == true, "a server may get another place")
    let elsewhere = try await fixture.device(99, of: nil, app: "com.example.other")
    #expect(try await store.setClusterPlace(ClusterPlace(), of: elsewhere.id, app: elsewhere.app) == true)
    _ = try await store.deleteDevice(servers[0].serial, at: start)
    let refused = try #require(servers.indices.first { !full.contains(servers[$0].id) })
    #expect(try await set(refused) == true)
}
