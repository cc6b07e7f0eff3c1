import CarillonCore
import GRDB

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// The database file of a data directory: whether it may be opened, how it comes to be, and what is wrong with it.
///
/// It appears whole, under another name first: so a file that is there without Carillon's tables never is a new one.
struct StoreFile {
    let directory: String

    var path: String { directory + "/carillon.sqlite" }
    private var log: String { path + "-wal" }

    /// Whether there is anything that a new database would be put in the place of.
    var isTaken: Bool { Self.exists(path) || Self.exists(log) || Self.exists(path + "-journal") }

    /// Makes the database when there is none, and refuses one that is not to be used. Needs the directory's lock.
    ///
    /// - Throws: ``StoreOpenFault``. What was there is as it was.
    func prepare() throws {
        if Self.exists(path) { return try Self.inspect(path) }
        guard !isTaken else { throw StoreOpenFault.withoutDatabase(path) }
        try make { draft in
            let queue = try DatabaseQueue(path: draft, configuration: SQLiteStore.configuration)
            try queue.write(Schema.bringUpToDate)
            try queue.close()
        }
    }

    /// Lets the closure write a file beside the database's place, and puts it there when it is on disk.
    func make(_ write: (String) throws -> Void) throws {
        try Self.make(path, draft: path + ".new", write)
    }

    /// - Parameter draft: Where it is written, for its owner only; a file that is there is a broken attempt.
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

    /// Reads without changing anything, so that a file that is not ours, newer or damaged stays as it is.
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

    /// Works on a connection that can write nothing.
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
