package import CarillonCore
import GRDB

/// Everything that Carillon keeps, in one SQLite file.
///
/// Commits are durable when they are answered: the write-ahead log is synced with each (`synchronous=FULL`). Reads
/// run beside writes, on connections of their own, and see every commit that was answered before.
package final class SQLiteStore: Sendable {
    package struct Settings: Sendable {
        /// The most envelopes that may wait for one device.
        package var inboxEnvelopes: Int
        /// The most bytes that may wait for one device, each envelope counted with ``Envelope/overhead``.
        package var inboxBytes: Int
        /// How long outcomes are kept.
        package var outcomeRetentionSeconds: Int64
        /// The most outcomes that are kept for one device; beyond it the oldest are forgotten.
        package var outcomesPerDevice: Int
        /// The most `Idempotency-Key`s that are remembered for one device; beyond it the oldest are forgotten.
        package var idempotencyKeysPerDevice: Int
        package var callbacks = CallbackLimits()

        package init(
            inboxEnvelopes: Int = 10_000, inboxBytes: Int = 32 << 20, outcomeRetentionSeconds: Int64 = 7 * 86_400,
            outcomesPerDevice: Int = 10_000, idempotencyKeysPerDevice: Int = 10_000
        ) {
            self.inboxEnvelopes = inboxEnvelopes
            self.inboxBytes = inboxBytes
            self.outcomeRetentionSeconds = outcomeRetentionSeconds
            self.outcomesPerDevice = outcomesPerDevice
            self.idempotencyKeysPerDevice = idempotencyKeysPerDevice
        }
    }

    let settings: Settings
    let database: any DatabaseWriter
    let group: TransactionGroup
    let reads: ReadLanes
    let usage = InboxUsage()
    private let lock: DirectoryLock?

    /// Opens the store of a data directory, and makes it when the directory is empty or missing.
    ///
    /// - Throws: ``StoreOpenFault`` with words for the operator.
    package convenience init(directory: String, settings: Settings = Settings()) throws {
        let lock = try DirectoryLock(directory: directory)
        let path = directory + "/carillon.sqlite"
        do {
            try Self.inspect(path)
            try DirectoryLock.createForOwner(path)
            var configuration = Self.configuration
            configuration.maximumReaderCount = ReadLanes.count
            let pool = try DatabasePool(path: path, configuration: configuration)
            try self.init(database: pool, lock: lock, settings: settings)
        } catch let error as DatabaseError {
            throw StoreOpenFault(error, path: path)
        }
    }

    /// A store in memory, for tests.
    package convenience init(inMemory settings: Settings = Settings()) throws {
        try self.init(database: DatabaseQueue(configuration: Self.configuration), lock: nil, settings: settings)
    }

    private init(database: any DatabaseWriter, lock: DirectoryLock?, settings: Settings) throws {
        self.settings = settings
        self.database = database
        self.lock = lock
        group = TransactionGroup(writer: database) { [usage] in usage.forgetAll() }
        reads = ReadLanes(reader: database)
        // GRDB lowers this for a pool after its connection was prepared, so it is set here.
        try database.writeWithoutTransaction { db in try db.execute(sql: "PRAGMA synchronous = FULL") }
        try database.write(Schema.bringUpToDate)
    }

    /// Closes the file, and lets another process have the directory. Calls after this fail.
    package func close() throws {
        try database.close()
        lock?.release()
    }

    /// Whether every commit waits until the disk has it.
    package func syncsEveryCommit() async throws -> Bool {
        try await group.run { db in try Int.fetchOne(db, sql: "PRAGMA synchronous") ?? 0 >= 2 }
    }

    /// Answers when the store can be read.
    package func checkHealth() async throws {
        _ = try await read { db in try Int.fetchOne(db, sql: "SELECT count(*) FROM token_key") }
    }

    func read<Value: Sendable>(_ work: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
        try await reads.lookUps.run(work)
    }

    /// Allows the file to grow by so many pages and no further, as a disk does that is nearly full.
    package func limitPages(toUsedPlus pages: Int) async throws {
        try await database.writeWithoutTransaction { db in
            let used = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0
            try db.execute(sql: "PRAGMA max_page_count = \(used + pages)")
        }
    }

    /// Reads without creating or changing anything, so that a file that is not ours, newer or damaged stays as it is.
    private static func inspect(_ path: String) throws {
        var readOnly = Configuration()
        readOnly.readonly = true
        guard let queue = try? DatabaseQueue(path: path, configuration: readOnly) else { return }
        defer { try? queue.close() }
        let (application, version, tables) = try queue.read { db in
            (
                try Int32.fetchOne(db, sql: "PRAGMA application_id") ?? 0,
                try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0,
                try Int.fetchOne(db, sql: "SELECT count(*) FROM sqlite_master") ?? 0
            )
        }
        if application == 0, version == 0, tables == 0 { return }
        guard application == Schema.applicationID else { throw StoreOpenFault.foreign(path) }
        guard version <= Schema.version else { throw StoreOpenFault.newer(path, found: version) }
    }

    private static var configuration: Configuration {
        var configuration = Configuration()
        configuration.label = "carillon"
        configuration.busyMode = .timeout(5)
        configuration.prepareDatabase { db in
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
