package import CarillonCore

extension SQLiteStores {
    package func addSubscription(_ subscription: SubscriptionRow, in store: any Store) async throws {
        let (device, app) = (subscription.device.rawValue, subscription.app.rawValue)
        let (user, createdAt) = (Self.literal(subscription.user), subscription.createdAt.milliseconds)
        let expiresAt = subscription.expiresAt.map { "\($0.milliseconds)" } ?? "NULL"
        let frequency = subscription.maxFrequency.map { "\($0)" } ?? "NULL"
        try await run(
            """
            INSERT INTO subscription (serial, id, device, app, user, fields, tags, format, policy, cool_down, items, status,
                status_at, revision, created_at, expires_at, max_frequency)
            VALUES (\(subscription.serial.rawValue), randomblob(16), \(device), \(app), \(user), x'', x'', '{}', 0, 0, 1,
                \(subscription.hasEnded ? 2 : 0), \(createdAt), 1, \(createdAt), \(expiresAt), \(frequency));
            \(Self.adding(1, to: "subscriptions", of: "\(app)"))
            """, in: store)
    }

    package func copySubscription(times count: Int, in store: any Store) async throws {
        let columns = """
            mode, condition, format, tags, policy, cool_down, status, status_at, revision, device, app, fields, items, created_at
            """
        try await run(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(count))
            INSERT INTO subscription (\(columns), id) SELECT \(columns), randomblob(16) FROM subscription, n;
            \(Self.setting("subscriptions", to: "(SELECT count(*) FROM subscription WHERE subscription.app = app.serial)"))
            INSERT OR IGNORE INTO subscription_item (app, item, subscription, place, shape, constants, version)
                SELECT watched.app, item, serial, 0, shape, constants, version
                FROM subscription_item AS watched, subscription;
            """, in: store)
    }

    package func subscriptions(in store: any Store) async throws -> [SubscriptionSerial] {
        try await numbers("SELECT serial FROM subscription", in: store).map(SubscriptionSerial.init)
    }

    package func damageWatchedItems(of subscription: SubscriptionSerial, in store: any Store) async throws {
        try await run(
            "UPDATE subscription_item SET item = char(10) WHERE subscription = \(subscription.rawValue)", in: store)
    }

    package func subscriptionStatuses(in store: any Store) async throws -> [Int] {
        try await numbers("SELECT status FROM subscription", in: store).map { Int($0) }
    }

    package func endSubscription(key: String, in store: any Store) async throws {
        try await run("UPDATE subscription SET status = 2, key = NULL WHERE key = \(Self.literal(key))", in: store)
    }

    package func trigger(subscriptionsIn store: any Store) async throws {
        try await run("UPDATE subscription SET status = 1", in: store)
    }

    package func forgetFirings(in store: any Store) async throws {
        try await run(
            "UPDATE subscription SET status = 0, fired_at = NULL; UPDATE subscription_item SET last_firing = 0", in: store)
    }

    // MARK: Watched items

    package func watchedVersions(where holds: Bool?, in store: any Store) async throws -> [Int64] {
        let condition = holds.map { " WHERE held = \($0 ? 1 : 0)" } ?? ""
        return try await numbers("SELECT version FROM subscription_item" + condition, in: store)
    }

    package func lastFirings(in store: any Store) async throws -> [Int64] {
        try await numbers("SELECT last_firing FROM subscription_item", in: store)
    }

    package func heldConditions(in store: any Store) async throws -> [Bool?] {
        let select = "SELECT coalesce(held, -1) FROM subscription_item ORDER BY subscription"
        return try await numbers(select, in: store).map { $0 < 0 ? nil : $0 > 0 }
    }

    package func forgetDeliveries(in store: any Store) async throws {
        try await run("UPDATE subscription_item SET told_at = NULL", in: store)
    }
}
