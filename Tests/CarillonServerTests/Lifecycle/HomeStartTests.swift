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

    @Test func `what a process has and what a home has are released with their last user`() async throws {
        weak var home: HomeDomain?
        weak var process: Domain?
        weak var runtime: HomeRuntime?
        do {
            let domain = try await HomeDomain(
                store: stores.open(), addresses: OwnAddresses("https://push.example.com"), scheduler: Scheduler { _, _ in },
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

    @Test func `a server with a wrong key file does not start, and the home on the store goes on writing`() async throws {
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
