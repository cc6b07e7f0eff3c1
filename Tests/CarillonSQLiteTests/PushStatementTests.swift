import CarillonCore
import CarillonWire
import GRDB
import StoreConformance
import TestStores
import Testing

@testable import CarillonSQLite

/// The numbers of statements that read and write pushes, as in docs/architecture.md.
@Suite(.timeLimit(.minutes(5)))
struct PushStatementTests {
    private static let start = StoreFixture.start
    /// The position of a waiting envelope.
    private static let position: Int64 = 7

    private func register(_ token: String, _ environment: PushEnvironment, _ fixture: StoreFixture) async throws
        -> DeviceRegistration
    {
        var profile = DeviceProfile()
        profile.address = .init(
            platform: .apple, token: try PushToken(hexadecimal: token), environment: environment)
        let said = profile
        let result = try await fixture.store.changeRegistration(of: fixture.device.serial, at: Self.start) { _ in
            .reports(said, confirms: true)
        }
        return try #require(result).get().registration
    }

    private func insert(
        _ serial: Int64, _ state: PushState, kind: PushKind = .alert, awaitsAddress: Bool = false,
        isExpired: Bool = false, at position: Int64 = position, in fixture: StoreFixture
    ) async throws {
        let start = Self.start.milliseconds
        let queue = PushQueue(app: fixture.device.app, environment: .production)
        try await fixture.sqlite.run(
            """
            INSERT INTO push (serial, id, device, lane, kind, first, last, state, state_at, due_at, set_at, expires_at, ends_at,
                awaits_address)
            VALUES (\(serial), randomblob(16), \(fixture.device.serial.rawValue), \(queue.number), \(kind.rawValue), \(position),
                \(position), \(state.rawValue), \(start), NULL, \(start), \(start + (isExpired ? 0 : 60_000)), \(start + 60_000),
                \(awaitsAddress ? 1 : 0))
            """)
    }

    /// Returns the statements that name pushes or registrations, with one element for each execution.
    private func statements(of store: SQLiteStore, in work: () async throws -> Void) async throws -> [String] {
        let seen = try await store.tracing(work).statements
        return seen.filter { $0.contains("push") || $0.contains("device_profile") }
    }

    // MARK: Other addresses

    @Test func `pushes that are under way or parked go to another push queue by one statement`() async throws {
        let fixture = try await StoreFixture(.memory)
        let store = fixture.sqlite
        _ = try await register("aa01", .production, fixture)
        _ = try await fixture.append(fixture.envelope(Self.position))
        for serial in 1...5 as ClosedRange<Int64> { try await insert(serial, .leased, in: fixture) }
        for serial in 6...10 as ClosedRange<Int64> { try await insert(serial, .parked, in: fixture) }
        try await insert(11, .parked, awaitsAddress: true, in: fixture)
        try await insert(12, .rejected, in: fixture)
        let run = try await statements(of: store) { _ = try await register("aa02", .sandbox, fixture) }
        let updates = run.filter { $0.hasPrefix("UPDATE push ") }
        #expect(updates.count == 2, "one for the alert that begins anew, and one for the others")
        let sandbox = PushQueue(app: fixture.device.app, environment: .sandbox).number
        let moved = try await store.numbers("SELECT serial FROM push WHERE lane = \(sandbox) ORDER BY serial")
        #expect(moved == (Array(1...11) as [Int64]))
        let states = try await store.numbers("SELECT state FROM push ORDER BY serial")
        let unchanged = Array(repeating: PushState.leased, count: 5) + Array(repeating: PushState.parked, count: 5)
        let expected = (unchanged + [.scheduled, .rejected]).map { Int64($0.rawValue) }
        #expect(states == expected)
    }

    @Test func `the envelope of a push is read only if the push can begin anew`() async throws {
        let fixture = try await StoreFixture(.memory)
        let store = fixture.sqlite
        _ = try await fixture.append(fixture.envelope(Self.position))
        try await insert(1, .scheduled, in: fixture)
        try await insert(2, .leased, awaitsAddress: true, in: fixture)
        try await insert(3, .rejected, awaitsAddress: true, in: fixture)
        try await insert(4, .rejected, in: fixture)
        try await insert(5, .parked, awaitsAddress: true, in: fixture)
        try await insert(6, .parked, in: fixture)
        try await insert(7, .rejected, awaitsAddress: true, isExpired: true, in: fixture)
        try await insert(8, .scheduled, kind: .wake, in: fixture)
        try await insert(9, .scheduled, at: Self.position + 1, in: fixture)
        let (memory, device) = (store.memory, fixture.device.serial)
        let pushes = try await store.group.run { db in
            try PushTable(db, memory: memory).unaccepted(device, at: Self.start)
        }
        #expect(pushes.map(\.serial) == (Array(1...9) as [Int64]))
        #expect(pushes.filter(\.hasEnvelope).map(\.serial) == [1, 3, 5])
    }

    // MARK: Answers

    @Test func `an answer runs as many statements as the documentation lists`() async throws {
        let fixture = try await StoreFixture(.memory)
        let store = fixture.sqlite
        let registration = try await register("aa01", .production, fixture)
        let token = try PushToken(hexadecimal: "aa01")
        func count(
            _ serial: Int64, _ verdict: PushEnd.Verdict, kind: PushKind = .alert, acceptedElsewhere: PushEnvironment? = nil
        ) async throws -> Int {
            try await insert(serial, .leased, kind: kind, in: fixture)
            let queue = PushQueue(app: fixture.device.app, environment: acceptedElsewhere ?? .production)
            let push = LeasedPush(
                lease: WorkLease(work: serial, fence: 0), id: Bytes16(high: 1, low: 2), kind: kind,
                device: fixture.device.serial, queue: queue, token: token,
                addressRevision: registration.addressRevision, attempt: 1, isElsewhere: acceptedElsewhere != nil,
                expiresAt: Self.start.adding(seconds: 60), content: .wake)
            let end = PushEnd(push, verdict, at: Self.start)
            return try await statements(of: store) {
                let states = try await store.endPushes([end])
                #expect(states.count == 1)
            }.count
        }
        let handed = try await count(1, .handed)
        #expect(handed == 1)
        let retried = try await count(2, .again(at: Self.start, isSpent: true, reason: "busy"))
        #expect(retried == 2)
        let unconditional = try await count(3, .handed, kind: .unconditional)
        #expect(unconditional == 2)
        let elsewhere = try await count(4, .handed, acceptedElsewhere: .production)
        #expect(elsewhere == 2)
        let moved = try await count(5, .handed, acceptedElsewhere: .sandbox)
        #expect(moved == 3)
    }
}
