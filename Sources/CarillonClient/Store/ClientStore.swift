import CarillonWire
import GRDB

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The client's durable state: one SQLite file, one transaction a step.
///
/// The file is in WAL mode. A step that changes the identity or a channel waits for the disk (`synchronous=FULL`): a
/// token that the app was told must survive the loss of power. A step that only notes a handled message does not wait
/// (`NORMAL`): the note survives the end of the process, and after a loss of power the message may be shown once more,
/// which delivery at least once allows.
///
/// The lock on the file is exclusive, because each client keeps the truth in memory beside it.
final class ClientStore: Sendable {
    static let fileName = "carillon-client.sqlite"
    /// How many handled ids are remembered.
    static let handledLimit = 10_000

    private let queue: DatabaseQueue

    /// Opens the store, and makes it where there is none.
    init(directory: String) throws(PushError) {
        let path = URL(fileURLWithPath: directory, isDirectory: true).appendingPathComponent(Self.fileName).path
        do {
            try Self.makeFile(at: path, in: directory)
            queue = try DatabaseQueue(path: path, configuration: Self.configuration)
            try queue.writeWithoutTransaction { database in
                try database.execute(sql: "PRAGMA locking_mode = EXCLUSIVE")
                try ClientSchema.prepare(database)
                // Takes the lock now, where the fault can be told to whoever opens the store.
                try database.inTransaction(.immediate) { .commit }
            }
        } catch {
            throw Self.error(for: error, at: path)
        }
    }

    /// Reads what the last run left, and checks that it was left by the same app under the same server.
    func load(server: String, app: String) throws(PushError) -> StoredState {
        do {
            return try queue.write { database in
                try StoredState.load(from: database, server: server, app: app)
            }
        } catch let error as PushError {
            throw error
        } catch {
            throw Self.error(for: error, at: queue.path)
        }
    }

    /// Runs one step in its turn. Steps run one at a time, in the order of the calls, away from the caller's thread.
    func schedule(_ step: @escaping @Sendable (Database) -> Void) {
        queue.asyncWriteWithoutTransaction(step)
    }

    /// Makes the changes of one step durable, all or none.
    func commit(_ changes: [StoreChange], in database: Database) throws(PushError) {
        guard !changes.isEmpty else { return }
        do {
            let level = changes.contains(where: \.mustReachDisk) ? "FULL" : "NORMAL"
            try database.execute(sql: "PRAGMA synchronous = \(level)")
            try database.inTransaction(.immediate) {
                for change in changes { try change.apply(to: database) }
                return .commit
            }
        } catch {
            throw Self.error(for: error, at: queue.path)
        }
    }

    /// What the app said of a message before; nil when it never had it.
    static func handledCode(of id: String, in database: Database) throws(PushError) -> Int? {
        do {
            return try Int.fetchOne(
                database.cachedStatement(sql: "SELECT code FROM handled WHERE id = ?"), arguments: [id])
        } catch {
            throw Self.error(for: error, at: fileName)
        }
    }

    // MARK: Opening

    private static var configuration: GRDB.Configuration {
        var configuration = GRDB.Configuration()
        configuration.label = "carillon.client.store"
        // A client that is just ending gets a moment to let go.
        configuration.busyMode = .timeout(1)
        return configuration
    }

    /// Makes the file before SQLite does, readable for its owner only; the files that SQLite puts beside it take over
    /// its mode.
    private static func makeFile(at path: String, in directory: String) throws {
        let files = FileManager.default
        if !files.fileExists(atPath: directory) {
            try files.createDirectory(
                atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        }
        if files.fileExists(atPath: path) {
            try files.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        } else if !files.createFile(atPath: path, contents: nil, attributes: [.posixPermissions: 0o600]) {
            throw PushError(.storageUnavailable, "The file \(path) cannot be made; its directory must be writable.")
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
