import CarillonCore

/// Reads the number of hand-overs that are not applied, and measures the waiting time of the oldest.
struct HandOverStatistics: Sendable {
    let store: any HandOverStore
    let age: HandOverAge
    /// The largest number that is counted, so that reading stays short.
    static let mostCounted = 10_000

    init(store: any HandOverStore, ticks: TickSource) {
        self.store = store
        age = HandOverAge(ticks: ticks)
    }

    /// Returns no samples if the store cannot be read.
    func samples(in shards: ShardSet) async -> [MetricsRegistry.Sample] {
        guard let waiting = try? await store.waitingHandOvers(in: shards, limit: Self.mostCounted) else { return [] }
        return [
            .init(.handOversWaiting, value: Double(waiting.count)),
            .init(.handOversOldest, value: age.seconds(ofFirst: waiting.first)),
        ]
    }
}
