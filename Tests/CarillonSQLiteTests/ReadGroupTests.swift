import CarillonCore
import GRDB
import TestSupport
import Testing

@testable import CarillonSQLite

@Suite(.timeLimit(.minutes(5)))
struct ReadGroupTests {
    private let database: DatabasePool
    private let transactions = Counted()

    init() throws {
        var configuration = Configuration()
        let transactions = transactions
        configuration.prepareDatabase { db in
            db.trace { if "\($0)".hasPrefix("BEGIN") { transactions.increment() } }
        }
        database = try DatabasePool(path: TemporaryDirectory.make() + "/test.sqlite", configuration: configuration)
        try database.write { try $0.execute(sql: "CREATE TABLE t (n INTEGER)") }
    }

    @Sendable private static func count(_ db: Database) throws -> Int {
        try Int.fetchOne(db, sql: "SELECT count(*) FROM t") ?? 0
    }

    @Test func `reads that are requested during another read run in one later transaction`() async throws {
        let group = ReadGroup(reader: database, readers: 1)
        let gate = Gate()
        async let first = group.run { db in
            gate.pass()
            return try Self.count(db)
        }
        await gate.reached()
        // The first read still sees the state of its beginning; reads that are requested after a commit see it.
        try await database.write { try $0.execute(sql: "INSERT INTO t VALUES (1)") }
        let before = transactions.count
        let others = await together(Array(repeating: { try await group.run(Self.count) }, count: 20)) { gate.open() }
        #expect(try await first == 0)
        #expect(try others.map { try $0.get() } == Array(repeating: 1, count: 20))
        #expect(transactions.count - before == 1)
    }

    @Test func `a read that fails does not affect others`() async throws {
        let group = ReadGroup(reader: database, readers: 1)
        let gate = Gate()
        async let first: Void = group.run { _ in gate.pass() }
        await gate.reached()
        let questions: [@Sendable (Database) throws -> Int?] = [
            { try Int.fetchOne($0, sql: "SELECT n FROM nowhere") }, { try Self.count($0) },
        ]
        let answers = await together(questions.map { question in { try await group.run(question) } }) { gate.open() }
        try await first
        #expect(throws: StoreFault.self) { try answers[0].get() }
        #expect(try answers[1].get() == 0)
    }

    @Test func `no more reads are under way than there are readers, and each reader is used`() async throws {
        let group = ReadGroup(reader: database, readers: 2)
        let gates = [Gate(), Gate()]
        async let first: Void = group.run { _ in gates[0].pass() }
        await gates[0].reached()
        async let second: Void = group.run { _ in gates[1].pass() }
        await gates[1].reached()
        let third = Counted()
        let increments: [@Sendable () async throws -> Void] = [{ try await group.run { _ in third.increment() } }]
        _ = await together(increments) {
            #expect(third.count == 0)
            for gate in gates { gate.open() }
        }
        _ = try await (first, second)
        #expect(third.count == 1)
    }

    @Test func `when the database cannot be read, all callers get the error`() async throws {
        let group = ReadGroup(reader: database, readers: 1)
        try database.close()
        await withTaskGroup(of: Void.self) { tasks in
            for _ in 0..<10 {
                tasks.addTask {
                    await #expect(throws: StoreFault.self) { _ = try await group.run { try Self.count($0) } }
                }
            }
        }
    }
}
