import CarillonCore
import GRDB

/// Items and the subscriptions on them, inside a transaction.
struct SubscriberTable {
    private let db: Database

    init(_ db: Database) { self.db = db }

    /// See ``SubscriptionStore/subscribedItems(of:after:limit:)``.
    func items(of app: AppSerial, after name: String, limit: Int) throws -> [ItemName] {
        var select = try BoundStatement(
            db, "SELECT item FROM subscription_item WHERE app = ? AND item > ? ORDER BY item LIMIT 1")
        var items: [ItemName] = []
        var place = name
        while items.count < limit {
            select.bind(app.rawValue)
            select.bind(place)
            // Reads one entry of the index for each item, because an item can have a million subscriptions.
            guard let next = try select.first({ $0.text(0) ?? "" }), let name = ItemName(next) else { break }
            items.append(name)
            place = next
        }
        return items
    }

    /// See ``SubscriptionStore/subscribers(of:after:limit:)``.
    func subscribers(of item: ItemKey, after subscription: SubscriptionSerial, limit: Int) throws -> [ItemSubscriber] {
        var select = try BoundStatement(
            db,
            """
            SELECT subscription.serial, subscription.items FROM subscription_item AS watched
            JOIN subscription ON subscription.serial = watched.subscription
            WHERE watched.app = ? AND watched.item = ? AND watched.subscription > ?
                AND subscription.status < \(SubscriptionTable.endedStatus)
            ORDER BY watched.subscription LIMIT ?
            """)
        select.bind(item.app.rawValue)
        select.bind(item.name.text)
        select.bind(subscription.rawValue)
        select.bind(limit)
        let found = try select.all { columns in (serial: columns.integer(0), items: columns.integer(1)) }
        return try found.map { serial, count in
            let items = try count == 1 ? [item.name] : self.items(of: serial)
            return ItemSubscriber(SubscriptionSerial(serial), items: items)
        }
    }

    private func items(of subscription: Int64) throws -> [ItemName] {
        var select = try BoundStatement(db, "SELECT item FROM subscription_item WHERE subscription = ? ORDER BY place")
        select.bind(subscription)
        return try select.all { columns in columns.text(0).flatMap { ItemName($0) } }
    }

    /// Returns subscriptions that have evaluated an update, or have throttled firings, or all subscriptions. See
    /// ``SubscriptionStore/resetSubscriptions(on:after:limit:all:)``.
    ///
    /// - Returns: The subscriptions, and the one after which the next part begins; nil after the last part.
    func subscribersToReset(
        on item: ItemKey, after subscription: SubscriptionSerial, limit: Int, all: Bool
    ) throws -> (changed: [SubscriptionSerial], end: SubscriptionSerial?) {
        var select = try BoundStatement(
            db,
            """
            SELECT subscription, version > 0 OR last_firing > 0 OR EXISTS (SELECT 1 FROM held_firing AS held
                WHERE held.subscription = watched.subscription AND held.item = watched.item)
            FROM subscription_item AS watched WHERE app = ? AND item = ? AND subscription > ?
            ORDER BY subscription LIMIT ?
            """)
        select.bind(item.app.rawValue)
        select.bind(item.name.text)
        select.bind(subscription.rawValue)
        select.bind(limit)
        var changed: [SubscriptionSerial] = []
        var (count, end) = (0, subscription)
        try select.forEachRow { columns in
            count += 1
            end = SubscriptionSerial(columns.integer(0))
            if all || columns.integer(1) != 0 { changed.append(end) }
            return true
        }
        return (changed, count < limit ? nil : end)
    }

    func reset(_ subscriptions: [SubscriptionSerial], on item: ItemKey) throws {
        let row = "SELECT 1 FROM item WHERE app = ? AND name = ?"
        guard try Int.first(db, row, [item.app.rawValue, item.name.text]) == nil else { return }
        for subscription in subscriptions {
            try db.run(
                "DELETE FROM held_firing WHERE subscription = ? AND item = ?", [subscription.rawValue, item.name.text])
            // Before the first update no condition holds.
            try db.run(
                """
                UPDATE subscription_item SET version = 0, held = 0,
                    last_firing = -coalesce(\(SQLDialect.lastSerial(of: "firing")), 0)
                WHERE app = ? AND item = ? AND subscription = ?
                """, [item.app.rawValue, item.name.text, subscription.rawValue])
        }
    }
}
