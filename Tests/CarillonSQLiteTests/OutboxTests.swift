import CarillonCore
import CarillonWire
import Foundation
import GRDB
import MetricsTestKit
import StoreConformance
import Synchronization
import Testing

@testable import CarillonSQLite

/// The outbox with a real store: its limits, a full store, and a clock that is set back.
@Suite(.timeLimit(.minutes(5)))
struct OutboxTests {
    private final class Clock: Sendable {
        private let value = Mutex(StoreFixture.start)
        var now: Timestamp {
            get { value.withLock { $0 } }
            set { value.withLock { $0 = newValue } }
        }
    }

    private struct World {
        let store: SQLiteStore
        let clock = Clock()
        let metrics = TestMetrics()
        let outbox: Outbox
        let fixture: StoreFixture
        let channels: [PushChannel]

        /// - Parameter lease: Throws if a push queue cannot be leased.
        init(
            devices: Int, _ environments: [PushEnvironment] = [.production], limits: Outbox.Limits = .init(),
            lease: @escaping @Sendable (PushQueue) throws -> Void = { _ in }
        ) async throws {
            store = try SQLiteStore(inMemory: .init())
            let clock = clock
            outbox = Outbox(
                store: FailingStore(store: store, lease: lease), limits: limits, time: TimeSource { clock.now },
                countingBy: metrics)
            fixture = try await StoreFixture(store)
            var channels: [PushChannel] = []
            for number in 1...UInt64(devices) {
                var profile = DeviceProfile()
                profile.address = .init(
                    platform: .apple, token: try PushToken(hexadecimal: "aa\(100_000 + number)"),
                    environment: environments[Int(number) % environments.count])
                let new = NewDevice(
                    DeviceID(Bytes16(high: 9, low: number)), app: try StoreFixture.appID, profile: profile)
                let device = try #require(try await fixture.insert(new, secret: [9] + Array("\(number)".utf8)))
                let channel = try await StoreFixture.open(number, of: device, in: store)
                channels.append(channel)
                let envelope = fixture.envelope(Int64(number) * 10, on: channel, ttl: 100_000)
                let rules = AppendRules(wake: WakeRequest(.background, dueAt: StoreFixture.start))
                _ = try await store.commit([.append(envelope, rules)])
            }
            self.channels = channels
        }

        func due() async throws -> [LeasedPush] { try await outbox.due { _ in true }.pushes }

        /// The number of pushes that were counted with a result.
        func counted(_ result: String) throws -> Int64 {
            try metrics.expectCounter("carillon_pushes_total", [("result", result)]).totalValue
        }
    }

    /// A store whose leases can fail.
    private struct FailingStore: PushStore {
        let store: SQLiteStore
        let lease: @Sendable (PushQueue) throws -> Void

        func leasePushes(
            of queue: PushQueue, in shards: ShardSet, limit: Int, at now: Timestamp, until end: Timestamp
        ) async throws -> LeasedPushes {
            try lease(queue)
            return try await store.leasePushes(of: queue, in: shards, limit: limit, at: now, until: end)
        }

        func bringBackPushes(in shards: ShardSet, at now: Timestamp) async throws {
            try await store.bringBackPushes(in: shards, at: now)
        }
        func dueQueues(in shards: ShardSet, at now: Timestamp) async throws -> [PushQueue] {
            try await store.dueQueues(in: shards, at: now)
        }
        func endPushes(_ ends: [PushEnd]) async throws -> [PushState] { try await store.endPushes(ends) }
        func pushes(for message: MessageID, of device: DeviceSerial, at now: Timestamp) async throws -> [PushRecord] {
            try await store.pushes(for: message, of: device, at: now)
        }
        func sweepPushes(
            in shards: ShardSet, at now: Timestamp, forgetting retention: RetentionTime?, limit: Int
        ) async throws -> Bool {
            try await store.sweepPushes(in: shards, at: now, forgetting: retention, limit: limit)
        }
        func parkedPushes(of app: AppSerial, in shards: ShardSet, limit: Int) async throws -> [PushRecord] {
            try await store.parkedPushes(of: app, in: shards, limit: limit)
        }
        func requeueParkedPushes(of app: AppSerial, in shards: ShardSet, at now: Timestamp) async throws -> Int {
            try await store.requeueParkedPushes(of: app, in: shards, at: now)
        }
    }

    @Test func `a push queue that cannot be leased does not affect others`() async throws {
        let leases = Mutex(0)
        let world = try await World(devices: 4, [.production, .sandbox]) { _ in
            // Each second lease fails.
            let count = leases.withLock { leases in
                leases += 1
                return leases
            }
            if count % 2 == 0 { throw StoreFault(.unavailable, "full") }
        }
        let some = try await world.due()
        #expect(some.count == 2 && Set(some.map(\.queue)).count == 1)
        #expect(world.outbox.underWay == 2)
    }

    /// The outboxes of two homes. The shard of a device moves from the first one to the second one.
    private struct MovingShard {
        let world: World
        let device: DeviceSerial
        let former: Outbox
        let next: Outbox

        init() async throws {
            world = try await World(devices: 4)
            device = world.channels[0].device
            let (shard, hasMoved, clock) = (Shard(of: device), self.hasMoved, world.clock)
            let time = TimeSource { clock.now }
            former = Outbox(
                store: world.store, shards: { hasMoved.isSet ? .none : ShardSet([shard]) }, time: time)
            next = Outbox(
                store: world.store, shards: { hasMoved.isSet ? ShardSet([shard]) : .none }, time: time)
        }

        private let hasMoved = Flag()

        func move() { hasMoved.set() }
    }

    private final class Flag: Sendable {
        private let value = Mutex(false)
        var isSet: Bool { value.withLock { $0 } }
        func set() { value.withLock { $0 = true } }
    }

    @Test func `pushes of present shards are leased, and their results count after a move`() async throws {
        let moving = try await MovingShard()
        #expect(try await moving.next.due { _ in true }.pushes.isEmpty)
        let pushes = try await moving.former.due { _ in true }.pushes
        #expect(pushes.map(\.device) == [moving.device])
        moving.move()
        // The lease is in the row.
        #expect(try await moving.former.due { _ in true }.pushes.isEmpty)
        #expect(try await moving.next.due { _ in true }.pushes.isEmpty)
        _ = await moving.former.ended(pushes[0], .taken, hasOther: false)
        let end = PushEnd(pushes[0], .handed, at: moving.world.clock.now)
        #expect(try await moving.world.store.endPushes([end]).isEmpty, "it has ended")
    }

    @Test func `a result of a former home does not count when the new home has leased the push again`() async throws {
        let moving = try await MovingShard()
        let clock = moving.world.clock
        let pushes = try await moving.former.due { _ in true }.pushes
        moving.move()
        clock.now = clock.now.adding(seconds: LeasedPush.leaseSeconds + 1)
        let again = try await moving.next.due { _ in true }.pushes
        #expect(again.map(\.id) == pushes.map(\.id) && again.count == 1)
        _ = await moving.former.ended(pushes[0], .taken, hasOther: false)
        let end = PushEnd(again[0], .handed, at: clock.now)
        #expect(try await moving.world.store.endPushes([end]).count == 1, "it has not ended before")
    }

    @Test func `push queues take turns where there is room for one`() async throws {
        let world = try await World(devices: 8, [.production, .sandbox], limits: .init(underWay: 1))
        var queues: Set<PushQueue> = []
        for _ in 0..<4 {
            let push = try #require(try await world.due().first)
            queues.insert(push.queue)
            _ = await world.outbox.ended(push, .taken, hasOther: true)
        }
        #expect(queues.count == 2)
    }

    @Test func `the number of concurrent pushes is limited, and a push queue leaves half of the free places`() async throws {
        let world = try await World(devices: 12, limits: .init(underWay: 8))
        var begun: [LeasedPush] = []
        for count in [4, 2, 1, 1, 0, 0] {
            let some = try await world.due()
            #expect(some.count == count)
            begun += some
        }
        #expect(world.outbox.underWay == 8)
        for push in begun { _ = await world.outbox.ended(push, .taken, hasOther: false) }
        #expect(world.outbox.underWay == 0)
        #expect(try await world.due().count == 4)
    }

    /// `CARILLON_OUTBOX_DEVICES=99999` sets the largest number of devices that an app can have.
    @Test func `thousands of pushes under a key that is revoked cost one attempt a minute, and go out under the next`()
        async throws
    {
        let count = ProcessInfo.processInfo.environment["CARILLON_OUTBOX_DEVICES"].flatMap(Int.init) ?? 2000
        let world = try await World(devices: count)
        let queue = PushQueue(app: AppSerial(1), environment: .production)
        var tried = 0
        for _ in 0..<3600 {
            for push in try await world.due() {
                tried += 1
                #expect(push.attempt == 1, "a failed attempt does not count")
                _ = await world.outbox.ended(
                    push, .credentialsRefused(reason: "InvalidProviderToken"), hasOther: false)
            }
            world.clock.now = world.clock.now.adding(seconds: 1)
        }
        #expect(tried <= GatewayBreaker.widest + 60, "those that were under way, and one a minute")
        #expect(world.outbox.faults[queue]?.reason == "InvalidProviderToken")
        world.outbox.renewed(queue)
        var handed: Set<DeviceSerial> = []
        while handed.count < count {
            let pushes = try await world.due()
            try #require(!pushes.isEmpty)
            #expect(pushes.allSatisfy { $0.attempt == 1 })
            for push in pushes {
                handed.insert(push.device)
                _ = await world.outbox.ended(push, .taken, hasOther: false)
            }
        }
        #expect(try await world.due().isEmpty && world.outbox.faults.isEmpty)
    }

    @Test func `an answer to replaced credentials does not concern the new ones`() async throws {
        let world = try await World(devices: 3)
        let queue = PushQueue(app: AppSerial(1), environment: .production)
        let pushes = try await world.due()
        world.outbox.renewed(queue)
        let refused = PushAnswer.credentialsRefused(reason: "InvalidProviderToken")
        #expect(await world.outbox.ended(pushes[0], refused, hasOther: false) == nil)
        #expect(world.outbox.faults.isEmpty)
        #expect(try await world.due().map(\.device) == [pushes[0].device], "it goes out with the new ones")
        #expect(await world.outbox.ended(pushes[1], refused, hasOther: false) == nil)
        #expect(world.outbox.faults.isEmpty)
        let next = try #require(try await world.due().first)
        #expect(await world.outbox.ended(next, refused, hasOther: false) != nil)
    }

    @Test func `thousands that are parked are tried again, a part in each transaction`() async throws {
        let world = try await World(devices: 1100)
        let app = AppSerial(1)
        while true {
            let some = try await world.due()
            guard !some.isEmpty else { break }
            for push in some { _ = await world.outbox.ended(push, .wrong(reason: "BadTopic"), hasOther: false) }
        }
        #expect(try await world.store.parkedPushes(of: app, limit: 5000).count == 1100)
        #expect(try await world.store.requeueParkedPushes(of: app, at: world.clock.now) == 1100)
        #expect(try await world.store.parkedPushes(of: app, limit: 5000).isEmpty)
    }

    @Test func `a device without pushes is searched once, however often its address changes`() async throws {
        let store = try SQLiteStore(inMemory: .init())
        let fixture = try await StoreFixture(store)
        for position in Int64(1)...100 where position != 50 {
            _ = try await store.commit([.append(fixture.envelope(position), AppendRules(wake: nil))])
        }
        // The memory has the state of the new inbox. Without that state, the inbox is searched once.
        store.memory.pushes.forgetAll()
        let device = fixture.device.serial
        for environment in [PushEnvironment.production, .sandbox] {
            var profile = DeviceProfile()
            profile.address = .init(
                platform: .apple, token: try PushToken(hexadecimal: "aa01"), environment: environment)
            let request = RegistrationRequest.reports(profile, confirms: true)
            _ = try await store.changeRegistration(of: device, at: StoreFixture.start) { _ in request }
            #expect(store.memory.pushes[device]?.quietBefore == .max)
        }
        let rules = AppendRules(wake: WakeRequest(.background, dueAt: StoreFixture.start))
        _ = try await store.commit([.append(fixture.envelope(50), rules)])
        #expect(store.memory.pushes[device]?.quietBefore == 50, "a message that was written after later ones")
        let queue = PushQueue(app: fixture.device.app, environment: .sandbox)
        let due = try await store.leasePushes(
            of: queue, limit: 9, at: StoreFixture.start, until: StoreFixture.start.adding(seconds: 60))
        #expect(due.pushes.count == 1)
        _ = try await store.commit([
            .finish(fixture.envelope(50).id, device: device, FinalOutcome(.acknowledged, at: StoreFixture.start))
        ])
        _ = try await store.endPushes(due.pushes.map { PushEnd($0, .handed, at: StoreFixture.start) })
        #expect(store.memory.pushes[device]?.quietBefore == .max)
        _ = try await store.commit([.append(fixture.envelope(200), rules)])
        _ = try await store.changeRegistration(of: device, at: StoreFixture.start) { _ in
            .reports(DeviceProfile(), confirms: true)
        }
        #expect(store.memory.pushes[device]?.quietBefore == 200, "a new message wakes")
    }

    @Test func `a push queue without a gateway is left alone`() async throws {
        let world = try await World(devices: 1)
        #expect(try await world.outbox.due { _ in false }.pushes.isEmpty)
        #expect(try await world.due().count == 1)
    }

    @Test func `rows that a full store did not accept are written when there is space, and not sent again`() async throws {
        let world = try await World(devices: 3)
        let pushes = try await world.due()
        #expect(pushes.count == 3)
        // The store refuses writes for a while.
        try await world.store.refuseWrites(true)
        for push in pushes { _ = await world.outbox.ended(push, .taken, hasOther: false) }
        #expect(try world.counted("handed") == 0)
        try await world.store.refuseWrites(false)
        #expect(try await world.due().isEmpty)
        #expect(try world.counted("handed") == 3, "each of the results that are written together is counted")
        world.clock.now = world.clock.now.adding(seconds: LeasedPush.leaseSeconds)
        #expect(try await world.due().isEmpty, "they were handed over, and it is known")
    }

    @Test func `a push that could not be written until the lease ended is sent again`() async throws {
        let world = try await World(devices: 1)
        let push = try #require(try await world.due().first)
        try await world.store.refuseWrites(true)
        _ = await world.outbox.ended(push, .taken, hasOther: false)
        world.clock.now = world.clock.now.adding(seconds: LeasedPush.leaseSeconds)
        _ = try? await world.due()
        try await world.store.refuseWrites(false)
        #expect(try await world.due().map(\.id) == [push.id])
        #expect(try world.metrics.expectCounter("carillon_push_results_dropped_total").totalValue == 1)
    }

    @Test(arguments: [-3600, -300 * 86_400] as [Int64])
    func `a clock that goes back delays no push`(step: Int64) async throws {
        let world = try await World(devices: 1)
        let push = try #require(try await world.due().first)
        _ = await world.outbox.ended(push, .later(reason: "ServiceUnavailable", seconds: 900), hasOther: false)
        world.clock.now = world.clock.now.adding(seconds: step)
        #expect(try await world.due().isEmpty)
        world.clock.now = world.clock.now.adding(seconds: 1125)
        #expect(try await world.due().map(\.id) == [push.id])
    }

    @Test(arguments: [-3600, -300 * 86_400] as [Int64])
    func `a clock that goes back delays no wake`(step: Int64) async throws {
        let world = try await World(devices: 1)
        let push = try #require(try await world.due().first)
        _ = await world.outbox.ended(push, .taken, hasOther: false)
        let rules = AppendRules(wake: WakeRequest(.background, dueAt: world.clock.now))
        let another = world.fixture.envelope(
            20, on: world.channels[0], ttl: 100_000, at: world.clock.now)
        _ = try await world.store.commit([
            .finish(world.fixture.envelope(10).id, device: push.device, FinalOutcome(.acknowledged, at: world.clock.now)),
            .append(another, rules),
        ])
        world.clock.now = world.clock.now.adding(seconds: step)
        #expect(try await world.due().isEmpty)
        world.clock.now = world.clock.now.adding(seconds: WakePace.shortestSeconds)
        #expect(try await world.due().count == 1)
    }
}

extension SQLiteStore {
    /// Refuses changes of pushes until it is called with false.
    fileprivate func refuseWrites(_ refuses: Bool) async throws {
        try await database.writeWithoutTransaction { db in
            try db.execute(
                sql: refuses
                    ? "CREATE TEMP TRIGGER refusal BEFORE UPDATE ON push BEGIN SELECT RAISE(ABORT, 'no'); END"
                    : "DROP TRIGGER refusal")
        }
    }
}
