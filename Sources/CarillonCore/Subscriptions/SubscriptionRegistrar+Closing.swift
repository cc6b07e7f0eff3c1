import Metrics

/// Rules close items: the subscriptions on them end.
extension SubscriptionRegistrar {
    /// Sets what an app says of its items, and ends the subscriptions on items that are not open by these rules.
    ///
    /// - Returns: The number of subscriptions that it ended.
    package func setRules(_ rules: ItemRules, of app: AppSerial) async throws -> Int {
        try await items.setRules(rules, of: app)
        let count = try await closed(by: rules, of: app) { try await store.endSubscriptions($0) }
        guard count > 0 else { return 0 }
        ServerMetric.subscriptionsClosed.counter().increment(by: count)
        try await removeEnded()
        return count
    }

    /// Counts the subscriptions that ``setRules(_:of:)`` would end.
    package func countClosed(by rules: ItemRules, of app: AppSerial) async throws -> Int {
        try await closed(by: rules, of: app) { $0.count }
    }

    /// - Parameter take: Takes some subscriptions with a closed item. Each subscription is taken once.
    private func closed(
        by rules: ItemRules, of app: AppSerial, _ take: ([SubscriptionSerial]) async throws -> Int
    ) async throws -> Int {
        var count = 0
        var place = ""
        while true {
            let names = try await store.subscribedItems(of: app, after: place, limit: Self.atOnce)
            for name in names where !rules.rule(for: name).isOpen {
                count += try await closed(ItemKey(app: app, name: name), by: rules, take)
            }
            guard names.count == Self.atOnce, let end = names.last else { return count }
            place = end.text
        }
    }

    private func closed(
        _ item: ItemKey, by rules: ItemRules, _ take: ([SubscriptionSerial]) async throws -> Int
    ) async throws -> Int {
        var count = 0
        var place = SubscriptionSerial(0)
        while true {
            let subscribers = try await store.subscribers(of: item, after: place, limit: Self.atOnce)
            // A subscription with several closed items belongs to the first of them.
            let some = subscribers.filter { subscriber in
                subscriber.items.first { !rules.rule(for: $0).isOpen } == item.name
            }
            if !some.isEmpty { count += try await take(some.map(\.subscription)) }
            guard subscribers.count == Self.atOnce, let end = subscribers.last else { return count }
            place = end.subscription
        }
    }
}
