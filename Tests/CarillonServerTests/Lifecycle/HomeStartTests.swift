import CarillonCore
import CarillonWire
import HTTPTypes
import Logging
import TestStores
import Testing

@testable import CarillonServer

@Suite(.timeLimit(.minutes(5)))
struct HomeStartTests {
    @Test func `a server that starts has all shards, under the epoch of its positions`() async throws {
        let store = try await stores.open()
        for version in Int64(1)...3 {
            let domain = try await RouteFixture(store: store).domain
            let map = try await store.shardMap()
            #expect(map.version == version && map.places.count == 1024)
            let epoch = domain.runtime.inbox.epoch
            #expect(Set(map.places.values) == [ShardMap.Place(node: .only, epoch: epoch)])
        }
    }

    private static let configuration = HomeDomain.Configuration(
        addresses: PublicURLs("https://push.example.com"), scheduler: Scheduler { _, _ in },
        logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))

    @Test func `two homes have half of the shards each, and a home that starts alone acquires all shards again`()
        async throws
    {
        let store = try await stores.open()
        var lastEpoch: Int64 = 0
        for count in [1, 2, 1, 2] {
            let homes = try await HomeDomain.open(store, Self.configuration, homes: count, link: { $0 }).homes
            #expect(homes.count == count)
            let places = homes.enumerated().map { number, home in
                ShardMap.Place(node: NodeNumber(Int64(number + 1)), epoch: home.runtime.inbox.epoch)
            }
            let expected = ShardSet.all.shards.map { places[Int($0.number) * count / 1024] }
            let map = try await store.shardMap().places
            #expect(ShardSet.all.shards.compactMap { map[$0] } == expected)
            let shards = homes.map { home in ShardSet.all.shards.filter { home.runtime.shards.contains($0) }.count }
            #expect(shards == Array(repeating: 1024 / count, count: count))
            let epochs = places.map(\.epoch)
            #expect(Set(epochs).count == count && epochs.allSatisfy { $0 > lastEpoch })
            lastEpoch = epochs.max() ?? 0
        }
    }

    @Test func `each of two homes writes, knows the other one, and changes nothing after the next start`() async throws {
        let store = try await stores.open()
        let app = try #require(AppID("com.example.app"))
        let (shared, homes) = try await HomeDomain.open(store, Self.configuration, homes: 2, link: { $0 })
        _ = try await shared.apps.create(app)
        for home in homes {
            _ = try await home.devices.register(app: app)
            #expect(home.shared === shared && home.homes === shared.homes)
        }
        for number in [UInt16(0), 511, 512, 1023] {
            let home = shared.homes.home(of: Shard(number: number))
            #expect(home === homes[Int(number) / 512].runtime)
        }
        #expect(shared.homes.shards == .all && !shared.homes.isOne)
        _ = try await HomeDomain.open(store, Self.configuration, homes: 2, link: { $0 })
        for home in homes {
            let fault = await #expect(throws: StoreFault.self) { try await home.devices.register(app: app) }
            #expect(fault?.kind == .fenced)
        }
    }

    @Test func `two homes are released with their last user`() async throws {
        weak var first: HomeDomain?
        weak var second: HomeRuntime?
        weak var process: Domain?
        do {
            let (shared, homes) = try await HomeDomain.open(stores.open(), Self.configuration, homes: 2) { home in
                LinkedHome(home, random: .system)
            }
            (first, second, process) = (homes[0], homes[1].runtime, shared)
            #expect(homes.map { $0.homes.here.count } == [2, 2])
        }
        let isReleased = first == nil && second == nil && process == nil
        #expect(isReleased)
    }

    @Test func `the parts of a process and of a home are released with their last user`() async throws {
        weak var home: HomeDomain?
        weak var process: Domain?
        weak var runtime: HomeRuntime?
        do {
            let domain = try await HomeDomain(
                store: stores.open(), addresses: PublicURLs("https://push.example.com"), scheduler: Scheduler { _, _ in },
                logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
            home = domain
            process = domain.shared
            runtime = domain.runtime
            #expect(domain.homes.shards == .all)
        }
        let (isHomeReleased, isProcessReleased, isRuntimeReleased) = (home == nil, process == nil, runtime == nil)
        #expect(isHomeReleased)
        #expect(isProcessReleased)
        #expect(isRuntimeReleased)
    }

    @Test func `a server that another server on the same store followed changes nothing of devices`() async throws {
        let store = try await stores.open()
        let former = try await RouteFixture(store: store)
        let device = try await former.device().credential
        let profile = #"{"platform":"apple","pushToken":"aa01","environment":"test"}"#
        let next = try await RouteFixture(store: store)
        #expect(try await former.request(.patch, "/v1/device", key: device, profile).status == 503)
        #expect(try await former.request(.delete, "/v1/device", key: device).status == 503)
        #expect(try await former.request(.get, "/v1/device", key: device).status == 200)
        #expect(try await next.request(.patch, "/v1/device", key: device, profile).status == 200)
    }

    @Test func `a server with a wrong key file does not start, and the home on the store continues to write`() async throws {
        let store = try await stores.open()
        let former = try await RouteFixture(key: WrappingKey(bytes: Array(repeating: 1, count: 32)), store: store)
        let device = try await former.device().credential
        let map = try await store.shardMap()
        await #expect(throws: KeyRingFault.keyFileWrong) {
            _ = try await RouteFixture(key: WrappingKey(bytes: Array(repeating: 2, count: 32)), store: store)
        }
        #expect(try await store.shardMap() == map)
        let profile = #"{"platform":"apple","pushToken":"aa01","environment":"test"}"#
        #expect(try await former.request(.patch, "/v1/device", key: device, profile).status == 200)
    }

    @Test func `a server that another server on the same store followed removes no device of a deleted app`() async throws {
        let store = try await stores.open()
        let former = try await RouteFixture(store: store)
        _ = try await former.device()
        let next = try await RouteFixture(store: store)
        let isDeleted = try await store.deleteApp(try #require(AppID("com.example.app")), at: former.domain.time.now())
        #expect(isDeleted)
        let fault = await #expect(throws: StoreFault.self) { try await former.domain.deletions.proceed() }
        #expect(fault?.kind == .fenced)
        while try await !next.domain.deletions.proceed() {}
    }
}
