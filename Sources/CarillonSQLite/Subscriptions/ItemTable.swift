import CarillonCore
import CarillonExpression
import CarillonWire
import GRDB

/// Items, inside a transaction.
struct ItemTable {
    private let db: Database

    init(_ db: Database) { self.db = db }

    func item(_ key: ItemKey) throws -> StoredItem? {
        var select = try BoundStatement(
            db, "SELECT \(ItemState.columns), version, places FROM item WHERE app = ? AND name = ?")
        select.bind(key.app.rawValue)
        select.bind(key.name.text)
        return try select.first { columns in
            StoredItem(
                state: try ItemState(columns, from: 0), version: columns.integer(4),
                places: try Self.places(columns.bytes(5) ?? []))
        }
    }

    /// Answers false when it cannot be there.
    func write(_ item: StoredItem, _ key: ItemKey) throws -> Bool {
        var update = try BoundStatement(
            db,
            """
            UPDATE item SET mode = ?, fields = ?, previous = ?, updated_at = ?, version = ?, places = ?
            WHERE app = ? AND name = ?
            """)
        try bind(item, to: &update)
        update.bind(key.app.rawValue)
        update.bind(key.name.text)
        try update.run()
        if db.changesCount == 1 { return true }
        let count = CounterTable.sum(.items, of: "app.serial")
        let open = "SELECT \(count) FROM app WHERE serial = ? AND ended_at IS NULL"
        guard let items = try Int.first(db, open, [key.app.rawValue]), items < ItemLimits.itemsPerApp else { return false }
        var insert = try BoundStatement(
            db,
            """
            INSERT INTO item (mode, fields, previous, updated_at, version, places, app, name) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
            """)
        try bind(item, to: &insert)
        insert.bind(key.app.rawValue)
        insert.bind(key.name.text)
        try insert.run()
        try add(1, to: key.app)
        return true
    }

    /// Changes the number of items of an app.
    private func add(_ count: Int, to app: AppSerial) throws {
        try CounterTable(db).add([(.items, count)], to: app)
    }

    // MARK: Lists

    func items(of app: AppSerial, prefix: String, after name: String, limit: Int) throws -> [ListedItem] {
        // One bound, as an index uses only one of two.
        let isAfter = !name.utf8.lexicographicallyPrecedes(prefix.utf8)
        var select = try BoundStatement(
            db,
            """
            SELECT name, version, updated_at, (SELECT count(*) FROM subscription_item AS watched
                JOIN subscription ON subscription.serial = watched.subscription
                WHERE watched.app = item.app AND watched.item = item.name
                    AND subscription.status < \(SubscriptionTable.endedStatus))
            FROM item WHERE app = ? AND name \(isAfter ? ">" : ">=") ? ORDER BY name LIMIT ?
            """)
        select.bind(app.rawValue)
        select.bind(isAfter ? name : prefix)
        select.bind(limit)
        var items: [ListedItem] = []
        try select.forEachRow { columns in
            guard let name = columns.text(0).flatMap({ ItemName($0) }) else { return true }
            guard name.text.utf8.starts(with: prefix.utf8) else { return false }
            items.append(
                ListedItem(
                    name: name, version: columns.integer(1), updatedAt: columns.timestamp(2),
                    subscriptions: Int(columns.integer(3))))
            return true
        }
        return items
    }

    /// See ``SubscriptionStore/unwatchedItems(of:updatedBy:after:limit:)``.
    func unwatchedItems(
        of app: AppSerial, updatedBy moment: Timestamp, after name: String, limit: Int
    ) throws -> (items: [ListedItem], end: String?) {
        var select = try BoundStatement(
            db,
            """
            SELECT name, version, updated_at, updated_at <= ? AND NOT EXISTS (SELECT 1 FROM subscription_item AS watched
                WHERE watched.app = item.app AND watched.item = item.name)
            FROM item WHERE app = ? AND name > ? ORDER BY name LIMIT ?
            """)
        select.bind(moment.milliseconds)
        select.bind(app.rawValue)
        select.bind(name)
        select.bind(limit)
        var items: [ListedItem] = []
        var (count, end) = (0, name)
        try select.forEachRow { columns in
            count += 1
            end = columns.text(0) ?? end
            if columns.integer(3) != 0, let name = ItemName(end) {
                items.append(
                    ListedItem(name: name, version: columns.integer(1), updatedAt: columns.timestamp(2), subscriptions: 0))
            }
            return true
        }
        return (items, count < limit ? nil : end)
    }

    // MARK: Deleting

    /// See ``SubscriptionStore/deleteItem(_:ifIdleSince:)``.
    func delete(_ key: ItemKey, ifIdleSince moment: Timestamp?) throws -> Bool {
        let isIdle = """
            updated_at <= ?3 AND NOT EXISTS (SELECT 1 FROM subscription_item AS watched
                WHERE watched.app = ?1 AND watched.item = ?2)
            """
        try db.run(
            "DELETE FROM item WHERE app = ?1 AND name = ?2 AND (?3 IS NULL OR \(isIdle))",
            [key.app.rawValue, key.name.text, moment?.milliseconds])
        guard db.changesCount == 1 else { return false }
        try add(-1, to: key.app)
        try db.run("DELETE FROM firing WHERE app = ? AND item = ?", [key.app.rawValue, key.name.text])
        return true
    }

    /// Removes items and firings of an app, up to `limit` rows. Returns the number of removed rows.
    func remove(_ limit: Int, of app: AppSerial) throws -> Int {
        try db.run(
            "DELETE FROM item WHERE app = ?1 AND name IN (SELECT name FROM item WHERE app = ?1 LIMIT ?2)",
            [app.rawValue, limit])
        let items = db.changesCount
        if items > 0 { try add(-items, to: app) }
        guard items < limit else { return items }
        try db.run(
            "DELETE FROM firing WHERE app = ?1 AND serial IN (SELECT serial FROM firing WHERE app = ?1 LIMIT ?2)",
            [app.rawValue, limit - items])
        return items + db.changesCount
    }

    private func bind(_ item: StoredItem, to statement: inout BoundStatement) throws {
        try item.state.bind(to: &statement)
        statement.bind(item.version)
        statement.bind(item.places.isEmpty ? nil : try Self.bytes(item.places))
    }

    private static func bytes(_ places: [ItemUpdate.Place]) throws -> [UInt8] {
        let values = places.flatMap { [ExpressionValue.string($0.source), .int($0.sequence)] }
        guard let bytes = ValueCoding.encode(values) else {
            throw StoreFault(.unavailable, "the places of an item cannot be stored")
        }
        return bytes
    }

    private static func places(_ bytes: [UInt8]) throws -> [ItemUpdate.Place] {
        var places: [ItemUpdate.Place] = []
        var source: String?
        for value in ValueCoding.values(bytes) ?? [] {
            switch value {
            case .string(let text): source = text
            case .int(let sequence): places.append(.init(source: source ?? "", sequence: sequence))
            default: throw StoreFault(.unavailable, "the source sequences of an item cannot be read")
            }
        }
        return places
    }
}

extension ItemState {
    static let columns = "mode, fields, previous, updated_at"

    func bind(to statement: inout BoundStatement) throws {
        statement.bind(mode == .merge ? 0 : 1)
        statement.bind(try Self.bytes(fields))
        statement.bind(try previous.map { try Self.bytes($0) })
        statement.bind(updatedAt?.milliseconds ?? 0)
    }

    private static func bytes(_ fields: [String: ItemValue]) throws -> [UInt8] {
        guard let bytes = ValueCoding.encode(fields) else {
            throw StoreFault(.unavailable, "the fields of an item cannot be stored")
        }
        return bytes
    }

    init(_ columns: StatementColumns, from place: Int32) throws {
        guard let fields = ValueCoding.fields(columns.bytes(place + 1) ?? []) else {
            throw StoreFault(.unavailable, "the fields of an item cannot be read")
        }
        self.init(
            columns.integer(place) == 0 ? .merge : .distinct, fields: fields,
            previous: columns.bytes(place + 2).flatMap { ValueCoding.fields($0) }, updatedAt: columns.timestamp(place + 3))
    }
}
