import CarillonCore
import CarillonWire
import GRDB

/// Firings that wait until their subscription may be told again, inside a transaction. Of a subscription and an item the first has a
/// time; those behind it wait for it.
struct HeldFiringTable {
    private let db: Database

    init(_ db: Database) { self.db = db }

    // MARK: Entering

    func hold(_ held: HeldFiring, at now: Timestamp) throws -> HoldResult {
        guard let (machine, app) = try FiringTable(db).fired(held.target, held.item, held.number, now) else { return .late }
        var waiting = try count(held)
        var freeAt = try toldAt(held, app).map { Timestamp(milliseconds: $0 + held.milliseconds) } ?? now
        // A clock that was put back holds up nobody.
        if freeAt.milliseconds > now.milliseconds + held.milliseconds { freeAt = now }
        if waiting == 0, freeAt <= now { return .due }
        var replaced = 0
        while waiting > 0, try waiting >= held.buffer || !hasRoom(for: held) {
            try removeFirst(of: held)
            waiting -= 1
            replaced += 1
        }
        guard try hasRoom(for: held) else { return .full }
        try insert(held)
        try setDue(held.target.subscription.rawValue, held.item.text, freeAt)
        var update = try BoundStatement(db, "UPDATE subscription SET fired_at = ? WHERE serial = ?")
        update.bind(machine.lastFiredAt?.milliseconds)
        update.bind(held.target.subscription.rawValue)
        try update.run()
        try db.run(
            "UPDATE subscription_item SET last_firing = ? WHERE app = ? AND item = ? AND subscription = ?",
            [held.number, app, held.item.text, held.target.subscription.rawValue])
        return .held(insteadOf: replaced)
    }

    private func count(_ held: HeldFiring) throws -> Int {
        try Int.first(
            db, "SELECT count(*) FROM held_firing WHERE subscription = ? AND item = ?",
            [held.target.subscription.rawValue, held.item.text]) ?? 0
    }

    private func toldAt(_ held: HeldFiring, _ app: Int64) throws -> Int64? {
        try Int64.first(
            db, "SELECT told_at FROM subscription_item WHERE app = ? AND item = ? AND subscription = ? AND told_at NOT NULL",
            [app, held.item.text, held.target.subscription.rawValue])
    }

    private func hasRoom(for held: HeldFiring) throws -> Bool {
        var select = try BoundStatement(db, "SELECT firings, bytes FROM held_usage WHERE device = ?")
        select.bind(held.device.rawValue)
        let usage = try select.first { (firings: Int($0.integer(0)), bytes: Int($0.integer(1))) }
        guard let usage else { return true }
        return usage.firings < SubscriptionLimits.heldFirings
            && usage.bytes + held.body.count <= SubscriptionLimits.heldBytes
    }

    private func removeFirst(of held: HeldFiring) throws {
        try db.run(
            """
            DELETE FROM held_firing
            WHERE serial = (SELECT min(serial) FROM held_firing WHERE subscription = ? AND item = ?)
            """, [held.target.subscription.rawValue, held.item.text])
    }

    private func insert(_ held: HeldFiring) throws {
        var insert = try BoundStatement(
            db,
            """
            INSERT INTO held_firing (subscription, device, item, revision, notification, ttl, is_always_pushed, is_distinct)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?)
            """)
        insert.bind(held.target.subscription.rawValue)
        insert.bind(held.device.rawValue)
        insert.bind(held.item.text)
        insert.bind(held.target.revision)
        insert.bind(held.body)
        insert.bind(held.ttl)
        insert.bind(held.isAlwaysPushed ? 1 : 0)
        insert.bind(held.isDistinct ? 1 : 0)
        try insert.run()
    }

    private func setDue(_ subscription: Int64, _ item: String, _ dueAt: Timestamp) throws {
        try db.run(
            """
            UPDATE held_firing SET due_at = ?
            WHERE serial = (SELECT min(serial) FROM held_firing WHERE subscription = ? AND item = ?)
            """, [dueAt.milliseconds, subscription, item])
    }

    // MARK: Leaving

    /// The clock was set back: no firing waits longer than its pace.
    func bringBack(at now: Timestamp) throws {
        let pace = "1000 / (SELECT max_frequency FROM subscription WHERE serial = held_firing.subscription)"
        try db.run(
            """
            UPDATE held_firing SET due_at = :now + CAST(\(pace) AS INTEGER) WHERE due_at > :now + 1 + \(pace)
            """, ["now": now.milliseconds])
    }

    func due(at now: Timestamp, limit: Int) throws -> [DueFiring] {
        var select = try BoundStatement(
            db,
            """
            SELECT held.serial, held.device, subscription.app, subscription.serial, id, notification, ttl, is_always_pushed,
                is_distinct
            FROM held_firing AS held JOIN subscription ON subscription.serial = held.subscription
            WHERE due_at <= ? ORDER BY due_at LIMIT ?
            """)
        select.bind(now.milliseconds)
        select.bind(limit)
        var due: [DueFiring] = []
        try select.forEachRow { columns in
            due.append(
                DueFiring(
                    number: columns.integer(0), device: DeviceSerial(columns.integer(1)), app: AppSerial(columns.integer(2)),
                    origin: Origin(.subscription, serial: columns.integer(3), id: try columns.bytes16(4)),
                    body: columns.bytes(5) ?? [], ttl: columns.integer(6), isAlwaysPushed: columns.integer(7) != 0,
                    isDistinct: columns.integer(8) != 0))
            return true
        }
        return due
    }

    /// Whether it counts still.
    func counts(_ number: Int64, _ now: Timestamp) throws -> Bool { try current(number, now) != nil }

    /// Answers whether it counted.
    func told(_ number: Int64, _ now: Timestamp) throws -> Bool {
        guard let current = try current(number, now) else { return false }
        try db.run("DELETE FROM held_firing WHERE serial = ?", [number])
        try db.run(
            "UPDATE subscription_item SET told_at = ? WHERE app = ? AND item = ? AND subscription = ?",
            [now.milliseconds, current.app, current.item, current.subscription])
        let pace = FiringPace(maxFrequency: current.maxFrequency)
        try setDue(current.subscription, current.item, Timestamp(milliseconds: now.milliseconds + pace.milliseconds))
        return true
    }

    private func current(
        _ number: Int64, _ now: Timestamp
    ) throws -> (subscription: Int64, app: Int64, item: String, maxFrequency: Double)? {
        let select = try db.cachedStatement(
            sql: """
                SELECT subscription.serial, subscription.app, held.item, max_frequency FROM held_firing AS held
                JOIN subscription ON subscription.serial = held.subscription AND subscription.revision = held.revision
                LEFT JOIN device_profile AS profile ON profile.device = subscription.device
                WHERE held.serial = ? AND status = 0 AND profile.reason IS NULL AND coalesce(expires_at > ?, 1)
                    AND max_frequency NOT NULL
                    AND EXISTS (SELECT 1 FROM item WHERE item.app = subscription.app AND item.name = held.item)
                """)
        return try Row.first(select, [number, now.milliseconds]) { row in (row[0], row[1], row[2], row[3]) }
    }

    func drop(_ number: Int64, at now: Timestamp) throws {
        let select = try db.cachedStatement(sql: "SELECT subscription, item FROM held_firing WHERE serial = ?")
        let row = try Row.first(select, [number]) { row in (subscription: row[0] as Int64, item: row[1] as String) }
        guard let row else { return }
        try db.run("DELETE FROM held_firing WHERE serial = ?", [number])
        try setDue(row.subscription, row.item, now)
    }
}
