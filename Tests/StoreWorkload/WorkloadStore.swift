import CarillonCore
package import TestStores

/// A store that a workload runs on.
package struct WorkloadStore: Sendable {
    let store: any Store
    private let maker: any StoreMaker

    /// Opens the store of a place, and makes it if there is none.
    package init(at place: String, of maker: any StoreMaker) async throws {
        self.maker = maker
        store = try await maker.open(at: place, StoreSettings(inbox: InboxLimits(envelopes: 12)))
    }

    package func close() async throws { try await maker.close(store) }

    /// Whether the store's own checks pass.
    package func isSound() async throws -> Bool {
        try await store.checkHealth()
        return try await maker.countDamages(in: store) == 0
    }

    /// The numbers that the store keeps of its rows and that differ from the rows. No change may be under way.
    package func wrongCounters() async throws -> [String] { try await maker.wrongCounters(in: store) }

    /// The waiting envelopes in the inboxes of all tracks.
    package func waitingInAll() async throws -> String { WorkloadFacts.text(of: try await store.waitingInAll()) }

    /// Creates the app of each track.
    package func prepare() async throws {
        for track in 0..<WorkloadOperation.tracks {
            _ = try await store.createApp(WorkloadTrack.appID(of: track), at: WorkloadOperation.start)
        }
    }
}
