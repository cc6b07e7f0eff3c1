import CarillonCore
import CarillonWire
import GRDB
import StoreConformance
import Synchronization
import Testing

@testable import CarillonSQLite

/// What is read and written when a device with pushes has another address.
@Suite(.timeLimit(.minutes(1)))
struct ReaddressingTests {
    private static let start = StoreFixture.start
    /// The position of an envelope that waits.
    private static let position: Int64 = 7

    private func register(_ token: String, _ environment: PushEnvironment, _ fixture: StoreFixture) async throws {
        var profile = DeviceProfile()
        profile.address = .init(
            platform: .apple, token: try PushToken(hexadecimal: token), environment: environment)
        let said = profile
        let result = try await fixture.store.changeRegistration(of: fixture.device.serial, at: Self.start) { _ in
            .says(said, confirms: true)
        }
        _ = try #require(result).get()
    }

    private func insert(
        _ serial: Int64, _ state: PushState, kind: PushKind = .alert, awaitsAddress: Bool = false,
        isExpired: Bool = false, at position: Int64 = position, in fixture: StoreFixture
    ) async throws {
        let start = Self.start.milliseconds
        let lane = PushLane(app: fixture.device.app, environment: .production)
        try await fixture.sqlite.run(
            """
            INSERT INTO push (serial, id, device, lane, kind, first, last, state, state_at, due_at, set_at, expires_at, ends_at,
                awaits_address)
            VALUES (\(serial), randomblob(16), \(fixture.device.serial.rawValue), \(lane.number), \(kind.rawValue), \(position),
                \(position), \(state.rawValue), \(start), NULL, \(start), \(start + (isExpired ? 0 : 60_000)), \(start + 60_000),
                \(awaitsAddress ? 1 : 0))
            """)
    }

    @Test func `pushes that are under way or parked go to another lane by one statement`() async throws {
        let fixture = try await StoreFixture(.memory)
        let store = fixture.sqlite
        try await register("aa01", .production, fixture)
        _ = try await fixture.append(fixture.envelope(Self.position))
        for serial in 1...5 as ClosedRange<Int64> { try await insert(serial, .leased, in: fixture) }
        for serial in 6...10 as ClosedRange<Int64> { try await insert(serial, .parked, in: fixture) }
        try await insert(11, .parked, awaitsAddress: true, in: fixture)
        try await insert(12, .rejected, in: fixture)
        // A statement counts each time that it runs.
        let updates = Mutex(0)
        try await store.group.run { db in
            db.trace { event in
                guard case .statement(let statement) = event, statement.sql.hasPrefix("UPDATE push ") else { return }
                updates.withLock { $0 += 1 }
            }
        }
        try await register("aa02", .sandbox, fixture)
        try await store.group.run { db in db.trace(nil) }
        let count = updates.withLock { $0 }
        #expect(count == 2, "one for the alert that begins anew, and one for the others")
        let sandbox = PushLane(app: fixture.device.app, environment: .sandbox).number
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
}
