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

    func firings(after number: Int64, limit: Int) throws -> [StoredFiring] {
        var select = try BoundStatement(
            db,
            "SELECT serial, app, item, targets, done, \(ItemState.columns) FROM firing WHERE serial > ? ORDER BY serial LIMIT ?"
        )
        select.bind(number)
        select.bind(limit)
        var firings: [StoredFiring] = []
        try select.forEachRow { columns in
            guard let item = columns.text(2).flatMap({ ItemName($0) }),
                let targets = ValueCoding.pairs(columns.bytes(3) ?? [])
            else { throw StoreFault(.unavailable, "a firing cannot be read") }
            firings.append(
                StoredFiring(
                    number: columns.integer(0),
                    firing: Firing(
                        item: item, app: AppSerial(columns.integer(1)), state: try ItemState(columns, from: 5),
                        targets: targets.map { .init(subscription: SubscriptionSerial($0.0), revision: $0.1) }),
                    done: Int(columns.integer(4))))
            return true
        }
        return firings
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
    func counts(_ target: Firing.Target, _ number: Int64, _ now: Timestamp) throws -> Bool {
        try fired(target, number, now) != nil
    }

    /// Answers whether it counted.
    func fire(_ target: Firing.Target, _ number: Int64, _ now: Timestamp) throws -> Bool {
        guard let machine = try fired(target, number, now) else { return false }
        var update = try BoundStatement(
            db, "UPDATE subscription SET status = ?, status_at = ?, fired_at = ?, last_firing = ? WHERE serial = ?")
        update.bind(machine.status.number)
        update.bind(machine.statusAt.milliseconds)
        update.bind(machine.lastFiredAt?.milliseconds)
        update.bind(number)
        update.bind(target.subscription.rawValue)
        try update.run()
        return true
    }

    /// What becomes of it; nil when nothing does.
    private func fired(_ target: Firing.Target, _ number: Int64, _ now: Timestamp) throws -> SubscriptionMachine? {
        var select = try BoundStatement(
            db,
            """
            SELECT \(SubscriptionMachine.columns), last_firing, profile.reason NOT NULL, expires_at
            FROM subscription LEFT JOIN device_profile AS profile ON profile.device = subscription.device
            WHERE serial = ? AND status < \(SubscriptionTable.endedStatus)
            """)
        select.bind(target.subscription.rawValue)
        return try select.first { columns -> SubscriptionMachine? in
            var machine = SubscriptionMachine(columns, from: 0, isPaused: columns.integer(8) != 0)
            guard columns.integer(7) < number, columns.integerIfAny(9).map({ $0 > now.milliseconds }) ?? true,
                machine.fire(ofRevision: target.revision, at: now) == .counts
            else { return nil }
            return machine
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
