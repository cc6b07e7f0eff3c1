public import CarillonClient
public import Foundation
import GRDB

/// Where an app's content comes from. In an app, its own server's client.
public protocol ContentSource: Sendable {
    /// The texts of all objects, or of one with what is below and above it.
    func objects(_ change: PushUpdate.Content) async throws -> [String: String]
    func definitions() async throws -> String
    /// Takes changed objects.
    func commit(_ edits: [String: String]) async -> CommitOutcome
    func file(of attachment: PushUpdate.Attachment) async throws -> Data
}

/// An app's content in one SQLite file: objects, the user's edits beside them, and the effects of updates. What an update does and the note
/// that it did are one transaction, so that a kill between the two is none.
public final class SQLiteContent: ContentStore {
    private let database: DatabaseQueue
    private let source: any ContentSource
    private let listeners = Listeners()

    /// Opens the file, and makes it where there is none.
    public init(path: String, source: any ContentSource) throws {
        self.source = source
        var configuration = Configuration()
        configuration.prepareDatabase { db in try db.execute(sql: "PRAGMA synchronous = FULL") }
        database = try DatabaseQueue(path: path, configuration: configuration)
        try database.write { db in
            try db.execute(
                sql: """
                    CREATE TABLE IF NOT EXISTS object (
                        name TEXT PRIMARY KEY, text TEXT NOT NULL, is_removed INTEGER NOT NULL DEFAULT 0
                    ) STRICT;
                    CREATE TABLE IF NOT EXISTS edit (name TEXT PRIMARY KEY, text TEXT NOT NULL) STRICT;
                    CREATE TABLE IF NOT EXISTS effect (name TEXT PRIMARY KEY) STRICT;
                    CREATE TABLE IF NOT EXISTS state (
                        id INTEGER PRIMARY KEY CHECK (id = 1), mode TEXT NOT NULL, revision INTEGER NOT NULL,
                        definitions TEXT NOT NULL, replacements INTEGER NOT NULL
                    ) STRICT;
                    INSERT OR IGNORE INTO state VALUES (1, 'manual', 1, '', 0);
                    """)
        }
    }

    // MARK: The app's own view

    /// The objects with their texts: the user's where he edited them.
    public func objects() async throws -> [String: String] {
        try await texts("SELECT name, coalesce((SELECT text FROM edit WHERE edit.name = object.name), text) FROM object")
    }

    /// Objects that the server removed while the user had edits of them.
    public func removedObjects() async throws -> Set<String> {
        Set(try await texts("SELECT name, text FROM object WHERE is_removed").keys)
    }

    /// What the user changed, and did not commit.
    public func edits() async throws -> [String: String] { try await texts("SELECT name, text FROM edit") }

    /// How often the definitions were replaced.
    public func replacements() async throws -> Int {
        try await database.read { try Int.fetchOne($0, sql: "SELECT replacements FROM state") ?? 0 }
    }

    /// The user changes an object.
    public func edit(_ object: String, to text: String) async throws {
        try await database.write { db in
            try db.execute(
                sql: "INSERT INTO edit VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET text = excluded.text",
                arguments: [object, text])
            try db.execute(sql: "UPDATE state SET revision = revision + 1")
        }
    }

    /// The user chooses a mode.
    public func choose(_ mode: SyncMode) async throws {
        try await setMode(mode)
        await listeners.notify(.modeChanged(mode))
    }

    /// The user commits.
    public func commitByHand() async -> CommitOutcome {
        let outcome = await commit()
        if outcome == .committed { await listeners.notify(.committed) }
        return outcome
    }

    private func texts(_ sql: String) async throws -> [String: String] {
        try await database.read { db in
            Dictionary(uniqueKeysWithValues: try Row.fetchAll(db, sql: sql).map { ($0[0] as String, $0[1] as String) })
        }
    }

    // MARK: ContentStore

    public func mode() async throws -> SyncMode {
        let name = try await database.read { try String.fetchOne($0, sql: "SELECT mode FROM state") }
        return name.flatMap(SyncMode.init) ?? .manual
    }

    public func setMode(_ mode: SyncMode) async throws {
        try await database.write { try $0.execute(sql: "UPDATE state SET mode = ?", arguments: [mode.rawValue]) }
    }

    public func uncommittedChanges() async throws -> UncommittedChanges {
        try await database.read { db in
            UncommittedChanges(
                isEmpty: try Row.fetchOne(db, sql: "SELECT 1 FROM edit") == nil,
                revision: try Int64.fetchOne(db, sql: "SELECT revision FROM state") ?? 0)
        }
    }

    public func commit() async -> CommitOutcome {
        do {
            let edits = try await edits()
            guard !edits.isEmpty else { return .committed }
            let outcome = await source.commit(edits)
            guard outcome == .committed else { return outcome }
            try await database.write { db in
                for (name, text) in edits {
                    try db.execute(
                        sql: """
                            INSERT INTO object (name, text) VALUES (?, ?)
                            ON CONFLICT (name) DO UPDATE SET text = excluded.text, is_removed = 0
                            """, arguments: [name, text])
                    // What was edited again meanwhile stays.
                    try db.execute(sql: "DELETE FROM edit WHERE name = ? AND text = ?", arguments: [name, text])
                }
                try db.execute(sql: "UPDATE state SET revision = revision + 1")
            }
            return .committed
        } catch {
            return .unknown
        }
    }

    public func hasApplied(_ effect: UpdateEffect) async throws -> Bool {
        try await database.read { db in
            try Row.fetchOne(db, sql: "SELECT 1 FROM effect WHERE name = ?", arguments: [effect.name]) != nil
        }
    }

    public func apply(_ content: PushUpdate.Content, as effect: UpdateEffect) async throws {
        if case .remove(let object) = content {
            return try await make(effect) { db in
                try db.execute(
                    sql: "UPDATE object SET is_removed = 1 WHERE name = ? AND name IN (SELECT name FROM edit)",
                    arguments: [object])
                try db.execute(
                    sql: "DELETE FROM object WHERE name = ? AND name NOT IN (SELECT name FROM edit)", arguments: [object])
            }
        }
        let fetched = try await source.objects(content)
        try await make(effect) { db in
            for (name, text) in fetched {
                try db.execute(
                    sql: """
                        INSERT INTO object (name, text) VALUES (?, ?)
                        ON CONFLICT (name) DO UPDATE SET text = excluded.text, is_removed = 0
                        """, arguments: [name, text])
            }
        }
    }

    public func replaceDefinitions(unlessEditedSince revision: Int64, as effect: UpdateEffect) async throws
        -> DefinitionsOutcome
    {
        let definitions = try await source.definitions()
        return try await database.write { db in
            guard try Int64.fetchOne(db, sql: "SELECT revision FROM state") == revision else { return .dirtied }
            try db.execute(
                sql: "UPDATE state SET definitions = ?, replacements = replacements + 1", arguments: [definitions])
            try db.execute(sql: "INSERT OR IGNORE INTO effect VALUES (?)", arguments: [effect.name])
            return .replaced
        }
    }

    public func cancelPreparing() async throws {
        try await database.write { try $0.execute(sql: "UPDATE state SET mode = 'manual' WHERE mode = 'preparing'") }
    }

    public func download(_ attachment: PushUpdate.Attachment, progress: @escaping @Sendable (Double) -> Void) async throws {
        _ = try await source.file(of: attachment)
        progress(1)
    }

    public func forget(_ effects: [UpdateEffect]) async {
        // One that stays is in nobody's way.
        try? await database.write { db in
            for effect in effects { try db.execute(sql: "DELETE FROM effect WHERE name = ?", arguments: [effect.name]) }
        }
    }

    public func events() async -> AsyncStream<ContentEvent> { await listeners.add() }

    private func make(_ effect: UpdateEffect, _ body: @escaping @Sendable (Database) throws -> Void) async throws {
        try await database.write { db in
            try body(db)
            try db.execute(sql: "INSERT OR IGNORE INTO effect VALUES (?)", arguments: [effect.name])
        }
    }
}

/// Who hears of what the user does.
private actor Listeners {
    private var listeners: [AsyncStream<ContentEvent>.Continuation] = []

    func add() -> AsyncStream<ContentEvent> {
        let (stream, listener) = AsyncStream.makeStream(of: ContentEvent.self)
        listeners.append(listener)
        return stream
    }

    func notify(_ event: ContentEvent) {
        listeners.removeAll { listener in
            if case .terminated = listener.yield(event) { true } else { false }
        }
    }
}
