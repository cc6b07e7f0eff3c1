import CarillonCore
import CarillonSQLite
import CarillonWire
import StoreConformance
import Synchronization
import TestStores
import Testing

/// Permanent removal needs both clocks: a wall clock that is wrong for a while, or a server that was stopped, removes nothing.
@Suite(.timeLimit(.minutes(5)))
struct WallClockTests {
    enum Item: CaseIterable, Sendable {
        case inactiveDevice
        case suspendedDevice
        case anonymousDevice
        case unusedDevice
        case outcome
        case idempotencyKey
        case unfinishedUpload
        case attachment
        case push
        case rotatedKey
    }

    static let steps: [Int64] = [300 * 86_400, -300 * 86_400, 3600, -3600]

    private final class Clocks: Sendable {
        private let moments = Mutex((wall: StoreFixture.start, ticks: Int64(7_000_000_000)))
        var now: Timestamp { moments.withLock { $0.wall } }
        var time: TimeSource { TimeSource { self.now } }
        var ticks: TickSource { TickSource { self.moments.withLock { $0.ticks } } }

        func pass(_ seconds: Int64) {
            moments.withLock { $0 = ($0.wall.adding(seconds: seconds), $0.ticks + seconds * 1_000_000_000) }
        }

        /// Sets the wall clock alone.
        func set(by seconds: Int64) { moments.withLock { $0.wall = $0.wall.adding(seconds: seconds) } }
    }

    /// A server whose limits are all a day.
    private struct World {
        static let limit: Int64 = 86_400

        let item: Item
        let clocks: Clocks
        let fixture: StoreFixture
        let served: ServedTime
        let keys: KeyAuthority

        init(_ item: Item) async throws {
            let fixture = try await StoreFixture(.memory, .init(outcomeRetentionSeconds: Self.limit))
            try await self.init(item, Clocks(), fixture)
        }

        /// The same store after a start of the server.
        func restarted() async throws -> World { try await World(item, clocks, fixture) }

        private init(_ item: Item, _ clocks: Clocks, _ fixture: StoreFixture) async throws {
            (self.item, self.clocks, self.fixture) = (item, clocks, fixture)
            served = try await ServedTime(store: fixture.store, time: clocks.time, ticks: clocks.ticks)
            keys = KeyAuthority(
                keys: fixture.store, time: clocks.time, served: served, random: RandomSource { .random(in: .min ... .max) })
        }

        private var store: any Store { fixture.store }

        func run(_ seconds: Int64, every pause: Int64 = 600) async throws {
            for _ in 0..<(seconds / pause) {
                clocks.pass(pause)
                try await served.write()
                try await sweep()
            }
        }

        func sweep() async throws {
            let (retention, now) = (served.retention(), clocks.now)
            while try await !store.sweep(at: now, forgetting: retention, limit: 100).isDone {}
            while try await !store.sweepPushes(at: now, forgetting: retention, limit: 100) {}
            _ = try await store.removeEndedAttachments(by: retention, unfinishedSeconds: Self.limit, limit: 100)
            guard let cutoff = retention?.cutoff(afterSeconds: Self.limit), let reason = item.reason else { return }
            for idle in try await store.unusedDevices(reason, by: cutoff, limit: 100) where idle.id == device {
                _ = try await store.deleteDevice(idle.serial, unlessSeenAfter: cutoff, at: now)
            }
        }

        private var device: DeviceID {
            item == .inactiveDevice || item == .suspendedDevice
                ? fixture.device.id : DeviceID(Bytes16(high: 9, low: 9))
        }

        private let upload = AttachmentID(Bytes16(high: 3, low: 3))

        /// Returns the secret that opens a key.
        func make() async throws -> String {
            let now = clocks.now
            switch item {
            case .inactiveDevice: try await store.markSeen([fixture.device.serial], areAnonymous: false, at: now)
            case .suspendedDevice: try await suspend(at: now)
            case .anonymousDevice, .unusedDevice:
                let new = NewDevice(device, app: try StoreFixture.appID, isAnonymous: true)
                let device = try #require(try await fixture.insert(new, secret: [9], at: now))
                if item == .anonymousDevice { _ = try await StoreFixture.open(1, of: device, in: store) }
            case .outcome:
                _ = try await fixture.append(fixture.envelope(1, at: now))
                let id = fixture.envelope(1).id
                _ = try await store.commit([.finish(id, device: fixture.device.serial, FinalOutcome(.acknowledged, at: now))]
                )
            case .idempotencyKey:
                let claim = IdempotencyClaim(
                    keyHash: [1], fingerprint: [2], validUntil: now.adding(seconds: IdempotencyClaim.keptSeconds))
                _ = try await fixture.append(fixture.envelope(1, at: now), claim: claim)
            case .unfinishedUpload, .attachment: try await addAttachment(at: now)
            case .push: try await push(at: now)
            case .rotatedKey:
                let made = try await keys.createKey(role: .admin, app: nil, name: nil)
                _ = try await keys.rotate(made.key.id, overlapSeconds: Int(Self.limit))
                return made.secret.text
            }
            return ""
        }

        private func suspend(at now: Timestamp) async throws {
            try await store.markSeen([fixture.device.serial], areAnonymous: false, at: StoreFixture.start)
            _ = try await store.changeRegistration(of: fixture.device.serial, at: now) { current in
                RegistrationRules.suspend(current, because: .byOperator, at: now).map { .becomes($0) } ?? .nothing
            }
        }

        private func addAttachment(at now: Timestamp) async throws {
            let request = AttachmentRequest(
                proposed: upload, owner: AttachmentUser(app: fixture.device.app, principal: .senders), length: 10,
                digest: nil,
                readers: [.senders], lifetimeSeconds: Self.limit, idempotency: nil, limits: .init())
            guard case .added(let attachment) = try await store.addAttachment(request, at: now), item == .attachment else {
                return
            }
            _ = try await store.completeAttachment(attachment.serial, expiresAt: now.adding(seconds: Self.limit))
        }

        private func push(at now: Timestamp) async throws {
            var profile = DeviceProfile()
            profile.address = .init(
                platform: .apple, token: try PushToken(hexadecimal: "aa01"), environment: .production)
            let said = profile
            _ = try await store.changeRegistration(of: fixture.device.serial, at: now) { _ in .reports(said, confirms: true)
            }
            let rules = AppendRules(wake: WakeRequest(.background, dueAt: now))
            _ = try await store.commit([.append(fixture.envelope(1, ttl: 400 * 86_400, at: now), rules)])
            let queue = PushQueue(app: fixture.device.app, environment: .production)
            let leased = try await store.leasePushes(of: queue, limit: 1, at: now, until: now.adding(seconds: 60))
            _ = try await store.endPushes(leased.pushes.map { PushEnd($0, .handed, at: now) })
        }

        func isThere(_ secret: String) async throws -> Bool {
            switch item {
            case .inactiveDevice, .suspendedDevice, .anonymousDevice, .unusedDevice: try await store.device(device) != nil
            case .outcome: try await store.record(of: fixture.envelope(1).id, at: clocks.now) != nil
            case .idempotencyKey: try await fixture.sqlite.rowCount(of: "idempotency") == 1
            case .unfinishedUpload, .attachment: try await store.attachment(upload) != nil
            case .push: try await fixture.sqlite.rowCount(of: "push") == 1
            case .rotatedKey: (try? await keys.authorize(bearer: secret, as: [.admin])) != nil
            }
        }
    }

    @Test(arguments: Item.allCases, steps)
    func `a wall clock that is set for a while removes nothing`(item: Item, step: Int64) async throws {
        let world = try await World(item)
        try await world.run(7200)
        let secret = try await world.make()
        world.clocks.set(by: step)
        for _ in 0..<8 { try await world.run(1, every: 1) }
        #expect(try await world.isThere(secret))
        world.clocks.set(by: -step)
        try await world.sweep()
        #expect(try await world.isThere(secret))
        world.clocks.set(by: step)
        try await world.run(7200)
        #expect(try await world.isThere(secret), "after an hour in which the clock did not move")
        world.clocks.set(by: -step)
        try await world.run(7200)
        #expect(try await world.isThere(secret))
        try await world.run(World.limit)
        #expect(try await !world.isThere(secret), "both clocks have reached the limit")
    }

    @Test(arguments: Item.allCases, steps)
    func `rows that were written while the wall clock was wrong are kept for their time`(item: Item, step: Int64)
        async throws
    {
        let world = try await World(item)
        try await world.run(7200)
        world.clocks.set(by: step)
        try await world.run(8, every: 1)
        let secret = try await world.make()
        world.clocks.set(by: -step)
        try await world.run(World.limit - 600)
        #expect(try await world.isThere(secret))
        try await world.run(4 * 3600)
        let isKeptByWallClock = step > World.limit
        #expect(try await world.isThere(secret) == isKeptByWallClock)
    }

    @Test(arguments: Item.allCases)
    func `a server that was stopped for a month removes nothing before its limit has passed in service`(
        item: Item
    ) async throws {
        var world = try await World(item)
        try await world.run(7200)
        let secret = try await world.make()
        world.clocks.set(by: 31 * 86_400)
        world = try await world.restarted()
        try await world.sweep()
        try await world.run(World.limit - 600)
        #expect(try await world.isThere(secret))
        try await world.run(3600)
        #expect(try await !world.isThere(secret))
    }

    @Test func `the counter is written once a minute and at the end, and continues from there`() async throws {
        let world = try await World(.outcome)
        world.clocks.pass(59)
        try await world.served.write()
        #expect(try await world.fixture.store.servedSeconds() == 0)
        world.clocks.pass(1)
        try await world.served.write()
        #expect(try await world.fixture.store.servedSeconds() == 60)
        world.clocks.pass(30)
        try await world.served.writeLast()
        #expect(try await world.fixture.store.servedSeconds() == 90)
        world.clocks.set(by: 86_400)
        let next = try await world.restarted()
        world.clocks.pass(10)
        #expect(next.served.seconds == 100)
        try await world.fixture.store.noteServed(5)
        #expect(try await world.fixture.store.servedSeconds() == 90, "it never goes back")
    }
}

extension WallClockTests.Item {
    fileprivate var reason: UnusedDevice.Reason? {
        switch self {
        case .inactiveDevice: .inactive
        case .suspendedDevice: .suspended
        case .anonymousDevice: .anonymousIdle
        case .unusedDevice: .anonymousUnused
        default: nil
        }
    }
}
