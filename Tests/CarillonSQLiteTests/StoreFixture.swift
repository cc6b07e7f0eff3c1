import CarillonCore
import CarillonSQLite
import StoreConformance
import TestStores

extension StoreFixture {
    init(_ stores: SQLiteStores, _ limits: InboxLimits = .init()) async throws {
        try await self.init(stores as any StoreMaker, limits)
    }

    var sqlite: SQLiteStore { SQLiteStores.sqlite(store) }
}

extension WatchFixture {
    init(_ stores: SQLiteStores, callbacks: CallbackLimits = .init()) async throws {
        try await self.init(stores as any StoreMaker, callbacks: callbacks)
    }

    var sqlite: SQLiteStore { base.sqlite }
}
