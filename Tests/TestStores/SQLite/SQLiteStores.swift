import CarillonCore
import CarillonSQLite
import Foundation
import TestSupport

/// Stores in SQLite: in memory, or in a directory.
struct SQLiteStores: ServerStoreMaker {
    var factory: any StoreFactory { SQLiteStoreFactory() }

    func open(_ settings: StoreSettings) throws -> any Store { try SQLiteStore(inMemory: settings) }

    func openKept(_ settings: StoreSettings) throws -> any Store {
        try SQLiteStore(directory: TemporaryDirectory.make(), settings: settings)
    }

    func close(_ store: any Store) throws { try Self.sqlite(store).close() }

    func reopen(_ closed: any Store, _ settings: StoreSettings) throws -> any Store {
        try SQLiteStore(directory: Self.directory(of: closed), settings: settings)
    }

    // MARK: Copies

    func copy(_ store: any Store) throws -> StoreCopy {
        let (source, target) = (Self.directory(of: store), try TemporaryDirectory.make())
        for file in try FileManager.default.contentsOfDirectory(atPath: source)
        where file.contains(".db") || file.contains(".sqlite") {
            try FileManager.default.copyItem(atPath: "\(source)/\(file)", toPath: "\(target)/\(file)")
        }
        return StoreCopy(place: target)
    }

    func openCopy(_ copy: StoreCopy) throws -> any Store { try SQLiteStore(directory: copy.place) }

    func backUp(_ store: any Store) async throws -> StoreCopy {
        let path = try TemporaryDirectory.make() + "/backup"
        try await factory.backUp(Self.directory(of: store), to: path)
        return StoreCopy(place: path)
    }

    func restore(_ backup: StoreCopy, holdsUpdates: Bool, at now: Timestamp, _ settings: StoreSettings)
        async throws -> RestoredStore
    {
        let directory = try TemporaryDirectory.make() + "/restored"
        let updates = try await factory.restore(backup.place, to: directory, holdsUpdates: holdsUpdates, at: now)
        return RestoredStore(try SQLiteStore(directory: directory, settings: settings), updates)
    }

    // MARK: Faults

    func onCommit(of store: any Store, _ work: (@Sendable () -> Void)?) { Self.sqlite(store).onCommit(work) }

    func refuseChanges(of store: any Store, with fault: StoreFault?) { Self.sqlite(store).refuseCommits(fault) }

    func fillDisk(of store: any Store) async throws { try await Self.sqlite(store).limitPages(toUsedPlus: 0) }

    func freeDisk(of store: any Store) async throws {
        try await Self.sqlite(store).limitPages(toUsedPlus: 100_000)
    }

    func refuse(_ change: RefusedChange, in store: any Store) async throws {
        let event =
            switch change {
            case .itemUpdate: "UPDATE ON item"
            case .firing: "INSERT ON firing"
            case .firstDelivery: "UPDATE OF last_firing ON subscription_item WHEN new.last_firing = 1"
            }
        try await run("CREATE TRIGGER refuse_\(change) BEFORE \(event) BEGIN SELECT raise(ABORT, 'no'); END", in: store)
    }

    func allow(_ change: RefusedChange, in store: any Store) async throws {
        try await run("DROP TRIGGER refuse_\(change)", in: store)
    }

    // MARK: Rows

    func count(_ rows: StoredRows, in store: any Store) async throws -> Int {
        try await Self.sqlite(store).rowCount(of: rows.table)
    }

    func makeUnreadable(_ rows: StoredRows, in store: any Store) async throws {
        try await run("ALTER TABLE \(rows.table) RENAME TO gone", in: store)
    }

    func makeReadable(_ rows: StoredRows, in store: any Store) async throws {
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

    static func sqlite(_ store: any Store) -> SQLiteStore {
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
        case .heldFirings: "held_firing"
        case .updates: "audience_update"
        case .bindings: "binding"
        case .completions: "completion"
        case .auditEntries: "update_audit"
        case .serviceProviders: "service_provider"
        case .serviceRequests: "service_request"
        case .attachments: "attachment"
        case .attachmentTotals: "attachment_total"
        }
    }
}
