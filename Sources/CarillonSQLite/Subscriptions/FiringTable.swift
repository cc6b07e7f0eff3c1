import CarillonCore
import CarillonWire
import GRDB

/// What updates fired, and the subscriptions' part of telling it, inside a transaction.
struct FiringTable {
    private let db: Database

    init(_ db: Database) { self.db = db }

    // MARK: The list

    func insert(_ firing: Firing) throws -> Int64 {
        var insert = try BoundStatement(
            db,
            "INSERT INTO firing (\(ItemState.columns), app, item, targets) VALUES (?, ?, ?, ?, ?, ?, ?)")
        firing.state.bind(to: &insert)
        insert.bind(firing.app.rawValue)
        insert.bind(firing.item.text)
        insert.bind(ValueCoding.encode(firing.targets.map { ($0.subscription.rawValue, $0.revision) }))
        try insert.run()
        return db.lastInsertedRowID
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

    func items(after item: ItemKey?, limit: Int) throws -> [ItemKey] {
        let rows = try Row.fetchAll(
            db.cachedStatement(
                sql: "SELECT DISTINCT app, item FROM firing WHERE (app, item) > (?, ?) ORDER BY app, item LIMIT ?"),
            arguments: [item?.app.rawValue ?? 0, item?.name.text ?? "", limit])
        return rows.compactMap { row in ItemName(row[1] as String).map { ItemKey(app: AppSerial(row[0]), name: $0) } }
    }

    func advance(_ number: Int64, to count: Int?) throws {
        if let count {
            try db.run("UPDATE firing SET done = ? WHERE serial = ?", [count, number])
        } else {
            try db.run("DELETE FROM firing WHERE serial = ?", [number])
        }
    }

    // MARK: A subscription fires

    /// Whether it would count.
    func counts(_ target: Firing.Target, _ item: ItemName, _ number: Int64, _ now: Timestamp) throws -> Bool {
        try fired(target, item, number, now) != nil
    }

    /// Answers whether it counted.
    func fire(_ target: Firing.Target, _ item: ItemName, _ number: Int64, _ now: Timestamp) throws -> Bool {
        guard let (machine, app) = try fired(target, item, number, now) else { return false }
        var update = try BoundStatement(
            db, "UPDATE subscription SET status = ?, status_at = ?, fired_at = ? WHERE serial = ?")
        update.bind(machine.status.number)
        update.bind(machine.statusAt.milliseconds)
        update.bind(machine.lastFiredAt?.milliseconds)
        update.bind(target.subscription.rawValue)
        try update.run()
        var mark = try BoundStatement(
            db,
            "UPDATE subscription_item SET last_firing = ?, told_at = ? WHERE app = ? AND item = ? AND subscription = ?")
        mark.bind(number)
        mark.bind(now.milliseconds)
        mark.bind(app)
        mark.bind(item.text)
        mark.bind(target.subscription.rawValue)
        try mark.run()
        return true
    }

    /// What becomes of it, and its app; nil when nothing does, as when its item was deleted since.
    func fired(
        _ target: Firing.Target, _ item: ItemName, _ number: Int64, _ now: Timestamp
    ) throws -> (machine: SubscriptionMachine, app: Int64)? {
        var select = try BoundStatement(
            db,
            """
            SELECT \(SubscriptionMachine.columns), watched.last_firing, profile.reason NOT NULL, expires_at, watched.app
            FROM subscription
            JOIN subscription_item AS watched ON watched.app = subscription.app AND watched.item = ?
                AND watched.subscription = subscription.serial
            LEFT JOIN device_profile AS profile ON profile.device = subscription.device
            WHERE subscription.serial = ? AND status < \(SubscriptionTable.endedStatus)
                AND EXISTS (SELECT 1 FROM item WHERE item.app = watched.app AND item.name = watched.item)
            """)
        select.bind(item.text)
        select.bind(target.subscription.rawValue)
        return try select.first { columns -> (SubscriptionMachine, Int64)? in
            var machine = SubscriptionMachine(columns, from: 0, isPaused: columns.integer(8) != 0)
            guard abs(columns.integer(7)) < number, columns.integerIfAny(9).map({ $0 > now.milliseconds }) ?? true,
                machine.fire(ofRevision: target.revision, at: now) == .counts
            else { return nil }
            return (machine, columns.integer(10))
        } ?? nil
    }
}

extension SubscriptionMachine {
    static let columns = "policy, cool_down, status, subscription.status_at, subscription.revision, fired_at, 0"

    init(_ columns: StatementColumns, from place: Int32, isPaused: Bool) {
        self.init(
            Policy(number: columns.integer(place), coolDownSeconds: columns.integer(place + 1)),
            columns.integer(place + 2) == Status.triggered.number ? .triggered : .subscribed,
            at: columns.timestamp(place + 3), revision: columns.integer(place + 4),
            lastFiredAt: columns.integerIfAny(place + 5).map(Timestamp.init(milliseconds:)), isPaused: isPaused)
    }
}

extension SubscriptionMachine.Status {
    var number: Int64 {
        switch self {
        case .subscribed: 0
        case .triggered: 1
        }
    }
}

extension SubscriptionMachine.Policy {
    var number: Int64 {
        switch self {
        case .once: 0
        case .everyCrossing: 1
        case .every: 2
        }
    }

    var coolDownSeconds: Int64 {
        if case .every(let seconds) = self { seconds } else { 0 }
    }

    init(number: Int64, coolDownSeconds: Int64) {
        switch number {
        case 0: self = .once
        case 1: self = .everyCrossing
        default: self = .every(coolDownSeconds: coolDownSeconds)
        }
    }
}
