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
}

extension StoreFixture {
    init(_ kind: StoreKind, _ limits: InboxLimits = .init()) async throws {
        try await self.init(kind as any StoreMaker, limits)
    }

    var sqlite: SQLiteStore {
        guard let store = store as? SQLiteStore else { preconditionFailure("a store of another kind") }
        return store
    }
}

extension WatchFixture {
    init(_ kind: StoreKind, callbacks: CallbackLimits = .init()) async throws {
        try await self.init(kind as any StoreMaker, callbacks: callbacks)
    }

    var sqlite: SQLiteStore { base.sqlite }
}
