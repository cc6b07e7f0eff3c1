import CarillonCore
import GRDB

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// The database file of a data directory: checks it, creates it, and reports faults.
///
/// The file is written under another name first, and appears when it is complete. So a file without Carillon's tables is never a
/// new database.
struct StoreFile {
    let directory: String

    var path: String { directory + "/carillon.sqlite" }
    private var log: String { path + "-wal" }

    /// Whether there is a file that a new database would replace.
    var isTaken: Bool { Self.exists(path) || Self.exists(log) || Self.exists(path + "-journal") }

    /// Creates the database if it does not exist, and refuses a database that must not be used. The caller must have the lock of
    /// the directory.
    ///
    /// - Throws: ``StoreOpenFault``. Existing files are not changed.
    func prepare() throws {
        if Self.exists(path) { return try Self.inspect(path) }
        guard !isTaken else { throw StoreOpenFault.withoutDatabase(path) }
        try make { draft in
            let queue = try DatabaseQueue(path: draft, configuration: SQLiteStore.configuration)
            try queue.write(Schema.bringUpToDate)
            try queue.close()
        }
    }

    /// Calls the closure to write a file next to the database's path, and moves the file there when it is on disk.
    func make(_ write: (String) throws -> Void) throws {
        try Self.make(path, draft: path + ".new", write)
    }

    /// - Parameter draft: The path of the new file, for its owner only. An existing file is an incomplete attempt, and is
    ///   removed.
    static func make(_ path: String, draft: String, _ write: (String) throws -> Void) throws {
        for ending in ["", "-journal", "-wal", "-shm"] { unlink(draft + ending) }
        var isInPlace = false
        defer { if !isInPlace { unlink(draft) } }
        let file = open(draft, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw StoreOpenFault(unusable: path, cause: errno) }
        defer { close(file) }
        do {
            try write(draft)
        } catch let error as DatabaseError {
            throw StoreOpenFault(error, path: path, probing: directory(of: path))
        }
        guard fsync(file) == 0, rename(draft, path) == 0 else { throw StoreOpenFault(unusable: path, cause: errno) }
        isInPlace = true
        let parent = open(directory(of: path), O_RDONLY | O_CLOEXEC)
        guard parent >= 0 else { throw StoreOpenFault(unusable: path, cause: errno) }
        defer { close(parent) }
        guard fsync(parent) == 0 else { throw StoreOpenFault(unusable: path, cause: errno) }
    }

    /// Reads without changing anything, so that a foreign, newer or damaged file is not changed.
    static func inspect(_ path: String) throws {
        do {
            try read(path) { db in
                let application = try Int32.fetchOne(db, sql: "PRAGMA application_id") ?? 0
                let version = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
                let tables = try Int.fetchOne(db, sql: "SELECT count(*) FROM sqlite_master") ?? 0
                guard application == Schema.applicationID else {
                    throw application == 0 && tables == 0 ? StoreOpenFault.empty(path) : StoreOpenFault.foreign(path)
                }
                guard version <= Schema.version else { throw StoreOpenFault.newer(path, found: version) }
            }
        } catch let error as DatabaseError {
            throw StoreOpenFault(error, path: path, probing: directory(of: path))
        }
    }

    /// Runs work on a read-only connection.
    static func read(_ path: String, _ work: (Database) throws -> Void) throws {
        var readOnly = Configuration()
        readOnly.readonly = true
        readOnly.busyMode = .timeout(5)
        let queue = try DatabaseQueue(path: path, configuration: readOnly)
        let result = Result { try queue.inDatabase(work) }
        try queue.close()
        try result.get()
    }

    static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    static func size(of path: String) -> Int? {
        var status = stat()
        return stat(path, &status) == 0 ? Int(status.st_size) : nil
    }

    static func directory(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }
}
