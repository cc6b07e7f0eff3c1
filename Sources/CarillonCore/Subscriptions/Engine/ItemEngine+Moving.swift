/// Moves the items of a shard from one home to another.
extension ItemEngine {
    /// Removes the items of a shard that the home has closed from memory. Waits until no work on them is in progress.
    ///
    /// - Returns: False if work is still in progress after the time. Removed items are loaded again when they are used.
    package func release(_ shard: Shard, atMost time: Duration) async -> Bool {
        let end = ContinuousClock.now + time
        while isBusy(with: shard) {
            guard ContinuousClock.now < end, !Task.isCancelled else { return false }
            try? await Task.sleep(for: Self.checkInterval)
        }
        for item in items.values where item.key.shard == shard { forget(item) }
        return true
    }

    private static let checkInterval = Duration.milliseconds(2)

    private func isBusy(with shard: Shard) -> Bool {
        handOverShards.contains(shard) || restTellers.keys.contains { $0.shard == shard }
            || loading.keys.contains { $0.shard == shard } || carriedOver.keys.contains { $0.shard == shard }
            || items.values.contains { $0.key.shard == shard && !$0.isIdle }
    }

    /// Notes that the home has a further shard. ``evaluateTaken()`` evaluates its subscriptions.
    package func took(_ shard: Shard) { taken.insert(shard) }

    /// Does for shards that the home took the work that ``checkNeverFired(in:)`` does after a start. The former home may not
    /// have evaluated a subscription that changed during the move.
    package func evaluateTaken() async throws {
        let shards = taken
        guard shards != .none else { return }
        taken = .none
        do {
            try await checkNeverFired(in: shards)
        } catch {
            for shard in shards.shards { taken.insert(shard) }
            throw error
        }
    }

    static let isElsewhere = StoreFault(.unreachable, "another home has the item, or the item is moving")
}

extension ItemKey {
    /// The shard whose home has the item.
    var shard: Shard { Shard(of: app, item: name.text) }
}
