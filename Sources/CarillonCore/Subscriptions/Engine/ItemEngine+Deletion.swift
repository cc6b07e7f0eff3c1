import Logging

/// Deletes items between two of their updates.
extension ItemEngine {
    /// Deletes an item. Updates that were accepted before the call are written first. Updates that are accepted later create the
    /// item again.
    ///
    /// - Parameter moment: Deletes the item only if its last update is not later than this moment and the item has no
    ///   subscription; nil deletes it in any case.
    /// - Returns: Whether the item was deleted.
    package func delete(_ key: ItemKey, ifIdleSince moment: Timestamp? = nil) async throws -> Bool {
        // Each home searches for idle items, and deletes those of its own shards.
        guard moment == nil || home.isOpen(key.shard) else { return false }
        // An item without a row is not loaded, because it may have a million subscriptions.
        if items[key] == nil, loading[key] == nil, try await store.item(key) == nil { return false }
        let item = try await item(key)
        guard item.hasRoomForDeletion else {
            guard moment == nil else { return false }
            throw Self.busy
        }
        return try await withCheckedThrowingContinuation { continuation in
            let answer: WatchedItem.DeletionAnswer = { continuation.resume(with: $0) }
            item.enqueue(.delete(ifIdleSince: moment, answer))
            drain(item)
        }
    }

    func delete(
        _ item: WatchedItem, ifIdleSince moment: Timestamp?, answer: @escaping WatchedItem.DeletionAnswer
    ) async {
        guard !item.isGone else { return await carryOver([.delete(ifIdleSince: moment, answer)], to: item.key) }
        guard item.stored.version > 0 else { return answer(.success(false)) }
        do {
            guard try await store.deleteItem(item.key, ifIdleSince: moment) else { return answer(.success(false)) }
        } catch {
            return answer(.failure(error))
        }
        item.stored = StoredItem(state: ItemState(.merge))
        do {
            try await resetSubscriptions(on: item.key, all: true)
        } catch {
            logger.error(
                "cannot reset subscriptions on deleted item; retrying when it is loaded",
                metadata: ["app": "\(item.key.app.rawValue)", "item": "\(item.key.name)", "reason": "\(error)"])
        }
        forget(item)
        let rest = item.takeRest()
        answer(.success(true))
        await carryOver(rest, to: item.key)
    }

    /// Resets the subscriptions on an item that has no row, as before its first update, and drops their throttled firings.
    func resetSubscriptions(on key: ItemKey, all: Bool) async throws {
        var last: SubscriptionSerial? = SubscriptionSerial(0)
        while let start = last {
            last = try await store.resetSubscriptions(on: key, after: start, limit: Self.resetAtOnce, all: all)
        }
    }

    private static let resetAtOnce = 2000

    /// Queues work on the item that replaces a deleted item, before any other work.
    private func carryOver(_ work: [WatchedItem.Work], to key: ItemKey) async {
        guard !work.isEmpty else { return }
        carriedOver[key, default: []] += work
        do {
            _ = try await item(key)
        } catch {
            for work in carriedOver.removeValue(forKey: key) ?? [] {
                switch work {
                case .update(let update, _, let answer):
                    leave(update, of: key.app)
                    answer(.failure(error))
                case .delete(_, let answer): answer(.failure(error))
                case .look, .rearm: break
                }
            }
        }
    }
}
