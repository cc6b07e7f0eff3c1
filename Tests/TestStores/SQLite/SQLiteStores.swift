package import CarillonCore
package import CarillonSQLite
import Foundation
import TestSupport

/// Stores in SQLite: in memory, or in a directory.
package struct SQLiteStores: StoreMaker, CustomStringConvertible {
    package let description: String
    private let isInMemory: Bool
    private let indexCapacity: Int

    private init(_ description: String, isInMemory: Bool = false, indexCapacity: Int = SQLiteStore.indexCapacity) {
        self.description = description
        self.isInMemory = isInMemory
        self.indexCapacity = indexCapacity
    }

    package static let memory = SQLiteStores("memory", isInMemory: true)
    package static let file = SQLiteStores("file")
    /// Entries that are collected in memory are written to the table continuously.
    package static let moving = SQLiteStores("moving", indexCapacity: 2)
    /// So few entries are gathered in memory that a short run moves some to the table.
    package static let gathering = SQLiteStores("gathering", indexCapacity: 16)
    /// The makers that the conformance suite runs over.
    package static let all = [memory, file, moving]

    package var factory: any StoreFactory { SQLiteStoreFactory() }

    package func open(_ settings: StoreSettings) throws -> any Store {
        guard isInMemory else { return try openKept(settings) }
        return try SQLiteStore(inMemory: settings, indexCapacity: indexCapacity)
    }

    package func openKept(_ settings: StoreSettings) throws -> any Store {
        try open(at: TemporaryDirectory.make(), settings)
    }

    package func open(at place: String, _ settings: StoreSettings) throws -> any Store {
        try SQLiteStore(directory: place, settings: settings, indexCapacity: indexCapacity)
    }

    package func place(of store: any Store) -> String? { Self.sqlite(store).directory }

    package func close(_ store: any Store) throws { try Self.sqlite(store).close() }

    // MARK: Copies

    package func copy(_ store: any Store) throws -> StoreCopy {
        let (source, target) = (Self.directory(of: store), try TemporaryDirectory.make())
        for file in try FileManager.default.contentsOfDirectory(atPath: source)
        where file.contains(".db") || file.contains(".sqlite") {
            try FileManager.default.copyItem(atPath: "\(source)/\(file)", toPath: "\(target)/\(file)")
        }
        return StoreCopy(place: target)
    }

    package func copy(_ place: String, to other: String) throws {
        if FileManager.default.fileExists(atPath: other) { try FileManager.default.removeItem(atPath: other) }
        try FileManager.default.copyItem(atPath: place, toPath: other)
    }

    package func backUp(_ store: any Store) async throws -> StoreCopy {
        let path = try TemporaryDirectory.make() + "/backup"
        try await factory.backUp(Self.directory(of: store), to: path)
        return StoreCopy(place: path)
    }

    package func restore(_ backup: StoreCopy, holdsUpdates: Bool, at now: Timestamp, _ settings: StoreSettings)
        async throws -> RestoredStore
    {
        let directory = try TemporaryDirectory.make() + "/restored"
        let updates = try await factory.restore(backup.place, to: directory, holdsUpdates: holdsUpdates, at: now)
        return RestoredStore(try open(at: directory, settings), updates)
    }

    // MARK: Faults

    package func onCommit(of store: any Store, _ work: (@Sendable () -> Void)?) { Self.sqlite(store).onCommit(work) }

    package func refuseChanges(of store: any Store, with fault: StoreFault?) { Self.sqlite(store).refuseCommits(fault) }

    package func fillDisk(of store: any Store) async throws { try await Self.sqlite(store).limitPages(toUsedPlus: 0) }

    package func freeDisk(of store: any Store) async throws {
        try await Self.sqlite(store).limitPages(toUsedPlus: 100_000)
    }

    package func refuse(_ change: RefusedChange, in store: any Store) async throws {
        let event =
            switch change {
            case .itemUpdate: "UPDATE ON item"
            case .firing: "INSERT ON firing"
            case .firstDelivery: "UPDATE OF last_firing ON subscription_item WHEN new.last_firing = 1"
            }
        try await run("CREATE TRIGGER refuse_\(change) BEFORE \(event) BEGIN SELECT raise(ABORT, 'no'); END", in: store)
    }

    package func allow(_ change: RefusedChange, in store: any Store) async throws {
        try await run("DROP TRIGGER refuse_\(change)", in: store)
    }

    // MARK: Rows

    package func countDamages(in store: any Store) async throws -> Int {
        let counts = try await numbers(
            """
            SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'
            UNION ALL SELECT count(*) FROM pragma_foreign_key_check
            """, in: store)
        return Int(counts.reduce(0, +))
    }

    package func count(_ rows: StoredRows, in store: any Store) async throws -> Int {
        try await Self.sqlite(store).rowCount(of: rows.table)
    }

    package func makeUnreadable(_ rows: StoredRows, in store: any Store) async throws {
        try await run("ALTER TABLE \(rows.table) RENAME TO gone", in: store)
    }

    package func makeReadable(_ rows: StoredRows, in store: any Store) async throws {
        try await run("ALTER TABLE gone RENAME TO \(rows.table)", in: store)
    }

    // MARK: SQL

    func run(_ sql: String, in store: any Store) async throws { try await Self.sqlite(store).run(sql) }

    func numbers(_ sql: String, in store: any Store) async throws -> [Int64] {
        try await Self.sqlite(store).numbers(sql)
    }

    /// The only number that a statement selects.
    func number(_ sql: String, in store: any Store) async throws -> Int {
        Int(try await numbers(sql, in: store).first ?? -1)
    }

    /// How many rows of a table there are, where a condition is true.
    func count(_ table: String, where condition: String, in store: any Store) async throws -> Int {
        try await number("SELECT count(*) FROM \(table) WHERE \(condition)", in: store)
    }

    /// The text as SQL; NULL for nil.
    static func literal(_ text: String?) -> String {
        text.map { "'" + $0.replacing("'", with: "''") + "'" } ?? "NULL"
    }

    package static func sqlite(_ store: any Store) -> SQLiteStore {
        guard let store = store as? SQLiteStore else { preconditionFailure("The store is of another kind.") }
        return store
    }

    private static func directory(of store: any Store) -> String {
        guard let directory = sqlite(store).directory else { preconditionFailure("The store is in memory.") }
        return directory
    }
}

extension StoredRows {
    var table: String {
        switch self {
        case .apps: "app"
        case .accessKeys: "access_key"
        case .registrations: "registration"
        case .devices: "device"
        case .deviceProfiles: "device_profile"
        case .channels: "channel"
        case .watches: "watch"
        case .disconnectCallbacks: "disconnect_callback"
        case .envelopes: "envelope"
        case .sharedBodies: "shared_content"
        case .wakes: "wake"
        case .pushes: "push"
        case .keptPushes: "kept_push"
        case .items: "item"
        case .conditionShapes: "condition_shape"
        case .subscriptions: "subscription"
        case .watchedItems: "subscription_item"
        case .handOvers: "hand_over"
        case .firings: "firing"
        case .throttledFirings: "held_firing"
        case .updates: "audience_update"
        case .bindings: "binding"
        case .completions: "completion"
        case .auditEntries: "update_audit"
        case .serviceProviders: "service_provider"
        case .serviceRequests: "service_request"
        case .attachments: "attachment"
        }
    }
}
