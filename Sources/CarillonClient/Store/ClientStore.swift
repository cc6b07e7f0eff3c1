import CarillonWire
import GRDB

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The client's durable state: one SQLite file, with one transaction for each step.
///
/// The file is in WAL mode. A change that is reported to the app or the server waits for the disk (`synchronous=FULL`): a token,
/// and an acknowledged message, must survive a power failure. The record that the app has handled a message does not wait
/// (`NORMAL`). It survives the end of the process. After a power failure the message can be delivered once more, which
/// at-least-once delivery allows.
///
/// The file is made under another name, and gets its final name when it is complete. Therefore an empty file is a damaged one.
///
/// The lock on the file is exclusive, because each client has its own state in memory.
final class ClientStore: Sendable {
    static let fileName = "carillon-client.sqlite"
    /// The most answers to messages that are remembered.
    static let handledLimit = 10_000
    /// The most firings whose starts are remembered. The app can have as many firings at once.
    static let firingStartsLimit = FiringQueue.limit

    private let queue: DatabaseQueue
    let marker: InstallMarker
    let health = StorageHealth()
    let paths: StoragePaths

    /// Opens the store, or makes it if it does not exist. Waits up to `patience` seconds for another client that is about to end.
    init(directory: String, patience: Double = 3) throws(PushError) {
        marker = InstallMarker(directory: directory)
        let paths = StoragePaths(directory: directory)
        self.paths = paths
        let path = URL(fileURLWithPath: directory, isDirectory: true).appendingPathComponent(Self.fileName).path
        do {
            try Self.makeFile(at: path, in: directory)
            queue = try DatabaseQueue(path: path, configuration: Self.configuration(patience: patience))
            try queue.writeWithoutTransaction { database in
                try database.execute(sql: "PRAGMA locking_mode = EXCLUSIVE")
                try ClientSchema.prepare(database, paths)
                // Takes the lock now, so that the fault is reported to the caller.
                try database.inTransaction(.immediate) { .commit }
            }
        } catch {
            throw Self.error(for: error, at: path)
        }
    }

    /// Reads the state of the last run, and checks that the app and the server are the same.
    func load(server: String, app: String) throws(PushError) -> StoredState {
        do {
            var state = try queue.write { database in
                try StoredState.load(from: database, server: server, app: app)
            }
            if let identity = state.identity { state.isRestored = !marker.exists(for: identity.device) }
            return state
        } catch let error as PushError {
            throw error
        } catch {
            throw Self.error(for: error, at: queue.path)
        }
    }

    /// Runs one step in its turn. Steps run one at a time, in the order of the calls, not on the caller's thread.
    func schedule(_ step: @escaping @Sendable (Database) -> Void) {
        queue.asyncWriteWithoutTransaction(step)
    }

    /// Runs the changes of a closure in one transaction. With `reachingDisk` the changes are on disk when this returns.
    func transaction(reachingDisk: Bool, in database: Database, _ body: () throws -> Void) throws(PushError) {
        let changes = database.totalChangesCount
        do {
            try database.run("PRAGMA synchronous = \(reachingDisk ? "FULL" : "NORMAL")")
            try database.inTransaction(.deferred) {
                try body()
                return .commit
            }
        } catch {
            let fault = Self.error(for: error, at: queue.path)
            health.transactionFailed(fault)
            throw fault
        }
        if database.totalChangesCount != changes { health.transactionWrote() }
    }

    // MARK: Messages

    /// The code that was reported to the server for a message; nil if the message has no such record.
    static func answer(to id: String, in database: Database) throws(PushError) -> Int? {
        do {
            return try Int.fetchOne(
                database.cachedStatement(sql: "SELECT code FROM handled WHERE id = ?"), arguments: [id])
        } catch {
            throw Self.error(for: error, at: fileName)
        }
    }

    /// The stored starts of the app's code for a firing.
    static func firingStarts(of id: String, in database: Database) throws(PushError) -> Int {
        do {
            return try Int.fetchOne(
                database.cachedStatement(sql: "SELECT starts FROM firing_start WHERE id = ?"), arguments: [id]) ?? 0
        } catch {
            throw Self.error(for: error, at: fileName)
        }
    }

    /// Whether the store has a message, which the app has not handled.
    static func isStored(_ position: Int64, in database: Database) throws(PushError) -> Bool {
        do {
            return try Int.fetchOne(
                database.cachedStatement(sql: "SELECT 1 FROM message WHERE position = ?"), arguments: [position]) != nil
        } catch {
            throw Self.error(for: error, at: fileName)
        }
    }

    /// Returns the messages of a channel behind a position, in order, up to one page.
    static func messages(
        of identifier: String, after position: Int64, in database: Database
    ) throws(PushError) -> [BufferedMessage] {
        do {
            let select = try database.cachedStatement(
                sql: "SELECT * FROM message WHERE channel = ? AND position > ? ORDER BY position LIMIT ?")
            return try Row.fetchAll(select, arguments: [identifier, position, ChannelReadQueue.pageLimit]).map { row in
                let coding = (row["encoding"] as String?).flatMap(ContentCoding.Name.init).map {
                    ContentCoding($0, encryption: row["encryption"], cryptoKey: row["crypto_key"])
                }
                return BufferedMessage(
                    position: row["position"], id: row["id"], body: Array(row["body"] as Data), coding: coding,
                    starts: row["starts"])
            }
        } catch {
            throw Self.error(for: error, at: fileName)
        }
    }

    // MARK: Opening

    private static func configuration(patience: Double) -> GRDB.Configuration {
        var configuration = GRDB.Configuration()
        configuration.label = "carillon.client.store"
        configuration.busyMode = .timeout(patience)
        return configuration
    }

    /// Makes the file if it does not exist, complete and readable only for its owner. SQLite makes its other files with the same
    /// mode.
    private static func makeFile(at path: String, in directory: String) throws {
        let files = FileManager.default
        if !files.fileExists(atPath: directory) {
            try files.createDirectory(
                atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        }
        if files.fileExists(atPath: path) {
            let size = try files.attributesOfItem(atPath: path)[.size] as? UInt64
            guard size != 0 else {
                throw PushError(
                    .storageDamaged,
                    "The file \(path) was emptied; restore it, or remove it with what lies beside it to begin as a new device."
                )
            }
            try files.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
            return
        }
        guard !files.fileExists(atPath: path + "-wal") else {
            throw PushError(
                .storageDamaged,
                "The file \(path) is missing, and what was written to it last lies beside it; restore it, or remove that as well."
            )
        }
        try makeNewFile(at: path)
    }

    private static func makeNewFile(at path: String) throws {
        let files = FileManager.default
        // The name is unique to this process, and the file becomes the store when it is complete.
        let draft = path + ".new-\(UUID().uuidString)"
        guard files.createFile(atPath: draft, contents: nil, attributes: [.posixPermissions: 0o600]) else {
            throw PushError(.storageUnavailable, "The file \(path) cannot be made; its directory must be writable.")
        }
        do {
            let queue = try DatabaseQueue(path: draft, configuration: configuration(patience: 1))
            try queue.writeWithoutTransaction { database in
                try database.execute(sql: "PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = FULL")
                try ClientSchema.create(database)
            }
            try queue.close()
            try files.moveItem(atPath: draft, toPath: path)
        } catch {
            try? files.removeItem(atPath: draft)
            // Another client made the store first.
            guard files.fileExists(atPath: path) else { throw error }
        }
    }

    private static func error(for fault: any Error, at path: String) -> PushError {
        if let fault = fault as? PushError { return fault }
        switch (fault as? DatabaseError)?.resultCode {
        case .SQLITE_NOTADB?, .SQLITE_CORRUPT?:
            return PushError(
                .storageDamaged,
                "The file \(path) is damaged or not a store of Carillon's client; it was left as it is.",
                cause: fault)
        case .SQLITE_BUSY?, .SQLITE_LOCKED?:
            return PushError(
                .storageInUse, "The file \(path) is open in another client; each needs a storage directory of its own.",
                cause: fault)
        case .SQLITE_FULL?:
            return PushError(.storageUnavailable, "The disk that holds \(path) is full.", cause: fault)
        default:
            return PushError(.storageUnavailable, "The file \(path) cannot be read or written.", cause: fault)
        }
    }
}
