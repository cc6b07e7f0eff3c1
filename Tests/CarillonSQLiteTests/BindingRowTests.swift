import CarillonCore
import CarillonWire
import GRDB
import StoreConformance
import Synchronization
import Testing

@testable import CarillonSQLite

/// The rows of bindings, and the statements that change them.
@Suite(.timeLimit(.minutes(1)))
struct BindingRowTests {
    private let start = StoreFixture.start

    private func bind(_ profile: String, _ fixture: StoreFixture, at now: Timestamp? = nil) async throws -> UpdateBinding {
        try #require(try await fixture.store.binding(of: fixture.device.serial, profile: profile, at: now ?? start))
    }

    @Test func `a user's change and another profile end a binding in different ways`() async throws {
        let fixture = try await StoreFixture(.memory)
        let store = fixture.sqlite
        var binding = try await bind("one", fixture)
        binding.parametersRevision = "r"
        binding.locatedAt = start
        binding.kinds = ["popup"]
        _ = try await store.change(binding, hasOtherKinds: false, at: start)
        func rows() async throws -> [[Int64?]] {
            try await store.read { db in
                let select = """
                    SELECT serial, revision, ended_at, located_at, held_to, is_left_over, parameters_revision IS NULL FROM binding
                    ORDER BY serial
                    """
                return try Row.fetchAll(db, sql: select).map { row in (0..<7).map { row[$0] as Int64? } }
            }
        }
        let place = HeldTo(UpdateSerial(9), rules: 1)
        _ = try await store.held(
            binding.serial, revision: 2, to: place, isFull: false, adding: [], at: start)
        let now = start.milliseconds
        #expect(try await rows() == [[1, 2, nil, now, 9, 0, 0]])
        _ = try await bind("other", fixture, at: start.adding(seconds: 1))
        #expect(try await rows() == [[1, 3, now + 1000, nil, 0, 1, 1], [2, 1, nil, nil, 0, 0, 1]])
        let user = try #require(UserID("ada"))
        let signed = try await store.changeRegistration(of: fixture.device.serial, at: start) { current in
            .says(current.profile, confirms: false, user: .signedIn(user))
        }
        _ = try #require(signed).get()
        #expect(try await rows() == [[1, 3, now + 1000, nil, 0, 1, 1], [2, 2, now, nil, 0, 0, 1]])
    }

    // MARK: Statements

    private static let tables = ["binding", "completion", "audience_update"]

    /// The statements on the tables of updates, reads included. A statement counts once.
    private func statements(of store: SQLiteStore, in work: () async throws -> Void) async throws -> Int {
        let seen = Mutex<Set<String>>([])
        try await store.group.run { db in
            db.trace { event in
                guard case .statement(let statement) = event, !statement.sql.hasPrefix("--") else { return }
                seen.withLock { _ = $0.insert(statement.sql) }
            }
        }
        try await work()
        try await store.group.run { db in db.trace(nil) }
        return seen.withLock { $0.count { sql in Self.tables.contains { sql.contains($0) } } }
    }

    @Test func `calls run as many statements as the documentation says`() async throws {
        let fixture = try await StoreFixture(.memory)
        let store = fixture.sqlite
        func run(_ work: () async throws -> Void) async throws -> Int { try await statements(of: store, in: work) }
        func begun(_ profile: String) async throws -> Int { try await run { _ = try await bind(profile, fixture) } }
        #expect(try await begun("one") == 3)
        #expect(try await begun("one") == 1)
        #expect(try await begun("other") == 4)
        #expect(try await begun("one") == 7)
        for number in 2..<UpdateBinding.mostOfDevice { _ = try await bind("p\(number)", fixture) }
        #expect(try await begun("more") == 6)
        let binding = try await bind("more", fixture)
        let held = try await run {
            let place = HeldTo(UpdateSerial(1), rules: 1)
            _ = try await store.held(
                binding.serial, revision: binding.revision, to: place, isFull: false, adding: [], at: start)
        }
        #expect(held == 2)
        let changed = try await run { _ = try await store.change(binding, hasOtherKinds: false, at: start) }
        #expect(changed == 1)
    }
}
