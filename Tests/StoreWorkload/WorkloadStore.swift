import CarillonCore
import CarillonSQLite
import Foundation

/// A store that a workload runs on.
package struct WorkloadStore: Sendable {
    /// The stores that can be named in arguments.
    package enum Kind: String, CaseIterable, Sendable {
        case sqlite

        /// Opens the store that is kept in a directory, and makes it if there is none.
        package func open(_ directory: String) throws -> WorkloadStore {
            let settings = StoreSettings(inbox: InboxLimits(envelopes: 12))
            switch self {
            case .sqlite:
                // So few entries are gathered in memory that each run moves some to the table.
                let store = try SQLiteStore(directory: directory, settings: settings, indexCapacity: 16)
                return WorkloadStore(
                    store: store, close: { try store.close() }, damages: { try await store.damages() })
            }
        }

        /// Replaces what is in a place with a copy of a store that is closed.
        package func copy(_ directory: String, to place: String) throws {
            switch self {
            case .sqlite:
                if FileManager.default.fileExists(atPath: place) { try FileManager.default.removeItem(atPath: place) }
                try FileManager.default.copyItem(atPath: directory, toPath: place)
            }
        }
    }

    let store: any Store
    package let close: @Sendable () throws -> Void
    /// The number of damages that the store finds in itself, apart from ``ServerStore/checkHealth()``.
    private let damages: @Sendable () async throws -> Int64

    private init(
        store: any Store, close: @escaping @Sendable () throws -> Void, damages: @escaping @Sendable () async throws -> Int64
    ) {
        self.store = store
        self.close = close
        self.damages = damages
    }

    /// Whether the store's own checks pass.
    package func isSound() async throws -> Bool {
        try await store.checkHealth()
        return try await damages() == 0
    }

    /// What waits in the inboxes of all lanes.
    package func waitingInAll() async throws -> String { WorkloadFacts.text(of: try await store.waitingInAll()) }

    /// Creates the app of each lane.
    package func prepare() async throws {
        for lane in 0..<WorkloadOperation.lanes {
            _ = try await store.createApp(WorkloadLane.appID(of: lane), at: WorkloadOperation.start)
        }
    }
}

extension SQLiteStore {
    fileprivate func damages() async throws -> Int64 {
        try await numbers(
            """
            SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'
            UNION ALL SELECT count(*) FROM pragma_foreign_key_check
            """
        ).reduce(0, +)
    }
}
