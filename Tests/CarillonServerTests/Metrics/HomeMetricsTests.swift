import CarillonCore
import CarillonWire
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

/// The samples of homes in `/metrics`.
@Suite(.timeLimit(.minutes(5)))
struct HomeMetricsTests {
    @Test func `a server of one home without hand-overs reports zero`() async throws {
        let port = try FreePort.next()
        try await ServedConnections.run(metrics: MetricsRegistry()) {
            $0.metrics = ("127.0.0.1", port)
            $0.homes = 1
        } _: { server in
            let metrics = ServedConnections(homes: [server.domain], port: port)
            let lines = try await metrics.request("GET /metrics").body.split(separator: "\n")
            for line in ["carillon_homes 1", "carillon_handovers_waiting 0", "carillon_handovers_oldest_seconds 0"] {
                #expect(lines.contains { $0 == line }, "\(line)")
            }
        }
    }

    @Test func `paused push queues have the same number under the present and the deprecated name`() async throws {
        let port = try FreePort.next()
        try await ServedConnections.run(metrics: MetricsRegistry()) {
            $0.metrics = ("127.0.0.1", port)
        } _: { server in
            let metrics = ServedConnections(homes: [server.domain], port: port)
            func paused() async throws -> [Substring] {
                let lines = try await metrics.request("GET /metrics").body.split(separator: "\n")
                return lines.filter { $0.hasPrefix("carillon_push_") && $0.contains("_paused ") }
            }
            #expect(try await paused() == ["carillon_push_lanes_paused 0", "carillon_push_queues_paused 0"])
            for environment in [PushEnvironment.production, .sandbox] {
                let push = LeasedPush(
                    lease: WorkLease(work: 1, fence: 1), id: Bytes16(high: 1, low: 2), kind: .wake,
                    device: DeviceSerial(1 << 40), queue: PushQueue(app: AppSerial(1), environment: environment),
                    token: try PushToken(hexadecimal: "aa01"), addressRevision: 1, attempt: 1, isElsewhere: false,
                    expiresAt: server.domain.time.now().adding(seconds: 60), content: .wake)
                _ = await server.domain.outbox.ended(push, .credentialsRefused(reason: "Forbidden"), hasOther: false)
            }
            #expect(try await paused() == ["carillon_push_lanes_paused 2", "carillon_push_queues_paused 2"])
        }
    }

    @Test func `requests to homes are counted by their results`() async throws {
        let (registry, link, other) = (MetricsRegistry(), TestLink(to: NotingHome()), TestLink(to: NotingHome()))
        for home in [link, other] {
            home.take { _ async throws(HomeFault) -> HomeResponse in
                HomeResponse(status: 200, fields: [], body: .whole([]))
            }
        }
        let homes = Homes([link, other].map { Homes.Place($0, local: nil) }, countingBy: registry) { Int($0.number % 2) }
        let request = HomeRequest(method: "GET", path: "/", fields: [], body: .whole([]))
        func lines() -> [String] {
            registry.text().split(separator: "\n").map(String.init).filter { $0.hasPrefix("carillon_home_requests_total") }
        }
        func counts(_ answered: Int, _ moved: Int, _ unknown: Int, _ unreachable: Int) -> [String] {
            [("answered", answered), ("moved", moved), ("outcome_unknown", unknown), ("unreachable", unreachable)].map {
                "carillon_home_requests_total{result=\"\($0)\"} \($1)"
            }
        }
        #expect(lines() == counts(0, 0, 0, 0))
        #expect(try await homes.handle(request, at: Shard(number: 2)).status == 200)
        #expect(lines() == counts(1, 0, 0, 0))
        link.fail(with: .moved(to: Shard(number: 3)))
        #expect(try await homes.handle(request, at: Shard(number: 2)).status == 200)
        #expect(lines() == counts(2, 1, 0, 0), "each call is counted")
        link.fail(with: .outcomeUnknown)
        await #expect(throws: HomeFault.outcomeUnknown) { try await homes.handle(request, at: Shard(number: 2)) }
        #expect(lines() == counts(2, 1, 1, 0))
        link.fail(with: .unreachable)
        await #expect(throws: HomeFault.unreachable) { try await homes.handle(request, at: Shard(number: 2)) }
        #expect(lines() == counts(2, 1, 1, 1))
    }

    @Test func `hand-overs are counted until they are applied, with the age of the oldest`() async throws {
        let world = try await EngineWorld(stores.open())
        let ticks = HandTicks()
        let statistics = HandOverStatistics(store: world.store, ticks: ticks.source)
        func values() async -> [Double] { await statistics.samples(in: .all).map(\.value) }
        #expect(await values() == [0, 0])
        for key in ["a", "b"] { _ = try await world.subscribe("price > 10.0", key: key) }
        _ = try await world.store.deleteDevice(world.device.serial, at: world.domain.time.now())
        #expect(await values() == [2, 0])
        ticks.pass(seconds: 30)
        #expect(await values() == [2, 30])
        try await world.domain.itemEngine.settle()
        #expect(await values() == [0, 0])
    }

    @Test func `hand-overs to other shards are not counted`() async throws {
        let world = try await EngineWorld(stores.open())
        let statistics = HandOverStatistics(store: world.store, ticks: .system)
        _ = try await world.subscribe("price > 10.0")
        _ = try await world.store.deleteDevice(world.device.serial, at: world.domain.time.now())
        let shard = Shard(of: world.item.app, item: world.item.name.text)
        let others = ShardSet(ShardSet.all.shards.filter { $0 != shard })
        #expect(await statistics.samples(in: others).map(\.value) == [0, 0])
        #expect(await statistics.samples(in: ShardSet([shard])).first?.value == 1)
    }
}
