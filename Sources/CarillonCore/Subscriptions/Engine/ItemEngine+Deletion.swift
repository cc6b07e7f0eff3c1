/// Items are deleted between two of their updates.
extension ItemEngine {
    /// Deletes an item. Updates that were accepted before are written first; those that were accepted later make the item anew.
    ///
    /// - Parameter moment: Deletes it only if its last update came by then, and it has no subscription; nil deletes it in any case.
    /// - Returns: Whether it was deleted.
    package func delete(_ key: ItemKey, ifIdleSince moment: Timestamp? = nil) async throws -> Bool {
        let item = try await item(key)
        return try await withCheckedThrowingContinuation { continuation in
            let answer: WatchedItem.DeletionAnswer = { continuation.resume(with: $0) }
            item.enqueue(.delete(ifIdleSince: moment, answer))
            drain(item)
        }
    }

    func delete(
        _ item: WatchedItem, ifIdleSince moment: Timestamp?, answer: WatchedItem.DeletionAnswer
    ) async {
        // Another one stands for the item by now.
        guard !item.isGone else { return answer(.failure(Self.busy)) }
        do {
            guard try await deleteRows(of: item.key, ifIdleSince: moment) else { return answer(.success(false)) }
        } catch {
            return answer(.failure(error))
        }
        forget(item)
        let rest = item.takeRest()
        answer(.success(true))
        await carryOver(rest, to: item.key)
    }

    private func deleteRows(of key: ItemKey, ifIdleSince moment: Timestamp?) async throws -> Bool {
        if moment == nil {
            var last: SubscriptionSerial? = SubscriptionSerial(0)
            while let start = last {
                last = try await store.prepareDeletion(of: key, after: start, limit: Self.preparedAtOnce)
            }
        }
        return try await store.deleteItem(key, ifIdleSince: moment)
    }

    private static let preparedAtOnce = 2000

    /// Gives work to the item that follows a deleted one. It is there when that is loaded, before any other work.
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
                case .look: break
                }
            }
        }
    }
}
