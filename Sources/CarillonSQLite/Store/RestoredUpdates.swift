import CarillonCore
import GRDB

/// The live updates of a database that is made of a backup, before a server uses it.
struct RestoredUpdates {
    private let path: String
    private let now: Timestamp
    private static let completionsAtOnce = 500

    init(in path: String, at now: Timestamp) {
        self.path = path
        self.now = now
    }

    /// How many there are. The database may be of an earlier version.
    func count() throws -> Int {
        try opened { database in
            try database.read { db in
                guard try db.tableExists("audience_update") else { return 0 }
                let names = try db.columns(in: "audience_update").map(\.name)
                let isPartOfLog = names.contains("is_resync") ? "AND NOT is_resync" : ""
                return try Int.fetchOne(
                    db,
                    sql: "SELECT count(*) FROM audience_update WHERE status = 0 AND expires_at > ? \(isPartOfLog)",
                    arguments: [now.milliseconds]) ?? 0
            }
        }
    }

    /// Brings the database to this version, pauses all live updates, and takes them out of inboxes.
    func hold() throws {
        try opened { database in
            try database.write(Schema.bringUpToDate)
            let settings = StoreSettings()
            let memory = InboxMemory(settings: settings, indexCapacity: SQLiteStore.indexCapacity)
            try database.read { db in try InboxIndexWriter.read(into: memory.index, from: db) }
            try database.write { db in try UpdateTable(db).pauseAll(at: now) }
            while try takeOutSome(of: database, memory, settings) {}
        }
    }

    /// Answers whether there may be more.
    private func takeOutSome(
        of database: DatabaseQueue, _ memory: InboxMemory, _ settings: StoreSettings
    ) throws -> Bool {
        try database.write { db in
            let transaction = InboxTransaction(db, memory: memory, settings: settings)
            let some = try CompletionTable(db).putOffPaused(limit: Self.completionsAtOnce, at: now)
            try transaction.takeOut(some.envelopes, at: now)
            try transaction.finish()
            return some.count == Self.completionsAtOnce
        }
    }

    private func opened<Value>(_ work: (DatabaseQueue) throws -> Value) throws -> Value {
        let database = try DatabaseQueue(path: path, configuration: SQLiteStore.configuration)
        let result = Result { try work(database) }
        try database.close()
        return try result.get()
    }
}
