package import CarillonCore
import Dispatch
import GRDB

/// Backups of a store: each is one file with the state of one moment.
package enum StoreBackup {
    /// Writes a backup of a data directory. A server may use the directory at the same time.
    ///
    /// The backup contains each commit that was answered before the call, and no deleted data. The file appears when it is
    /// complete, for its owner only. Commits of a server during the backup stay in its write-ahead log until the backup is done.
    ///
    /// - Throws: ``StoreOpenFault``. No file is left at the path then.
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

    /// Creates a data directory from a backup. The backup is not changed.
    ///
    /// - Parameter holdsUpdates: Whether all live updates are paused. They are paused before the directory has a database.
    /// - Returns: The number of live updates.
    /// - Throws: ``StoreOpenFault``, also if the directory has a store or is in use.
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

    /// Removes the id of the history. Devices may have been notified of changes after the backup, which this store does not have.
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

    /// Runs work that blocks on the disk on its own thread.
    private static func onThread<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(with: Result { try work() }) }
        }
    }

    /// Copies the pages as they are at one moment, and writes them again. This reads every table and builds every index, so that
    /// damage anywhere causes an error. (`VACUUM INTO` on a read-only connection fails in SQLite 3.40 if a table has generated
    /// columns.)
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
