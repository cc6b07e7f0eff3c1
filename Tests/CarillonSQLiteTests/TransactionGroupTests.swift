import CarillonCore
import GRDB
import Metrics
import Synchronization
import TestSupport
import Testing

@testable import CarillonSQLite

@Suite(.timeLimit(.minutes(5)))
struct TransactionGroupTests {
    private let database: DatabaseQueue
    private let rollbacks = Counted()
    private let commits: Commits
    private let group: TransactionGroup
    private let incarnations = ActiveIncarnations()
    private let fencedWrites = CountedWrites()

    init() throws {
        let (rollbacks, incarnations) = (rollbacks, incarnations)
        commits = Commits()
        database = try DatabaseQueue()
        group = TransactionGroup(
            writer: database, health: StoreHealth(path: nil), incarnations: incarnations,
            fencedWrites: Counter(label: "fenced", dimensions: [], handler: fencedWrites)
        ) { _ in
            rollbacks.increment()
            incarnations.forget()
        }
        try database.write {
            try $0.execute(sql: "CREATE TABLE t (n INTEGER UNIQUE)")
            try $0.execute(sql: "CREATE TABLE child (n INTEGER REFERENCES t (n) DEFERRABLE INITIALLY DEFERRED)")
        }
        database.add(transactionObserver: commits)
    }

    private func rows() async throws -> [Int] {
        try await database.read { try Int.fetchAll($0, sql: "SELECT n FROM t ORDER BY n") }
    }

    /// Runs all of them in one group, behind a work that waits until all exist.
    private func inOneGroup(
        _ works: [@Sendable (Database) throws -> Void]
    ) async throws -> [Result<Void, any Error>] {
        let gate = Gate()
        let group = group
        async let first: Void = group.run { _ in gate.pass() }
        await gate.reached()
        let results = await together(works.map { work in { try await group.run(work) } }) { gate.open() }
        try await first
        return results
    }

    private func insert(_ number: Int) -> @Sendable (Database) throws -> Void {
        { try $0.execute(sql: "INSERT INTO t VALUES (?)", arguments: [number]) }
    }

    @Test func `work that fails is undone alone, and keeps its own error`() async throws {
        let bad: @Sendable (Database) throws -> Void = { db in
            try db.execute(sql: "INSERT INTO t VALUES (100)")
            throw StoreFault(.full, "its own")
        }
        let results = try await inOneGroup([insert(1), bad, insert(2)])
        #expect(results.map { (try? $0.get()) != nil } == [true, false, true])
        #expect(throws: StoreFault(.full, "its own")) { try results[1].get() }
        #expect(try await rows() == [1, 2])
        #expect(rollbacks.count > 0)
    }

    @Test func `work that fails costs the others one more run, in one commit`() async throws {
        let runs = Counted()
        let good: @Sendable (Database) throws -> Void = { _ in runs.increment() }
        let bad: @Sendable (Database) throws -> Void = { _ in throw StoreFault(.full, "its own") }
        let before = commits.count
        let results = try await inOneGroup(Array(repeating: good, count: 50) + [bad] + Array(repeating: good, count: 50))
        #expect(results.count { (try? $0.get()) == nil } == 1)
        #expect(runs.count == 50 + 100)
        #expect(commits.count - before == 2)
        // Neither values remembered by the first run nor effects of the bad work in the second one are used.
        #expect(rollbacks.count == 2)
    }

    @Test func `work that ends the transaction of all fails alone, and nothing is done twice`() async throws {
        let bad: @Sendable (Database) throws -> Void = { db in
            try db.execute(sql: "ROLLBACK")
            throw StoreFault(.full, "its own")
        }
        let results = try await inOneGroup([insert(1), bad, insert(2), insert(3)])
        #expect(results.map { (try? $0.get()) != nil } == [true, false, true, true])
        #expect(try await rows() == [1, 2, 3])
    }

    @Test func `when the commit fails, each work is tried alone, and only the faulty one fails`() async throws {
        // The reference dangles, which is seen when all are committed.
        let culprit: @Sendable (Database) throws -> Void = { try $0.execute(sql: "INSERT INTO child VALUES (7)") }
        let results = try await inOneGroup((1...6).map(insert) + [culprit] + (8...10).map(insert))
        #expect(results.indices.filter { (try? results[$0].get()) == nil } == [6])
        #expect(try await rows() == Array(1...6) + Array(8...10))
    }

    @Test func `when nothing can be committed, the rest is not tried`() async throws {
        let tried = Counted()
        let culprit: @Sendable (Database) throws -> Void = {
            tried.increment()
            try $0.execute(sql: "INSERT INTO child VALUES (7)")
        }
        let results = try await inOneGroup(Array(repeating: culprit, count: 100))
        #expect(results.allSatisfy { (try? $0.get()) == nil })
        // Each with all, and then a few alone.
        #expect(tried.count == 100 + 4)
    }

    @Test func `the oldest work that waits is known until it is on disk`() async throws {
        let group = group
        #expect(group.oldestWait == .zero)
        let gate = Gate()
        async let first: Void = group.run { _ in gate.pass() }
        await gate.reached()
        try await Task.sleep(for: .milliseconds(20))
        let writing = group.oldestWait
        #expect(writing >= .milliseconds(20))
        async let second: Void = group.run { _ in }
        try await Task.sleep(for: .milliseconds(20))
        // Newer work does not hide it.
        #expect(group.oldestWait >= writing + .milliseconds(20))
        gate.open()
        try await first
        try await second
        try await eventually { group.oldestWait == .zero }
    }

    @Test func `work waits from the moment it was queued`() async throws {
        let (group, database) = (group, database)
        let gate = Gate()
        async let other: Void = database.writeWithoutTransaction { _ in gate.pass() }
        await gate.reached()
        async let work: Void = group.run { _ in }
        try await eventually { group.oldestWait >= .milliseconds(20) }
        gate.open()
        try await other
        try await work
    }

    @Test func `the time of a commit does not include the wait before it`() async throws {
        let (group, database) = (group, database)
        #expect(group.commitTime == .zero)
        let (before, commit) = (Gate(), Gate())
        async let other: Void = database.writeWithoutTransaction { _ in before.pass() }
        await before.reached()
        async let work: Void = group.run { _ in commit.pass() }
        // No commit is on its way.
        try await eventually { group.commitTime >= .milliseconds(20) }
        before.open()
        await commit.reached()
        let time = group.commitTime
        #expect(group.oldestWait >= time + .milliseconds(20))
        try await eventually { group.commitTime >= time + .milliseconds(20) }
        commit.open()
        try await other
        try await work
        try await eventually { group.commitTime == .zero }
    }

    // MARK: Homes

    /// Runs the works in one group. Those of a home are refused if it has no incarnation.
    private func inOneGroup(
        ofHomes works: [(fence: HomeFence?, work: @Sendable (Database) throws -> Void)]
    ) async throws -> [Result<Void, any Error>] {
        let gate = Gate()
        let group = group
        async let first: Void = group.run { _ in gate.pass() }
        await gate.reached()
        let results = await together(works.map { each in { try await group.run(by: each.fence, each.work) } }) {
            gate.open()
        }
        try await first
        return results
    }

    private func addNode() async throws -> HomeFence {
        try await database.write { try $0.execute(sql: HomeSchema.changes) }
        return try await group.run { db in try NodeTable(db).add(.only) }
    }

    private func kinds(of results: [Result<Void, any Error>]) -> [StoreFault.Kind?] {
        results.map { result in
            guard case .failure(let error) = result else { return nil }
            return (error as? StoreFault)?.kind
        }
    }

    @Test func `work of a home that was removed is not run, and costs the others no other run`() async throws {
        let fence = try await addNode()
        let runs = Counted()
        let before = commits.count
        let former = HomeFence(node: fence.node, incarnation: fence.incarnation - 1)
        let counted: @Sendable (Database) throws -> Void = { _ in runs.increment() }
        let results = try await inOneGroup(ofHomes: [
            (fence, counted), (former, insert(1)), (nil, counted), (fence, insert(2)),
        ])
        #expect(kinds(of: results) == [nil, .fenced, nil, nil])
        #expect(try await rows() == [2])
        #expect(runs.count == 2 && commits.count - before == 2)
        #expect(fencedWrites.count == 1)
    }

    @Test func `a refused work is counted once, also if it is repeated because another one failed`() async throws {
        let fence = try await addNode()
        let former = HomeFence(node: fence.node, incarnation: fence.incarnation - 1)
        let bad: @Sendable (Database) throws -> Void = { _ in throw StoreFault(.full, "its own") }
        let results = try await inOneGroup(ofHomes: [(former, insert(1)), (fence, bad), (former, insert(2)), (nil, bad)])
        #expect(kinds(of: results) == [.fenced, .full, .fenced, .full])
        #expect(fencedWrites.count == 2)
    }

    @Test func `work behind a removal in the same transaction is refused`() async throws {
        let fence = try await addNode()
        let incarnations = incarnations
        let remove: @Sendable (Database) throws -> Void = { db in
            incarnations.forget()
            _ = try NodeTable(db).remove(fence)
        }
        let results = try await inOneGroup(ofHomes: [
            (fence, insert(1)), (nil, remove), (fence, insert(2)), (nil, insert(3)),
        ])
        #expect(kinds(of: results) == [nil, nil, .fenced, nil])
        #expect(try await rows() == [1, 3])
    }

    @Test func `work behind a removal that is rolled back is run`() async throws {
        let fence = try await addNode()
        let incarnations = incarnations
        // The reference dangles, so that the removal cannot be committed.
        let remove: @Sendable (Database) throws -> Void = { db in
            incarnations.forget()
            _ = try NodeTable(db).remove(fence)
            try db.execute(sql: "INSERT INTO child VALUES (7)")
        }
        let results = try await inOneGroup(ofHomes: [(fence, insert(1)), (nil, remove), (fence, insert(2))])
        #expect(kinds(of: results) == [nil, .unavailable, nil])
        #expect(try await rows() == [1, 2])
    }

    @Test(arguments: [true, false])
    func `an incarnation that is added and rolled back alone does not stop the home`(isCheckedMeanwhile: Bool) async throws {
        let store = try SQLiteStore(inMemory: StoreSettings())
        let former = try await store.addIncarnation(of: .only)
        let (transactions, incarnations, gate) = (store.group.transactions, store.incarnations, Gate())
        let adding: @Sendable () async throws -> Bool = {
            try await transactions.run { db -> Bool in
                incarnations.forget()
                let added = try NodeTable(db).add(.only)
                // As a write of the new home would, in the same transaction.
                if isCheckedMeanwhile { _ = try incarnations.contains(added, in: db) }
                throw StoreFault(.full, "its own")
            }
        }
        let writing: @Sendable () async throws -> Bool = { try await transactions.run(by: former) { _ in true } }
        async let first: Void = transactions.run { _ in gate.pass() }
        await gate.reached()
        let results = await together([writing, adding, writing]) { gate.open() }
        try await first
        #expect(results.map { (try? $0.get()) != nil } == [true, false, true])
        _ = try await store.home(former).addContent([1])
    }

    @Test func `when a removal cannot be committed, later work gets the fault of the commit`() async throws {
        let fence = try await addNode()
        let incarnations = incarnations
        let remove: @Sendable (Database) throws -> Void = { db in
            incarnations.forget()
            _ = try NodeTable(db).remove(fence)
            try db.execute(sql: "INSERT INTO child VALUES (7)")
        }
        var works: [(fence: HomeFence?, work: @Sendable (Database) throws -> Void)] = []
        for _ in 0..<9 { works.append((nil, remove)) }
        works.append((fence, insert(1)))
        let found = kinds(of: try await inOneGroup(ofHomes: works))
        #expect(found.count == 10 && found.allSatisfy { $0 == .unavailable })
        #expect(try await rows().isEmpty)
        #expect(fencedWrites.count == 0, "the fault is that of the commit")
    }

    @Test func `many writes use few commits`() async throws {
        let before = commits.count
        _ = try await inOneGroup((1...200).map(insert))
        #expect(try await rows().count == 200)
        #expect(commits.count - before == 2)
    }
}

final class Counted: Sendable {
    private let value = Mutex(0)
    var count: Int { value.withLock { $0 } }
    func increment() { value.withLock { $0 += 1 } }
}

private final class CountedWrites: CounterHandler {
    private let value = Mutex<Int64>(0)
    var count: Int64 { value.withLock { $0 } }
    func increment(by amount: Int64) { value.withLock { $0 += amount } }
    func reset() {}
}

private final class Commits: TransactionObserver, Sendable {
    private let counted = Counted()
    var count: Int { counted.count }
    func observes(eventsOfKind eventKind: DatabaseEventKind) -> Bool { false }
    func databaseDidChange(with event: DatabaseEvent) {}
    func databaseDidCommit(_ db: Database) { counted.increment() }
    func databaseDidRollback(_ db: Database) {}
}
