package import CarillonCore
package import CarillonWire
import GRDB

extension SQLiteStore: SubscriptionStore {
    // MARK: Items

    package func appsWithUnappliedRules() async throws -> [AppSerial] {
        try await read { db in
            let select = try db.cachedStatement(
                sql: """
                    SELECT app FROM app_document WHERE kind = 'item_rules' AND NOT EXISTS (SELECT 1 FROM applied_item_rules
                        WHERE applied_item_rules.app = app_document.app AND applied_item_rules.version = app_document.version)
                    ORDER BY app
                    """)
            return try Int64.fetchAll(select).map(AppSerial.init)
        }
    }

    package func markRulesApplied(_ revision: Int64, of app: AppSerial) async throws {
        try await group.run { db in
            try db.run(
                """
                INSERT INTO applied_item_rules (app, version)
                SELECT app, version FROM app_document WHERE app = ? AND kind = 'item_rules' AND name = '' AND version = ?
                ON CONFLICT (app) DO UPDATE SET version = excluded.version
                """, [app.rawValue, revision])
        }
    }

    private static func rulesRevision(of app: AppSerial, in db: Database) throws -> Int64? {
        try Int64.first(
            db, "SELECT version FROM app_document WHERE app = ? AND kind = 'item_rules' AND name = ''", [app.rawValue])
    }

    package func item(_ key: ItemKey) async throws -> StoredItem? {
        try await read { db in try ItemTable(db).item(key) }
    }

    package func commitItem(_ commit: ItemCommit) async throws -> [Int64]? {
        try await group.run { db in
            guard try ItemTable(db).write(commit.item, commit.key) else { return nil }
            return try commit.firings.map { try FiringTable(db).insert($0) }
        }
    }

    package func items(of app: AppSerial, prefix: String, after name: String, limit: Int) async throws -> [ListedItem] {
        try await scan { db in try ItemTable(db).items(of: app, prefix: prefix, after: name, limit: limit) }
    }

    package func unwatchedItems(
        of app: AppSerial, updatedBy moment: Timestamp, after name: String, limit: Int
    ) async throws -> (items: [ListedItem], end: String?) {
        try await scan { db in try ItemTable(db).unwatchedItems(of: app, updatedBy: moment, after: name, limit: limit) }
    }

    package func resetSubscriptions(
        on item: ItemKey, after subscription: SubscriptionSerial, limit: Int, all: Bool
    ) async throws -> SubscriptionSerial? {
        let part = try await read { db in
            try SubscriberTable(db).subscribersToReset(on: item, after: subscription, limit: limit, all: all)
        }
        if !part.changed.isEmpty { try await group.run { db in try SubscriberTable(db).reset(part.changed, on: item) } }
        return part.end
    }

    package func deleteItem(_ item: ItemKey, ifIdleSince moment: Timestamp?) async throws -> Bool {
        try await group.run { db in try ItemTable(db).delete(item, ifIdleSince: moment) }
    }

    // MARK: Subscriptions

    package func putSubscription(_ request: SubscriptionRequest, at now: Timestamp) async throws -> SubscriptionPut {
        try await group.run { db in try SubscriptionTable(db).put(request, at: now) }
    }

    package func user(of device: DeviceSerial) async throws -> UserID? {
        try await read { db in
            let select = "SELECT profile.user FROM device_profile AS profile WHERE profile.device = ?"
            return try String.first(db, select, [device.rawValue]).flatMap(UserID.init)
        }
    }

    package func subscription(_ id: SubscriptionID, of device: DeviceSerial) async throws -> Subscription? {
        try await read { db in try SubscriptionTable(db).subscription(id, of: device) }
    }

    package func subscriptions(
        of device: DeviceSerial, _ filter: SubscriptionFilter, after: SubscriptionSerial, limit: Int
    ) async throws -> [Subscription] {
        try await read { db in
            try SubscriptionTable(db).subscriptions(of: device, filter, after: after, limit: limit)
        }
    }

    package func endSubscriptions(of device: DeviceSerial, _ filter: SubscriptionFilter) async throws -> Int {
        try await group.run { db in try SubscriptionTable(db).end(of: device, filter) }
    }

    package func endSubscriptions(_ subscriptions: [SubscriptionSerial], of device: DeviceSerial) async throws -> Int {
        try await group.run { db in
            let table = SubscriptionTable(db)
            return try subscriptions.reduce(0) { count, subscription in
                try count
                    + table.end(
                        "serial = :serial AND device = :device",
                        ["serial": subscription.rawValue, "device": device.rawValue])
            }
        }
    }

    package func endSubscriptions(
        _ subscriptions: [SubscriptionSerial], of app: AppSerial, rulesRevision revision: Int64
    ) async throws -> Int? {
        try await group.run { db in
            guard try Self.rulesRevision(of: app, in: db) == revision else { return nil }
            let table = SubscriptionTable(db)
            return try subscriptions.reduce(0) { count, subscription in
                try count + table.end("serial = :serial", ["serial": subscription.rawValue])
            }
        }
    }

    package func subscribedItems(of app: AppSerial, after name: String, limit: Int) async throws -> [ItemName] {
        try await scan { db in try SubscriberTable(db).items(of: app, after: name, limit: limit) }
    }

    package func subscribers(
        of item: ItemKey, after subscription: SubscriptionSerial, limit: Int
    ) async throws -> [ItemSubscriber] {
        try await scan { db in try SubscriberTable(db).subscribers(of: item, after: subscription, limit: limit) }
    }

    package func endedSubscriptions(
        of device: DeviceSerial?, in shards: ShardSet, limit: Int
    ) async throws -> [EndedSubscription] {
        try await read { db in try SubscriptionTable(db).ended(of: device, in: shards, limit: limit) }
    }

    package func removeSubscriptions(_ ended: [EndedSubscription], at now: Timestamp) async throws {
        _ = try await changeInboxes { _, transaction in
            try transaction.perform(
                ended.map { ended in
                    let origin = OriginKey(kind: .subscription, serial: ended.serial.rawValue)
                    return .end(DeviceOrigin(ended.device, origin), because: .unregistered, at: now)
                })
        }
    }

    package func endExpiredSubscriptions(in shards: ShardSet, at now: Timestamp, limit: Int) async throws -> Int {
        let isAny = try await read { db in
            try Int.first(
                db,
                """
                SELECT 1 FROM subscription WHERE expires_at <= ? AND status < \(SubscriptionTable.endedStatus)
                    \(shards.condition(on: "device")) LIMIT 1
                """,
                shards.arguments(with: [now.milliseconds])) != nil
        }
        guard isAny else { return 0 }
        return try await group.run { db in try SubscriptionTable(db).endExpired(in: shards, at: now, limit: limit) }
    }

    // MARK: Watching

    package func armed(
        on item: ItemKey, after: SubscriptionSerial, limit: Int
    ) async throws -> [ArmedSubscription] {
        try await read { db in
            try SubscriptionTable(db).armed(
                """
                watched.app = ? AND watched.item = ? AND watched.subscription > ? AND subscription.status = 0
                    AND profile.reason IS NULL ORDER BY watched.subscription
                """, limit: limit
            ) { select in
                select.bind(item.app.rawValue)
                select.bind(item.name.text)
                select.bind(after.rawValue)
            }
        }
    }

    package func itemsNeverFired(
        in shards: ShardSet, after place: WatchPlace, limit: Int
    ) async throws -> (items: [ItemKey], end: WatchPlace?) {
        try await scan { db in try SubscriptionTable(db).itemsNeverFired(in: shards, after: place, limit: limit) }
    }

    package func armed(_ subscriptions: [SubscriptionSerial]) async throws -> [ArmedSubscription] {
        try await read { db in
            try subscriptions.flatMap { serial in
                try SubscriptionTable(db).armed("watched.subscription = ?") { $0.bind(serial.rawValue) }
            }
        }
    }

    package func serials(of device: DeviceSerial) async throws -> [SubscriptionSerial] {
        try await read { db in
            try Int64.fetchAll(
                db.cachedStatement(sql: "SELECT serial FROM subscription WHERE device = ?"), arguments: [device.rawValue]
            ).map(SubscriptionSerial.init)
        }
    }

    // MARK: Firing

    package func subjects(_ subscriptions: [SubscriptionSerial]) async throws -> [FiringSubject] {
        try await read { db in try SubscriptionTable(db).subjects(subscriptions) }
    }

    package func itemsWithFirings(in shards: ShardSet, after item: ItemKey?, limit: Int) async throws -> [ItemKey] {
        try await read { db in try FiringTable(db).items(in: shards, after: item, limit: limit) }
    }

    package func nextFiring(of item: ItemKey) async throws -> NextFiring? {
        try await read { db in try FiringTable(db).next(of: item) }
    }

    package func firingTargets(of item: ItemKey) async throws -> Set<SubscriptionSerial> {
        try await read { db in try FiringTable(db).targets(of: item) }
    }

    package func firingNumbers(of item: ItemKey) async throws -> [Int64] {
        try await read { db in try FiringTable(db).numbers(of: item) }
    }

    package func advance(_ firing: Int64, to count: Int?, refused: [Firing.Target]) async throws {
        try await group.run { db in try FiringTable(db).advance(firing, to: count, refused: refused) }
    }

    // MARK: Throttled firings

    package func throttle(_ firings: [ThrottledFiring], at now: Timestamp) async throws -> [ThrottleResult] {
        try await group.run { db in try ThrottledFiringTable(db).throttle(firings, at: now) }
    }

    package func dueFirings(in shards: ShardSet, at now: Timestamp, limit: Int) async throws -> [DueFiring] {
        try await read { db in try ThrottledFiringTable(db).due(in: shards, at: now, limit: limit) }
    }

    package func nextThrottledFiring(in shards: ShardSet) async throws -> Timestamp? {
        try await read { db in
            try Int64.first(
                db,
                """
                SELECT due_at FROM held_firing WHERE due_at IS NOT NULL \(shards.condition(on: "device"))
                ORDER BY due_at LIMIT 1
                """,
                shards.arguments()
            ).map(Timestamp.init(milliseconds:))
        }
    }

    package func bringBackThrottled(in shards: ShardSet, at now: Timestamp) async throws {
        try await group.run { db in try ThrottledFiringTable(db).bringBack(in: shards, at: now) }
    }

    package func dropThrottled(_ firings: [Int64], at now: Timestamp) async throws {
        try await group.run { db in try ThrottledFiringTable(db).drop(firings, at: now) }
    }
}
