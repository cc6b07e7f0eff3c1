package import CarillonCore
import GRDB
import Synchronization

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Stores all data of Carillon in one SQLite file.
///
/// Commits are durable when they are answered: the write-ahead log is synchronized with each commit (`synchronous=FULL`). Reads
/// run concurrently with writes, on their own connections, and see every commit that was answered before.
package final class SQLiteStore: Sendable {
    /// The data directory; nil for a store in memory.
    package let directory: String?
    let settings: StoreSettings
    let database: any DatabaseWriter
    /// The writes of this handle.
    let group: FencedGroup
    let reads: ReadGroups
    let gate: StoreGate
    let memory: InboxMemory
    let registry: RegistryMemory
    let incarnations: ActiveIncarnations
    let metrics: InboxMetrics
    private let lock: DirectoryLock?
    let health: StoreHealth

    /// Opens the store of a data directory. Creates the store if the directory is empty or missing.
    ///
    /// - Parameter makesMissing: If false, a directory without a store is refused and is not changed.
    /// - Throws: ``StoreOpenFault`` with a description for the operator.
    package convenience init(
        directory: String, makesMissing: Bool = true, settings: StoreSettings = StoreSettings(),
        indexCapacity: Int = SQLiteStore.indexCapacity
    ) throws {
        let file = StoreFile(directory: directory)
        guard makesMissing || file.isTaken else { throw StoreOpenFault.missing(directory) }
        let lock = try DirectoryLock(directory: directory)
        do {
            try file.prepare()
            var configuration = Self.configuration
            configuration.maximumReaderCount = ReadGroups.count
            let pool = try DatabasePool(path: file.path, configuration: configuration)
            try self.init(database: pool, lock: lock, file: file, settings: settings, indexCapacity: indexCapacity)
        } catch let fault as StoreFault {
            throw StoreOpenFault(fault, directory: directory)
        } catch let error as DatabaseError {
            throw StoreOpenFault(error, path: file.path, probing: directory)
        }
    }

    /// A store in memory, for tests.
    package convenience init(
        inMemory settings: StoreSettings = StoreSettings(), indexCapacity: Int = SQLiteStore.indexCapacity
    ) throws {
        try self.init(
            database: DatabaseQueue(configuration: Self.configuration), lock: nil, file: nil, settings: settings,
            indexCapacity: indexCapacity)
    }

    /// The number of entries of ``InboxIndex`` that are collected in memory.
    package static let indexCapacity = 65_536

    private init(
        database: any DatabaseWriter, lock: DirectoryLock?, file: StoreFile?, settings: StoreSettings, indexCapacity: Int
    ) throws {
        self.settings = settings
        self.database = database
        self.lock = lock
        directory = file?.directory
        health = StoreHealth(path: file?.path)
        gate = StoreGate()
        registry = RegistryMemory()
        metrics = InboxMetrics()
        let memory = InboxMemory(settings: settings, indexCapacity: indexCapacity)
        self.memory = memory
        let incarnations = ActiveIncarnations()
        self.incarnations = incarnations
        let transactions = TransactionGroup(writer: database, gate: gate, health: health, incarnations: incarnations) { db in
            memory.rolledBack(in: db)
            incarnations.forget()
        }
        group = FencedGroup(transactions: transactions, fence: nil)
        reads = ReadGroups(reader: database, gate: gate)
        // GRDB changes this setting for a pool after its connection was prepared, so it is set here.
        try database.writeWithoutTransaction { db in try db.execute(sql: "PRAGMA synchronous = FULL") }
        database.add(transactionObserver: FileGuard(health), extent: .databaseLifetime)
        try database.write { db in
            try Schema.bringUpToDate(db)
            if let file { try SchemaComparison.check(db, path: file.path) }
        }
        try database.read { [memory] db in try InboxIndexWriter.read(into: memory.index, from: db) }
        // The first sweep finds damage in these rows again.
        do {
            try database.write { db in
                let transaction = InboxTransaction(db, memory: memory, settings: settings)
                try transaction.dropVolatile(at: Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000)))
                try transaction.finish()
            }
        } catch {
            try database.write(memory.rolledBack)
        }
    }

    /// Returns a handle of the store for a home. Its writes use the same transactions as the writes of other handles.
    init(_ store: SQLiteStore, fencedBy fence: HomeFence) {
        settings = store.settings
        database = store.database
        lock = store.lock
        directory = store.directory
        health = store.health
        gate = store.gate
        registry = store.registry
        metrics = store.metrics
        memory = store.memory
        incarnations = store.incarnations
        group = FencedGroup(transactions: store.group.transactions, fence: fence)
        reads = store.reads
    }

    /// Closes the file, so that another process can use the directory. Calls after this fail.
    ///
    /// After this, all data is in the database file, and the write-ahead log is empty.
    ///
    /// - Throws: ``StoreFault`` if the store is closed, but committed data is still in the log. No data is lost as long as both
    ///   files stay together.
    package func close() throws {
        gate.close()
        // Without this, the closed store would return a cached version.
        registry.forget()
        let emptied = Result { try emptyLog() }
        try database.close()
        lock?.release()
        do { try emptied.get() } catch { throw StoreFault(error) }
    }

    private func emptyLog() throws {
        guard lock != nil else { return }
        try health.check()
        try database.barrierWriteWithoutTransaction { db in _ = try db.checkpoint(.truncate) }
    }

    /// Whether every commit waits until it is on disk.
    package func syncsEveryCommit() async throws -> Bool {
        try await group.run { db in try Int.fetchOne(db, sql: "PRAGMA synchronous") ?? 0 >= 2 }
    }

    /// Returns normally if the store can be read, its file is in its place, and no damage was found since it was opened.
    ///
    /// - Throws: ``StoreFault``.
    package func checkHealth() async throws {
        try health.check()
        _ = try await read { db in try Int.fetchOne(db, sql: "SELECT count(*) FROM token_key") }
    }

    /// Returns normally if the last commit succeeded, or a test write succeeds now.
    ///
    /// - Throws: ``StoreFault``.
    package func checkWrites() async throws {
        guard health.writeFault != nil else { return }
        // SQLite writes nothing for a change that changes no value.
        try await group.transactions.run(isProbe: true) { db in
            let counters = CounterTable(db)
            try counters.add(InboxUsage.Waiting(envelopes: 1, bytes: 0))
            try counters.add(InboxUsage.Waiting(envelopes: -1, bytes: 0))
        }
    }

    package var oldestChangeWait: Duration { group.transactions.oldestWait }
    package var commitTime: Duration { group.transactions.commitTime }

    func read<Value: Sendable>(_ work: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
        try await noting { try await reads.lookUps.run(work) }
    }

    /// Runs a read of a page of envelopes with at most this number of bytes.
    func readPage<Value: Sendable>(
        of bytes: Int, _ work: @escaping @Sendable (Database) throws -> Value
    ) async throws -> Value {
        try await noting { try await reads.pages(of: bytes).run(work) }
    }

    /// Runs a read of many rows for one request. It does not delay short reads.
    func scan<Value: Sendable>(_ work: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
        try await noting { try await reads.scans.run(work) }
    }

    /// Runs a read in which each statement sees everything that was committed before it.
    func readStepwise<Value: Sendable>(_ work: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
        try await noting { try await reads.arrivals.run(work) }
    }

    private func noting<Value>(_ read: () async throws -> Value) async throws -> Value {
        do {
            return try await read()
        } catch {
            health.met(error)
            throw error
        }
    }

    /// Limits the growth of the file to a number of pages, to simulate a disk that is nearly full.
    package func limitPages(toUsedPlus pages: Int) async throws {
        try await database.writeWithoutTransaction { db in
            let used = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0
            try db.execute(sql: "PRAGMA max_page_count = \(used + pages)")
        }
    }

    /// For tests: every commit fails with this fault until it is nil.
    package func refuseCommits(_ fault: StoreFault?) { health.refuseCommits(fault) }

    /// For tests that damage a file.
    package func run(_ sql: String) async throws { try await group.run { db in try db.execute(sql: sql) } }

    /// For tests of complete removal.
    package func rowCount(of table: String) async throws -> Int {
        try await read { db in try Int.fetchOne(db, sql: "SELECT count(*) FROM \"\(table)\"") ?? 0 }
    }

    /// For tests that simulate a process that is killed after a commit. No other commit is in progress during the call.
    package func onCommit(_ work: (@Sendable () -> Void)?) {
        group.transactions.onCommit.withLock { $0 = work }
    }

    /// For tests that check written rows.
    package func numbers(_ sql: String) async throws -> [Int64] {
        try await read { db in try Int64.fetchAll(db, sql: sql) }
    }

    static var configuration: Configuration {
        var configuration = Configuration()
        configuration.label = "carillon"
        configuration.busyMode = .timeout(5)
        configuration.prepareDatabase { db in
            db.add(function: ShardSet.function)
            db.add(function: ShardSet.functionOfItems)
            try db.execute(
                sql: """
                    PRAGMA wal_autocheckpoint = 4000;
                    PRAGMA cache_size = -16384;
                    PRAGMA journal_size_limit = 67108864;
                    """)
        }
        return configuration
    }
}
