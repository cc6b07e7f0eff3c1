package import CarillonCore

extension SQLiteStores {
    package func damageFiring(_ number: Int64, in store: any Store) async throws {
        try await run("UPDATE firing SET targets = x'ffffff' WHERE serial = \(number)", in: store)
    }

    package func damageThrottledFirings(of item: String, in store: any Store) async throws {
        try await run("UPDATE held_firing SET item = '' WHERE item = \(Self.literal(item))", in: store)
    }

    package func addThrottledFiring(
        of subscription: SubscriptionSerial, _ device: DeviceSerial, dueAt: Timestamp, in store: any Store
    ) async throws {
        try await run(
            """
            INSERT INTO held_firing (subscription, device, item, revision, notification, bytes, ttl, is_always_pushed, due_at)
            VALUES (\(subscription.rawValue), \(device.rawValue), 'i', 1, x'00', 1, 1, 0, \(dueAt.milliseconds))
            """, in: store)
    }

    package func makeThrottledFiringsDue(in store: any Store) async throws {
        try await run("UPDATE held_firing SET due_at = 0", in: store)
    }

    package func throttledFirings(in store: any Store) async throws -> [ThrottledFiringRow] {
        let subscriptions = try await numbers("SELECT subscription FROM held_firing ORDER BY serial", in: store)
        let devices = try await numbers("SELECT device FROM held_firing ORDER BY serial", in: store)
        let revisions = try await numbers("SELECT revision FROM held_firing ORDER BY serial", in: store)
        return zip(subscriptions, zip(devices, revisions)).map { subscription, rest in
            ThrottledFiringRow(
                subscription: SubscriptionSerial(subscription), device: DeviceSerial(rest.0), revision: rest.1)
        }
    }

    package func throttledBytes(in store: any Store) async throws -> [Int] {
        let kept = try await numbers(
            "SELECT sum(length(notification)) FROM held_firing GROUP BY device ORDER BY device", in: store)
        let counted = try await numbers("SELECT sum(bytes) FROM held_firing GROUP BY device ORDER BY device", in: store)
        guard counted == kept else {
            throw StoreFault(.damaged, "held firings count \(counted) bytes, and have \(kept)")
        }
        return kept.map { Int($0) }
    }

    package func addThrottledFirings(_ count: Int, in store: any Store) async throws {
        try await run(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(count))
            INSERT INTO held_firing (subscription, device, item, revision, notification, bytes, ttl, is_always_pushed)
                SELECT serial, device, 'another', revision, x'', 0, 60, 0 FROM subscription, n
            """, in: store)
    }

    package func removeThrottledFirings(in store: any Store) async throws {
        try await run("DELETE FROM held_firing", in: store)
    }
}
