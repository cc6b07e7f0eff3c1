import Metrics
import Synchronization

/// Ends subscriptions on items that an app's rules close.
extension SubscriptionRegistrar {
    /// Sets an app's rules for items, and ends the subscriptions on items that the rules do not open. ``removeEnded(of:)``
    /// removes the ended subscriptions.
    ///
    /// - Returns: The number of subscriptions that this call ended. The call stops if the app sets other rules.
    package func setRules(_ rules: ItemRules, of app: AppSerial) async throws -> Int {
        rulesBeingSet.begin(app)
        defer { rulesBeingSet.end(app) }
        let revision = try await items.setRules(rules, of: app)
        return try await apply(rules, revision, of: app)
    }

    /// Ends the subscriptions on closed items that remain after a server was killed or a disk was full. One home does this for
    /// all apps.
    package func applyRules() async throws {
        for app in try await store.appsWithUnappliedRules() where !Task.isCancelled {
            guard await !isSettingRulesAnywhere(of: app) else { continue }
            let (rules, revision) = try await items.revisedRules(of: app)
            _ = try await apply(rules, revision, of: app)
        }
    }

    /// Whether a request is setting the rules of an app. Such a request must count the subscriptions that it ends. A home that
    /// does not answer counts as a home without such a request.
    private func isSettingRulesAnywhere(of app: AppSerial) async -> Bool {
        if rulesBeingSet.contains(app) { return true }
        return await others.results(of: ItemRulesBeingSet(of: app)).contains { (try? $0.get()) == true }
    }

    private func apply(_ rules: ItemRules, _ revision: Int64, of app: AppSerial) async throws -> Int {
        let count = try await closed(by: rules, of: app) { subscriptions in
            let count = try await store.endSubscriptions(subscriptions, of: app, rulesRevision: revision)
            if let count { ServerMetric.subscriptionsClosed.counter().increment(by: count) }
            return count
        }
        try await store.markRulesApplied(revision, of: app)
        return count
    }

    /// Counts the subscriptions that ``setRules(_:of:)`` would end.
    package func countClosed(by rules: ItemRules, of app: AppSerial) async throws -> Int {
        try await closed(by: rules, of: app) { $0.count }
    }

    /// - Parameter take: Counts or ends some subscriptions with a closed item; nil ends the search. Each subscription is passed
    ///   once.
    private func closed(
        by rules: ItemRules, of app: AppSerial, _ take: ([SubscriptionSerial]) async throws -> Int?
    ) async throws -> Int {
        var count = 0
        var place = ""
        while true {
            try Task.checkCancellation()
            let names = try await store.subscribedItems(of: app, after: place, limit: Self.atOnce)
            for name in names where !rules.rule(for: name).isOpen {
                let (some, isLast) = try await closed(ItemKey(app: app, name: name), by: rules, take)
                count += some
                if isLast { return count }
            }
            guard names.count == Self.atOnce, let end = names.last else { return count }
            place = end.text
        }
    }

    private func closed(
        _ item: ItemKey, by rules: ItemRules, _ take: ([SubscriptionSerial]) async throws -> Int?
    ) async throws -> (count: Int, isLast: Bool) {
        var count = 0
        var place = SubscriptionSerial(0)
        while true {
            try Task.checkCancellation()
            let subscribers = try await store.subscribers(of: item, after: place, limit: Self.atOnce)
            // A subscription with several closed items is counted for the first of them.
            let some = subscribers.filter { subscriber in
                subscriber.items.first { !rules.rule(for: $0).isOpen } == item.name
            }
            if !some.isEmpty {
                guard let taken = try await take(some.map(\.subscription)) else { return (count, true) }
                count += taken
            }
            guard subscribers.count == Self.atOnce, let end = subscribers.last else { return (count, false) }
            place = end.subscription
        }
    }
}

/// Apps whose rules are being set by requests of this home. Each such request applies the rules itself.
final class RulesBeingSet: Sendable {
    private let requests = Mutex<[AppSerial: Int]>([:])

    func begin(_ app: AppSerial) { requests.withLock { $0[app, default: 0] += 1 } }

    func end(_ app: AppSerial) {
        requests.withLock { requests in
            let left = requests[app, default: 0] - 1
            requests[app] = left > 0 ? left : nil
        }
    }

    func contains(_ app: AppSerial) -> Bool { requests.withLock { $0[app] != nil } }
}
