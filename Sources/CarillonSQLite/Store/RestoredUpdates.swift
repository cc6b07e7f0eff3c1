import CarillonCore
import GRDB

/// The live updates of a database that is restored from a backup, before a server uses it.
struct RestoredUpdates {
    private let path: String
    private let now: Timestamp
    private static let completionsAtOnce = 500

    init(in path: String, at now: Timestamp) {
        self.path = path
        self.now = now
    }

    /// Returns the number of live updates, and how many of them are paused. The database may have an earlier version.
    func count() throws -> LiveUpdateCount {
        try opened { database in
            try database.read { db in
                guard try db.tableExists("audience_update") else { return LiveUpdateCount() }
                let names = try db.columns(in: "audience_update").map(\.name)
                let isPartOfLog = names.contains("is_resync") ? "AND NOT is_resync" : ""
                let paused = names.contains("paused_at") ? "count(paused_at)" : "0"
                let row = try Row.fetchOne(
                    db,
                    sql: """
                        SELECT count(*) AS live, \(paused) AS paused FROM audience_update
                        WHERE status = 0 AND expires_at > ? \(isPartOfLog)
                        """,
                    arguments: [now.milliseconds])
                return LiveUpdateCount(live: row?["live"] ?? 0, paused: row?["paused"] ?? 0)
            }
        }
    }

    /// Migrates the database to this version, pauses all live updates, and removes them from inboxes.
    func hold() throws {
        try opened { database in
            try database.write(Schema.bringUpToDate)
            let settings = StoreSettings()
            let memory = InboxMemory(settings: settings, indexCapacity: SQLiteStore.indexCapacity)
            try database.read { db in try InboxIndexWriter.read(into: memory.index, from: db) }
            let paused = try database.write { db in
                let table = UpdateTable(db)
                try table.pauseAll(at: now)
                return try table.paused()
            }
            for update in paused {
                var place: CompletionTable.Place? = .start
                while let start = place { place = try takeOutSome(of: update, after: start, database, memory, settings) }
            }
            try database.write { db in try CompletionTable(db).putOffPaused() }
        }
    }

    /// Returns the position after which the next call continues; nil at the end.
    private func takeOutSome(
        of update: UpdateSerial, after place: CompletionTable.Place, _ database: DatabaseQueue, _ memory: InboxMemory,
        _ settings: StoreSettings
    ) throws -> CompletionTable.Place? {
        try database.write { db in
            let transaction = InboxTransaction(db, memory: memory, settings: settings)
            let some = try CompletionTransaction(db).takeOut(
                of: update, after: place, limit: Self.completionsAtOnce, at: now)
            try transaction.takeOut(some.envelopes, at: now)
            try transaction.finish()
            return some.end
        }
    }

    private func opened<Value>(_ work: (DatabaseQueue) throws -> Value) throws -> Value {
        let database = try DatabaseQueue(path: path, configuration: SQLiteStore.configuration)
        let result = Result { try work(database) }
        try database.close()
        return try result.get()
    }
}
