import CarillonCore
import CarillonWire
import StoreConformance
import TestStores
import Testing

@testable import CarillonSQLite

private let start = StoreFixture.start

/// The state of a device's pushes after the memory has removed it.
@Suite(.timeLimit(.minutes(5)))
struct PushMemoryTests {
    private struct World {
        let fixture: StoreFixture
        var store: SQLiteStore { fixture.sqlite }
        var device: DeviceSerial { fixture.device.serial }
        var queue: PushQueue { PushQueue(app: fixture.device.app, environment: .production) }

        init(_ stores: SQLiteStores = .memory) async throws {
            fixture = try await StoreFixture(stores)
            var profile = DeviceProfile()
            profile.address = .init(
                platform: .apple, token: try PushToken(hexadecimal: "aa01"), environment: .production)
            try await register(profile, at: start)
            let text = AppDocument.Key(.alertText, of: fixture.device.app)
            _ = try await store.putDocument(Array("{}".utf8), as: text, at: start)
        }

        func register(_ profile: DeviceProfile, at now: Timestamp) async throws {
            let request = RegistrationRequest.reports(profile, confirms: true)
            _ = try await store.changeRegistration(of: device, at: now) { _ in request }
        }

        func append(_ positions: ClosedRange<Int64>, _ mode: WakeMode, at now: Timestamp) async throws {
            let rules = AppendRules(wake: WakeRequest(mode, dueAt: now))
            _ = try await store.commit(positions.map { .append(fixture.envelope($0, ttl: 100_000, at: now), rules) })
        }

        func lease(in queue: PushQueue? = nil, at now: Timestamp) async throws -> [LeasedPush] {
            try await store.leasePushes(
                of: queue ?? self.queue, limit: 9, at: now, until: now.adding(seconds: LeasedPush.leaseSeconds)
            ).pushes
        }

        func pushes(_ position: Int64, at now: Timestamp) async throws -> [PushRecord] {
            try await store.pushes(for: fixture.envelope(position).id, of: device, at: now)
        }
    }

    @Test(arguments: [false, true])
    func `a finished alert makes space for another one`(isForgotten: Bool) async throws {
        let world = try await World()
        let most = Int64(PushLimits.alertsPerDevice)
        try await world.append(1...most, .alert, at: start)
        let leased = try await world.lease(at: start)
        try #require(leased.count == 1)
        if isForgotten { world.store.memory.pushes.forgetAll() }
        _ = try await world.store.endPushes([PushEnd(leased[0], .handed, at: start)])
        try await world.append(most + 1...most + 2, .alert, at: start)
        #expect(try await world.pushes(most + 1, at: start).map(\.kind) == [.alert])
        #expect(try await world.pushes(most + 2, at: start).map(\.kind) == [.wake], "there are as many as may be")
        #expect(world.store.memory.pushes[world.device]?.alerts == PushLimits.alertsPerDevice)
    }

    @Test(arguments: [false, true])
    func `the end of a lease does not delay the next alert`(isEnded: Bool) async throws {
        let world = try await World()
        try await world.append(1...1, .alert, at: start)
        let leased = try await world.lease(at: start)
        try #require(leased.count == 1)
        world.store.memory.pushes.forgetAll()
        if isEnded { _ = try await world.store.endPushes([PushEnd(leased[0], .handed, at: start.adding(seconds: 1))]) }
        let now = start.adding(seconds: LeasedPush.leaseSeconds - 15)
        try await world.append(2...2, .alert, at: now)
        #expect(try await world.pushes(2, at: now).map(\.dueAt) == [now])
    }

    @Test func `due alerts are known when they are read again`() async throws {
        let world = try await World()
        try await world.append(1...3, .alert, at: start)
        world.store.memory.pushes.forgetAll()
        try await world.append(4...4, .alert, at: start)
        #expect(try await world.pushes(4, at: start).map(\.dueAt) == [start.adding(seconds: 3)])
        #expect(world.store.memory.pushes[world.device]?.alerts == 4)
        #expect(world.store.memory.pushes[world.device]?.kept == 4)
    }

    @Test func `alerts of subscriptions are known when they are read again`() async throws {
        let world = try await World()
        let pushes: [(kind: PushKind, state: PushState)] = [
            (.trigger, .scheduled), (.unconditional, .leased), (.trigger, .handed),
        ]
        for (place, push) in pushes.enumerated() {
            let row = PushRow(
                serial: Int64(place + 1), device: world.device, queue: world.queue.number, kind: push.kind,
                position: Int64(place + 100), state: push.state, dueAt: start, setAt: start,
                endsAt: start.adding(seconds: 600))
            try await SQLiteStores.memory.addPush(row, in: world.store)
        }
        world.store.memory.pushes.forgetAll()
        try await world.append(1...1, .background, at: start)
        let reach = try #require(world.store.memory.pushes[world.device])
        #expect(reach.triggers == 2 && reach.alerts == 0 && reach.kept == 3)
    }

    @Test func `a push that is forgotten is not one of those that are kept`() async throws {
        let world = try await World()
        try await world.append(1...1, .alert, at: start)
        let leased = try await world.lease(at: start)
        try #require(leased.count == 1)
        _ = try await world.store.endPushes([PushEnd(leased[0], .handed, at: start)])
        #expect(world.store.memory.pushes[world.device]?.kept == 1)
        #expect(try await world.store.sweepPushes(at: start.adding(seconds: 30 * 86_400), limit: 9))
        #expect(try await world.store.rowCount(of: "push") == 0)
        #expect(world.store.memory.pushes[world.device]?.kept == 0)
    }

    @Test func `a message that wakes nobody uses no entry of the remembered devices`() async throws {
        let world = try await World()
        world.store.memory.pushes.forgetAll()
        world.store.memory.usage.forgetAll()
        let results = try await world.store.commit([.append(world.fixture.envelope(1), AppendRules())])
        #expect(results == [.stored(replaced: nil)])
        #expect(world.store.memory.pushes[world.device] == nil)
        #expect(world.store.memory.usage.usage(of: world.device).waiting?.envelopes == 1)
    }

    /// Whether a statement searches for messages that wake a device.
    private func isSearch(_ sql: String) -> Bool { sql.contains("FROM envelope") || sql.contains("FROM inbox_index") }

    @Test func `the first message that wakes is found without a statement while it waits`() async throws {
        let world = try await World()
        try await world.append(1...1, .background, at: start)
        let (leased, ofLease) = try await world.store.tracing { try await world.lease(at: start) }
        try #require(leased.count == 1)
        #expect(!ofLease.contains(where: isSearch))
        try await world.append(2...2, .background, at: start)
        _ = try await world.store.commit([world.fixture.acknowledge(1)])
        let (ended, ofEnd) = try await world.store.tracing {
            try await world.store.endPushes([PushEnd(leased[0], .handed, at: start)])
        }
        #expect(ended == [.handed])
        #expect(ofEnd.contains(where: isSearch))
        #expect(world.store.memory.pushes[world.device]?.firstWaking?.first == 2)
        _ = try await world.store.commit([world.fixture.acknowledge(2)])
        let later = start.adding(seconds: 4000)
        #expect(try await world.lease(at: later).isEmpty)
        try await world.append(3...3, .background, at: later)
        #expect(world.store.memory.pushes[world.device]?.firstWaking?.first == 3)
        let expired = later.adding(seconds: 100_000)
        #expect(try await world.lease(at: expired).isEmpty, "it has expired")
    }

    @Test func `the first message that wakes is found in memory though a later one is found in the table`() async throws {
        let world = try await World(.moving)
        try await world.append(100...101, .background, at: start)
        try await world.append(50...50, .background, at: start)
        let slots = try world.store.memory.index.slots(of: InboxIndex.Key(world.device, isFinal: false))
        try #require(slots.map(\.position) == [50], "the others are in the table")
        world.store.memory.pushes.forgetAll()
        let leased = try await world.lease(at: start)
        #expect(leased.count == 1)
        #expect(world.store.memory.pushes[world.device]?.firstWaking?.first == 50)
    }

    @Test func `no statement searches for a message that wakes if it is known that none waits`() async throws {
        let world = try await World()
        try await world.append(1...1, .background, at: start)
        let (store, device) = (world.store, world.device)
        func search(from quietBefore: Int64) async throws -> (value: Bool, statements: [String]) {
            let memory = store.memory
            return try await store.tracing {
                try await store.group.run { db in
                    var reach = PushReach()
                    reach.quietBefore = quietBefore
                    return try WaitingWakes(db, index: memory.index).areAny(of: device, &reach, at: start)
                }
            }
        }
        let some = try await search(from: 0)
        #expect(some.value && some.statements.contains(where: isSearch))
        let none = try await search(from: .max)
        #expect(!none.value && !none.statements.contains(where: isSearch))
    }

    @Test func `the address of a device for pushes is read together with its inbox`() async throws {
        let world = try await World()
        try await world.append(1...2, .alert, at: start)
        try await world.append(3...3, .background, at: start)
        let known = try #require(world.store.memory.pushes[world.device])
        world.store.memory.pushes.forgetAll()
        world.store.memory.usage.forgetAll()
        let rules = AppendRules(wake: WakeRequest(.background, dueAt: start))
        let operation = InboxOperation.append(world.fixture.envelope(4, at: start), rules)
        let (_, statements) = try await world.store.tracing { _ = try await world.store.commit([operation]) }
        let reads = statements.count { $0.contains("device_profile") || $0.contains("FROM inbox_index") }
        #expect(reads == 1)
        let read = try #require(world.store.memory.pushes[world.device])
        #expect(read.queue == world.queue && read.wake == known.wake && read.lastAlertAt == known.lastAlertAt)
        #expect(read.alerts == 2 && read.triggers == 0 && read.kept == 2 && read.quietBefore == 0)
        #expect(world.store.memory.usage.usage(of: world.device).waiting?.envelopes == 4)
    }

    @Test func `only the status is known of a device that cannot be reached, though it answers`() async throws {
        let world = try await World()
        try await world.append(1...1, .background, at: start)
        let leased = try await world.lease(at: start)
        try #require(leased.count == 1)
        _ = try await world.store.endPushes([PushEnd(leased[0], .handed, at: start)])
        try await world.register(DeviceProfile(), at: start)
        world.store.memory.pushes.forgetAll()
        _ = try await world.store.commit([world.fixture.acknowledge(1)])
        #expect(world.store.memory.pushes[world.device] == PushReach())
        #expect(try await world.store.rowCount(of: "wake") == 1, "the pace goes on when it can be reached")
    }

    @Test func `a suspended device stays out of reach, though its token is found in the other environment`() async throws {
        let world = try await World()
        let sandbox = PushQueue(app: world.fixture.device.app, environment: .sandbox)
        try await world.append(1...1, .background, at: start)
        let leased = try await world.lease(at: start)
        try #require(leased.count == 1)
        _ = try await world.store.endPushes([PushEnd(leased[0], .elsewhere, at: start)])
        let elsewhere = try await world.lease(in: sandbox, at: start)
        try #require(elsewhere.map(\.isElsewhere) == [true])
        _ = try await world.store.changeRegistration(of: world.device, at: start) { current in
            RegistrationRules.suspend(current, because: .byOperator, at: start).map { .becomes($0) } ?? .nothing
        }
        _ = try await world.store.endPushes([PushEnd(elsewhere[0], .handed, at: start)])
        let registration = try await world.store.registration(of: world.device)
        #expect(registration?.profile.address?.environment == .sandbox)
        #expect(world.store.memory.pushes[world.device] != nil)
        #expect(world.store.memory.pushes[world.device]?.queue == nil)
    }

    @Test(arguments: [false, true])
    func `a device that confirmed its token since it was found dead is not suspended`(isForgotten: Bool) async throws {
        let world = try await World()
        let said = try #require(try await world.store.registration(of: world.device)).profile
        try await world.append(1...1, .background, at: start)
        let leased = try await world.lease(at: start)
        try #require(leased.count == 1)
        let confirmed = start.adding(seconds: 20)
        let (_, statements) = try await world.store.tracing { try await world.register(said, at: confirmed) }
        #expect(!statements.contains { $0.hasPrefix("UPDATE") || $0.hasPrefix("INSERT") }, "nothing is written")
        if isForgotten { world.store.memory.pushes.forgetAll() }
        let dead = PushEnd.Verdict.tokenDead(reason: "Unregistered", since: start.adding(seconds: 10))
        let end = PushEnd(leased[0], dead, at: start.adding(seconds: 30))
        #expect(try await world.store.endPushes([end]) == [.scheduled])
        #expect(try await world.store.registration(of: world.device)?.status == .registered)
    }

    @Test func `a confirmation is of one address`() {
        let confirmations = TokenConfirmations()
        var registration = DeviceRegistration(device: DeviceSerial(1), at: start)
        registration.addressRevision = 3
        let later = start.adding(seconds: 5)
        confirmations.note(registration, at: later)
        #expect(confirmations.applied(to: registration).confirmedAt == later)
        registration.addressRevision = 4
        #expect(confirmations.applied(to: registration).confirmedAt == start)
        registration.addressRevision = 3
        registration.device = DeviceSerial(2)
        #expect(confirmations.applied(to: registration).confirmedAt == start)
    }
}
