import CarillonCore
import CarillonWire
import GRDB

/// What updates fired, until it was delivered, inside a transaction.
struct FiringTable {
    private let db: Database

    init(_ db: Database) { self.db = db }

    func insert(_ firing: Firing) throws -> Int64 {
        var insert = try BoundStatement(
            db,
            "INSERT INTO firing (\(ItemState.columns), app, item, targets) VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING serial")
        try firing.state.bind(to: &insert)
        insert.bind(firing.app.rawValue)
        insert.bind(firing.item.text)
        insert.bind(ValueCoding.encode(firing.targets.map { ($0.subscription.rawValue, $0.revision) }))
        return try insert.inserted()
    }

    /// Damaged rows among them, so that those behind are found.
    func next(of item: ItemKey) throws -> NextFiring? {
        var select = try BoundStatement(
            db,
            """
            SELECT serial, targets, done, \(ItemState.columns) FROM firing WHERE app = ? AND item = ? ORDER BY serial LIMIT 1
            """)
        select.bind(item.app.rawValue)
        select.bind(item.name.text)
        return try select.first { columns in
            let number = columns.integer(0)
            guard let targets = ValueCoding.pairs(columns.bytes(1) ?? []), let state = try? ItemState(columns, from: 3)
            else {
                return .unreadable(number)
            }
            return .readable(
                StoredFiring(
                    number: number,
                    firing: Firing(
                        item: item.name, app: item.app, state: state,
                        targets: targets.map { .init(subscription: SubscriptionSerial($0.0), revision: $0.1) }),
                    done: Int(columns.integer(2))))
        }
    }

    func numbers(of item: ItemKey) throws -> [Int64] {
        try Int64.fetchAll(
            db.cachedStatement(sql: "SELECT serial FROM firing WHERE app = ? AND item = ?"),
            arguments: [item.app.rawValue, item.name.text])
    }

    /// Of those that were not delivered.
    func targets(of item: ItemKey) throws -> Set<SubscriptionSerial> {
        var select = try BoundStatement(db, "SELECT targets, done FROM firing WHERE app = ? AND item = ?")
        select.bind(item.app.rawValue)
        select.bind(item.name.text)
        var targets: Set<SubscriptionSerial> = []
        try select.forEachRow { columns in
            let pairs = ValueCoding.pairs(columns.bytes(0) ?? []) ?? []
            targets.formUnion(pairs.dropFirst(Int(columns.integer(1))).lazy.map { SubscriptionSerial($0.0) })
            return true
        }
        return targets
    }

    func items(in shards: ShardSet, after item: ItemKey?, limit: Int) throws -> [ItemKey] {
        let rows = try Row.fetchAll(
            db.cachedStatement(
                sql: """
                    SELECT DISTINCT app, item FROM firing
                    WHERE (app, item) > (?, ?) \(shards.condition(onItem: "app", "item")) ORDER BY app, item LIMIT ?
                    """),
            arguments: shards.arguments(with: [item?.app.rawValue ?? 0, item?.name.text ?? "", limit]))
        return rows.compactMap { row in ItemName(row[1] as String).map { ItemKey(app: AppSerial(row[0]), name: $0) } }
    }

    /// See ``SubscriptionStore/advance(_:to:refused:)``.
    func advance(_ number: Int64, to count: Int?, refused: [Firing.Target]) throws {
        if !refused.isEmpty { try note(refused, of: number) }
        if let count {
            try db.run("UPDATE firing SET done = ? WHERE serial = ?", [count, number])
        } else {
            try db.run("DELETE FROM firing WHERE serial = ?", [number])
        }
    }

    private func note(_ refused: [Firing.Target], of number: Int64) throws {
        var update = try BoundStatement(
            db,
            """
            UPDATE subscription_item SET held = 0, last_firing = ?
            WHERE (app, item) = (SELECT app, item FROM firing WHERE serial = ?) AND subscription = ?
                AND abs(last_firing) < ? AND EXISTS (SELECT 1 FROM subscription
                    WHERE serial = subscription_item.subscription AND revision = ? AND status = 0
                        AND policy = \(SubscriptionMachine.Policy.everyCrossing.number))
            """)
        for target in refused {
            update.bind(-number)
            update.bind(number)
            update.bind(target.subscription.rawValue)
            update.bind(number)
            update.bind(target.revision)
            try update.run()
        }
    }
}
