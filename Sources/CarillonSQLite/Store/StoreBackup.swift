package import CarillonCore
import Dispatch
import GRDB

/// Copies of a store: one file each, as it was at one moment.
package enum StoreBackup {
    /// Writes a backup of a data directory, while a server uses it or while none does.
    ///
    /// It holds everything whose commit was answered before, and nothing of what is deleted. The file appears whole,
    /// for its owner only. What a server commits meanwhile stays in its log until this is done.
    ///
    /// - Throws: ``StoreOpenFault``; nothing is left at the path then.
    package static func make(of directory: String, at path: String) async throws {
        try await onThread { try makeNow(of: directory, at: path) }
    }

    private static func makeNow(of directory: String, at path: String) throws {
        let file = StoreFile(directory: directory)
        guard StoreFile.exists(file.path) else {
            throw file.isTaken ? StoreOpenFault.withoutDatabase(file.path) : StoreOpenFault.missing(directory)
        }
        guard !StoreFile.exists(path) else { throw StoreOpenFault.taken(path) }
        try StoreFile.inspect(file.path)
        try StoreFile.make(path, draft: path + ".partial") { draft in
            try copy(file.path, to: draft)
            try AttachmentCopies.copy(
                namedIn: draft, from: AttachmentFolder.path(in: directory), to: AttachmentCopies.directory(of: path))
        }
    }

    /// Makes a data directory of a backup. The backup stays as it is.
    ///
    /// - Parameter holdsUpdates: Whether all live updates are paused. The directory has no database before they are.
    /// - Returns: How many live updates there are.
    /// - Throws: ``StoreOpenFault``, also when the directory holds a store or is in use.
    @discardableResult
    package static func restore(
        _ backup: String, to directory: String, holdsUpdates: Bool = false, at now: Timestamp
    ) async throws -> LiveUpdateCount {
        try await onThread { try restoreNow(backup, to: directory, holdsUpdates, at: now) }
    }

    private static func restoreNow(
        _ backup: String, to directory: String, _ holdsUpdates: Bool, at now: Timestamp
    ) throws -> LiveUpdateCount {
        guard StoreFile.exists(backup) else {
            throw StoreOpenFault(kind: .missing, description: "The file \(backup) does not exist.")
        }
        try StoreFile.inspect(backup)
        if let size = StoreFile.size(of: backup + "-wal"), size > 0 {
            throw StoreOpenFault(
                kind: .other,
                description: """
                    \(backup) is not a backup: it is a database with a log next to it, which a server may be using. Make a \
                    backup of its directory with `carillon backup`.
                    """)
        }
        let file = StoreFile(directory: directory)
        let lock = try DirectoryLock(directory: directory)
        defer { lock.release() }
        guard !file.isTaken else { throw StoreOpenFault.taken(file.path) }
        var liveUpdates = LiveUpdateCount()
        try file.make { draft in
            try copy(backup, to: draft)
            try beginHistory(of: draft)
            let updates = RestoredUpdates(in: draft, at: now)
            if holdsUpdates { try updates.hold() }
            liveUpdates = try updates.count()
            try AttachmentCopies.copy(
                namedIn: draft, from: AttachmentCopies.directory(of: backup), to: AttachmentFolder.path(in: directory))
        }
        return liveUpdates
    }

    /// Devices heard of what happened after the backup, which this store does not know.
    private static func beginHistory(of path: String) throws {
        let database = try DatabaseQueue(path: path)
        let result = Result {
            try database.writeWithoutTransaction { db in
                if try db.tableExists("history") { try db.execute(sql: "DELETE FROM history") }
            }
        }
        try database.close()
        try result.get()
    }

    /// It blocks for as long as the disk takes.
    private static func onThread<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(with: Result { try work() }) }
        }
    }

    /// Copies the pages as they are at one moment, and writes them anew: that reads every table and builds every index,
    /// so that damage anywhere ends it. (`VACUUM INTO` on a connection that only reads fails in SQLite 3.40 where a table has
    /// generated columns.)
    private static func copy(_ source: String, to draft: String) throws {
        do {
            let copy = try DatabaseQueue(path: draft)
            let result = Result {
                try StoreFile.read(source) { db in try copy.writeWithoutTransaction { try db.backup(to: $0) } }
                try copy.writeWithoutTransaction { db in
                    try db.execute(sql: "PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL; VACUUM")
                }
            }
            try copy.close()
            try result.get()
        } catch let error as DatabaseError where [.SQLITE_CORRUPT, .SQLITE_NOTADB].contains(error.resultCode) {
            throw StoreOpenFault.damaged(source, error.message ?? "\(error.resultCode)")
        }
    }
}
