import CarillonCore
import CarillonSQLite
import CarillonWire
import StoreConformance
import TestSupport

/// The stores that the conformance suite runs over.
enum StoreKind: CaseIterable, StoreMaker {
    case memory
    case file
    /// What is gathered in memory is on its way to the table all the time.
    case moving

    func open(_ settings: StoreSettings) throws -> any Store {
        switch self {
        case .memory: try SQLiteStore(inMemory: settings)
        case .file: try SQLiteStore(directory: TemporaryDirectory.make(), settings: settings)
        case .moving: try SQLiteStore(directory: TemporaryDirectory.make(), settings: settings, indexCapacity: 2)
        }
    }

    func reopen(_ store: any Store, _ settings: StoreSettings) throws -> (any Store)? {
        guard let store = store as? SQLiteStore, let directory = store.directory else { return nil }
        try store.close()
        return switch self {
        case .memory: nil
        case .file: try SQLiteStore(directory: directory, settings: settings)
        case .moving: try SQLiteStore(directory: directory, settings: settings, indexCapacity: 2)
        }
    }

    func restore(_ store: any Store, _ settings: StoreSettings) async throws -> (any Store)? {
        guard let directory = Self.sqlite(store).directory else { return nil }
        let place = try TemporaryDirectory.make()
        try await StoreBackup.make(of: directory, at: place + "/backup")
        try await StoreBackup.restore(place + "/backup", to: place + "/restored", at: StoreFixture.start)
        return try SQLiteStore(directory: place + "/restored", settings: settings)
    }

    func refuseChanges(of store: any Store, with fault: StoreFault?) { Self.sqlite(store).refuseCommits(fault) }

    func onCommit(of store: any Store, _ work: (@Sendable () -> Void)?) { Self.sqlite(store).onCommit(work) }

    func makeUnreadable(_ watch: WatchSerial, in store: any Store) async throws {
        try await Self.sqlite(store).run("UPDATE watch SET ping_address = 'none' WHERE serial = \(watch.rawValue)")
    }

    static func sqlite(_ store: any Store) -> SQLiteStore {
        guard let store = store as? SQLiteStore else { preconditionFailure("a store of another kind") }
        return store
    }
}

extension StoreFixture {
    init(_ kind: StoreKind, _ limits: InboxLimits = .init()) async throws {
        try await self.init(kind as any StoreMaker, limits)
    }

    var sqlite: SQLiteStore { StoreKind.sqlite(store) }
}

extension WatchFixture {
    init(_ kind: StoreKind, callbacks: CallbackLimits = .init()) async throws {
        try await self.init(kind as any StoreMaker, callbacks: callbacks)
    }

    var sqlite: SQLiteStore { base.sqlite }
}
