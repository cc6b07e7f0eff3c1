import CarillonBasics
import CarillonCore
import CarillonExpression
import CarillonWire
import GRDB

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Subscriptions, inside a transaction.
struct SubscriptionTable {
    static let endedStatus = 2

    private let db: Database

    init(_ db: Database) { self.db = db }

    // MARK: Making and changing

    func put(_ request: SubscriptionRequest, at now: Timestamp) throws -> SubscriptionPut {
        var owner = try BoundStatement(
            db,
            """
            SELECT device.app, profile.user, profile.reason IS NOT NULL,
                \(CounterTable.sum(.subscriptions, of: "device.app")),
                coalesce((SELECT version FROM app_document
                    WHERE app_document.app = device.app AND kind = 'item_rules' AND name = ''), 0)
            FROM device
            JOIN app ON app.serial = device.app AND app.ended_at IS NULL
            LEFT JOIN device_profile AS profile ON profile.device = device.serial WHERE device.serial = ?
            """)
        owner.bind(request.device.rawValue)
        let found = try owner.first { columns in
            (
                app: AppSerial(columns.integer(0)), user: columns.text(1).flatMap(UserID.init),
                isSuspended: columns.integer(2) != 0, count: columns.integer(3), rulesRevision: columns.integer(4)
            )
        }
        guard let found else { return .deviceGone }
        guard !found.isSuspended else { return .deviceSuspended }
        if let revision = request.rulesRevision, revision != found.rulesRevision { return .rulesChanged }
        if let earlier = try earlier(request) { return try change(earlier, request, at: now) }
        guard request.changed == nil else { return .unknown }
        let count = try Int.first(
            db, "SELECT count(*) FROM subscription WHERE device = ? AND status < \(Self.endedStatus)",
            [request.device.rawValue]
        )
        guard count ?? 0 < request.limit, found.count < SubscriptionLimits.perApp else { return .tooMany }
        let subscription = Subscription(
            serial: SubscriptionSerial(0), id: request.proposed, device: request.device, app: found.app, user: found.user,
            definition: request.definition, machine: SubscriptionMachine(request.definition.policy, at: now), createdAt: now)
        let made = try insert(subscription, request.condition)
        try note(request.found, of: made)
        try handOver(made.serial, to: request.otherShards)
        return .made(made)
    }

    private func earlier(_ request: SubscriptionRequest) throws -> Subscription? {
        if let id = request.changed { return try subscription(id, of: request.device) }
        guard let key = request.definition.key else { return nil }
        return try subscriptions(of: request.device, SubscriptionFilter(key: key), after: SubscriptionSerial(0), limit: 1)
            .first
    }

    private func change(_ earlier: Subscription, _ request: SubscriptionRequest, at now: Timestamp) throws -> SubscriptionPut
    {
        if let revision = request.revision, revision != earlier.machine.revision { return .overtaken }
        guard request.definition.watchesTheSame(as: earlier.definition) else { return .frozen(earlier) }
        // To change one by its identifier arms it, be the change as small as none.
        if request.changed == nil, request.definition == earlier.definition { return .same(earlier) }
        var changed = earlier
        changed.definition = request.definition
        changed.machine.change(request.definition.policy, at: now)
        try update(changed)
        let shape = try request.condition.map { try self.shape($0) }
        let former = try Int64.fetchAll(
            db.cachedStatement(
                sql: "SELECT DISTINCT shape FROM subscription_item WHERE subscription = ? AND shape IS NOT NULL"),
            arguments: [earlier.serial.rawValue])
        try db.run(
            """
            UPDATE subscription_item SET shape = ?, constants = ?, version =
                coalesce((SELECT version FROM item WHERE item.app = subscription_item.app
                    AND item.name = subscription_item.item), 0), last_firing = 0, held = NULL
            WHERE subscription = ?
            """, [shape, request.condition?.constants.map { Data($0) }, earlier.serial.rawValue])
        try note(request.found, of: changed)
        for former in former where former != shape { try forgetShape(former) }
        try handOver(changed.serial, to: request.otherShards)
        return .changed(changed)
    }

    private func handOver(_ subscription: SubscriptionSerial, to shards: [Shard]) throws {
        guard !shards.isEmpty else { return }
        var addition = try HandOverTable(db).addition(of: .subscriptionPut)
        for shard in shards { try addition.add(String(subscription.rawValue), to: shard) }
    }

    private func insert(_ new: Subscription, _ condition: WatchedCondition?) throws -> Subscription {
        var insert = try BoundStatement(
            db,
            """
            INSERT INTO subscription (mode, condition, format, tags, policy, cool_down, status, status_at, revision, fired_at,
                expires_at, max_frequency, buffer_size, id, device, app, "user", key, fields, items, created_at)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING serial
            """)
        bind(new, to: &insert)
        insert.bind(new.id.value)
        insert.bind(new.device.rawValue)
        insert.bind(new.app.rawValue)
        insert.bind(new.user?.text)
        insert.bind(new.definition.key)
        insert.bind(ValueCoding.encode(new.definition.fields))
        insert.bind(new.definition.items.count)
        insert.bind(new.createdAt.milliseconds)
        var subscription = new
        subscription.serial = SubscriptionSerial(try insert.inserted())
        try add(1, to: new.app)
        let shape = try condition.map { try self.shape($0) }
        for (place, item) in new.definition.items.enumerated() {
            try db.run(
                """
                INSERT INTO subscription_item (app, item, subscription, place, shape, constants, version) VALUES
                    (?1, ?2, ?3, ?4, ?5, ?6, coalesce((SELECT version FROM item WHERE app = ?1 AND name = ?2), 0))
                """,
                [
                    new.app.rawValue, item.text, subscription.serial.rawValue, place, shape,
                    condition?.constants.map { Data($0) },
                ])
        }
        return subscription
    }

    /// Writes whether the condition held when the subscription was armed. An item that has another update by now is left out, and on an
    /// item without an update no condition holds.
    private func note(_ found: [FoundCondition], of subscription: Subscription) throws {
        try db.run(
            "UPDATE subscription_item SET held = 0 WHERE subscription = ? AND version = 0", [subscription.serial.rawValue])
        for found in found {
            try db.run(
                "UPDATE subscription_item SET held = ? WHERE app = ? AND item = ? AND subscription = ? AND version = ?",
                [
                    found.holds, subscription.app.rawValue, found.item.text, subscription.serial.rawValue, found.version,
                ])
        }
    }

    private func update(_ subscription: Subscription) throws {
        var update = try BoundStatement(
            db,
            """
            UPDATE subscription SET mode = ?, condition = ?, format = ?, tags = ?, policy = ?, cool_down = ?, status = ?,
                status_at = ?, revision = ?, fired_at = ?, expires_at = ?, max_frequency = ?, buffer_size = ? WHERE serial = ?
            """)
        bind(subscription, to: &update)
        update.bind(subscription.serial.rawValue)
        try update.run()
    }

    private func bind(_ subscription: Subscription, to statement: inout BoundStatement) {
        let (definition, machine) = (subscription.definition, subscription.machine)
        statement.bind(definition.mode.map { $0 == .merge ? 0 : 1 })
        statement.bind(definition.trigger)
        statement.bind(String(decoding: definition.format.json.bytes, as: UTF8.self))
        statement.bind(ValueCoding.encode(definition.tags))
        statement.bind(machine.policy.number)
        statement.bind(machine.policy.coolDownSeconds)
        statement.bind(machine.status.number)
        statement.bind(machine.statusAt.milliseconds)
        statement.bind(machine.revision)
        statement.bind(machine.lastFiredAt?.milliseconds)
        statement.bind(definition.expiresAt?.milliseconds)
        statement.bind(definition.pace?.maxFrequency)
        statement.bind(definition.pace?.bufferSize)
    }

    static func texts(_ bytes: [UInt8]) -> [String] {
        (ValueCoding.values(bytes) ?? []).compactMap { value in
            if case .string(let text) = value { text } else { nil }
        }
    }

    // MARK: Statuses of devices

    /// Changes the subscriptions of a device after a change of its status.
    func follow(_ change: StatusChange, of device: DeviceSerial) throws {
        let ofDevice = "device = ? AND status < \(Self.endedStatus)"
        try db.run("UPDATE subscription SET revision = revision + 1 WHERE \(ofDevice)", [device.rawValue])
        guard db.changesCount > 0 else { return }
        if change.isFollowed { try handOver(device) }
        guard change.armsAgain else { return }
        try db.run(
            """
            UPDATE subscription_item SET held = NULL, version = coalesce((SELECT item.version FROM item
                WHERE item.app = subscription_item.app AND item.name = subscription_item.item), 0)
            WHERE last_firing <= 0 AND subscription IN (SELECT serial FROM subscription WHERE \(ofDevice))
            """, [device.rawValue])
        // No condition is true before the first update.
        try db.run(
            """
            UPDATE subscription_item SET held = 0
            WHERE version = 0 AND subscription IN (SELECT serial FROM subscription WHERE \(ofDevice))
            """, [device.rawValue])
    }

    /// Writes one hand-over to each shard that has an item of the device's subscriptions.
    private func handOver(_ device: DeviceSerial) throws {
        var select = try BoundStatement(
            db,
            """
            SELECT DISTINCT watched.app, watched.item
            FROM subscription JOIN subscription_item AS watched ON watched.subscription = subscription.serial
            WHERE subscription.device = ? AND subscription.status < \(Self.endedStatus)
            """)
        select.bind(device.rawValue)
        let shards = ShardSet(
            try select.all { columns in Shard(of: AppSerial(columns.integer(0)), item: columns.text(1) ?? "") })
        var addition = try HandOverTable(db).addition(of: .subscriptionsChanged)
        for shard in shards.shards { try addition.add(String(device.rawValue), to: shard) }
    }

    // MARK: Shapes

    private func shape(_ condition: WatchedCondition) throws -> Int64? {
        if let known = try Int64.first(db, "SELECT serial FROM condition_shape WHERE shape = ?", [condition.shape]) {
            return known
        }
        return try db.inserted(
            "INSERT INTO condition_shape (shape, source) VALUES (?, ?) RETURNING serial",
            [condition.shape, condition.source])
    }

    /// Removes the shape of a condition, unless a subscription uses it.
    func forgetShape(_ shape: Int64) throws {
        try db.run(
            "DELETE FROM condition_shape WHERE serial = ?1 AND NOT EXISTS (SELECT 1 FROM subscription_item WHERE shape = ?1)",
            [shape])
    }

    // MARK: Reading

    func subscription(_ id: SubscriptionID, of device: DeviceSerial) throws -> Subscription? {
        try subscriptions(of: device, SubscriptionFilter(id: id), after: SubscriptionSerial(0), limit: 1).first
    }

    func subscriptions(
        of device: DeviceSerial, _ filter: SubscriptionFilter, after: SubscriptionSerial, limit: Int
    ) throws -> [Subscription] {
        let (condition, arguments) = Self.condition(filter)
        let select = try db.cachedStatement(
            sql: """
                SELECT *, (SELECT reason IS NOT NULL FROM device_profile WHERE device_profile.device = subscription.device) AS paused
                FROM subscription WHERE device = :device AND serial > :after AND status < \(Self.endedStatus)\(condition)
                ORDER BY serial LIMIT :limit
                """)
        // Those without the tag take no place of the page.
        let rowLimit = filter.tag == nil ? limit : .max
        let all: StatementArguments = ["device": device.rawValue, "after": after.rawValue, "limit": rowLimit]
        var found: [Subscription] = []
        let rows = try Row.fetchCursor(select, arguments: all + arguments)
        while found.count < limit, let row = try rows.next() {
            if let tag = filter.tag, !Self.texts(row.bytes("tags") ?? []).contains(tag) { continue }
            found.append(try subscription(row))
        }
        return found
    }

    private static func condition(_ filter: SubscriptionFilter) -> (sql: String, arguments: StatementArguments) {
        var sql = ""
        var arguments = StatementArguments()
        if let status = filter.status {
            sql += " AND status = :status"
            arguments += ["status": status.number]
        }
        if let key = filter.key {
            sql += " AND key = :key"
            arguments += ["key": key]
        }
        if let id = filter.id {
            sql += " AND id = :id"
            arguments += ["id": id.value.data]
        }
        return (sql, arguments)
    }

    private func subscription(_ row: Row) throws -> Subscription {
        let unreadable = StoreFault(.unavailable, "a subscription cannot be read")
        let serial = SubscriptionSerial(row["serial"])
        let names = try String.fetchAll(
            db.cachedStatement(sql: "SELECT item FROM subscription_item WHERE subscription = ? ORDER BY place"),
            arguments: [serial.rawValue])
        guard let json = JSONValue(parsing: Array((row["format"] as String).utf8)),
            let format = try? NotificationFormat(json)
        else { throw unreadable }
        let machine = SubscriptionMachine(
            .init(number: row["policy"], coolDownSeconds: row["cool_down"]),
            row["status"] == SubscriptionMachine.Status.triggered.number ? .triggered : .subscribed,
            at: row.timestamp("status_at"), revision: row["revision"],
            lastFiredAt: (row["fired_at"] as Int64?).map(Timestamp.init(milliseconds:)),
            isPaused: (row["paused"] as Bool?) ?? false)
        return Subscription(
            serial: serial, id: SubscriptionID(try row.bytes16("id")), device: DeviceSerial(row["device"]),
            app: AppSerial(row["app"]), user: (row["user"] as String?).flatMap(UserID.init),
            definition: .init(
                items: names.compactMap { ItemName($0) }, fields: Self.texts(row.bytes("fields") ?? []),
                mode: (row["mode"] as Int?).map { $0 == 0 ? .merge : .distinct }, trigger: row["condition"], format: format,
                policy: machine.policy,
                pace: (row["max_frequency"] as Double?).map { FiringPace(maxFrequency: $0, bufferSize: row["buffer_size"]) },
                key: row["key"], tags: Self.texts(row.bytes("tags") ?? []),
                expiresAt: (row["expires_at"] as Int64?).map(Timestamp.init(milliseconds:))),
            machine: machine, createdAt: row.timestamp("created_at"))
    }

    // MARK: Ending

    func end(of device: DeviceSerial, _ filter: SubscriptionFilter) throws -> Int {
        let (condition, arguments) = Self.condition(filter)
        if let tag = filter.tag {
            let rows = try Row.fetchAll(
                db.cachedStatement(
                    sql:
                        "SELECT serial, tags FROM subscription WHERE device = :device AND status < \(Self.endedStatus)\(condition)"
                ),
                arguments: ["device": device.rawValue] + arguments)
            let tagged = rows.filter { Self.texts($0.bytes("tags") ?? []).contains(tag) }
            for row in tagged { try end("serial = :serial", ["serial": row["serial"] as Int64]) }
            return tagged.count
        }
        return try end("device = :device" + condition, ["device": device.rawValue] + arguments)
    }

    @discardableResult
    func end(_ condition: String, _ arguments: StatementArguments) throws -> Int {
        try db.run(
            """
            UPDATE subscription SET status = \(Self.endedStatus), key = NULL
            WHERE status < \(Self.endedStatus) AND \(condition)
            """, arguments)
        return db.changesCount
    }

    func endExpired(in shards: ShardSet, at now: Timestamp, limit: Int) throws -> Int {
        try end(
            """
            serial IN (SELECT serial FROM subscription WHERE expires_at <= :now AND status < \(Self.endedStatus)
                \(shards.condition(on: "device")) LIMIT :limit)
            """,
            shards.arguments(with: ["now": now.milliseconds, "limit": limit]))
    }

    func ended(of device: DeviceSerial?, in shards: ShardSet, limit: Int) throws -> [EndedSubscription] {
        let ofDevice = device == nil ? "" : " AND device = :device"
        let select = try db.cachedStatement(
            sql: """
                SELECT serial, device FROM subscription
                WHERE status = \(Self.endedStatus)\(ofDevice) \(shards.condition(on: "device")) ORDER BY serial LIMIT :limit
                """)
        var arguments: StatementArguments = ["limit": limit]
        if let device { arguments += ["device": device.rawValue] }
        return try Row.fetchAll(select, arguments: shards.arguments(with: arguments)).map { row in
            EndedSubscription(serial: SubscriptionSerial(row[0]), device: DeviceSerial(row[1]))
        }
    }

    /// Removes subscriptions, and writes a hand-over to the home of each item that they watched. An ended subscription counts
    /// for its app until it is removed.
    ///
    /// - Parameter condition: Selects rows of `subscription`.
    func remove(_ condition: String, _ arguments: StatementArguments) throws {
        let select = try db.cachedStatement(
            sql: """
                SELECT app, item, subscription, shape FROM subscription_item
                WHERE subscription IN (SELECT serial FROM subscription WHERE \(condition))
                """)
        var addition = try HandOverTable(db).addition(of: .subscriptionRemoved)
        let watched = try Row.fetchCursor(select, arguments: arguments)
        while let row = try watched.next() {
            let (app, item, subscription) = (row[0] as Int64, row[1] as String, row[2] as Int64)
            let shape = (row[3] as Int64?).map { String($0) } ?? ""
            try addition.add("\(app) \(subscription) \(shape) \(item)", to: Shard(of: AppSerial(app), item: item))
        }
        let delete = try db.cachedStatement(sql: "DELETE FROM subscription WHERE \(condition) RETURNING app")
        let apps = try Int64.fetchAll(delete, arguments: arguments)
        let removed = Dictionary(grouping: apps, by: { $0 }).mapValues(\.count)
        for (app, count) in removed.sorted(by: { $0.key < $1.key }) { try add(-count, to: AppSerial(app)) }
    }

    /// Changes the number of subscriptions of an app.
    private func add(_ count: Int, to app: AppSerial) throws {
        try CounterTable(db).add([(.subscriptions, count)], to: app)
    }

    // MARK: Watching

    /// See ``SubscriptionStore/itemsNeverFired(in:after:limit:)``.
    func itemsNeverFired(
        in shards: ShardSet, after place: WatchPlace, limit: Int
    ) throws -> (items: [ItemKey], end: WatchPlace?) {
        var select = try BoundStatement(
            db,
            """
            SELECT watched.app, watched.item, watched.subscription, watched.last_firing <= 0 AND subscription.status = 0
                AND (policy != \(SubscriptionMachine.Policy.everyCrossing.number) OR watched.held = 0)
                AND EXISTS (SELECT 1 FROM item WHERE item.app = watched.app AND item.name = watched.item)
            FROM subscription_item AS watched JOIN subscription ON subscription.serial = watched.subscription
            WHERE (watched.app, watched.item, watched.subscription) > (?, ?, ?)
            ORDER BY watched.app, watched.item, watched.subscription LIMIT ?
            """)
        select.bind(place.app.rawValue)
        select.bind(place.item)
        select.bind(place.subscription.rawValue)
        select.bind(limit)
        var items: [ItemKey] = []
        var (count, end) = (0, place)
        try select.forEachRow { columns in
            count += 1
            end = WatchPlace(
                app: AppSerial(columns.integer(0)), item: columns.text(1) ?? "",
                subscription: SubscriptionSerial(columns.integer(2)))
            if columns.integer(3) != 0, let name = ItemName(end.item) {
                let key = ItemKey(app: end.app, name: name)
                if items.last != key, shards.contains(Shard(of: key.app, item: end.item)) { items.append(key) }
            }
            return true
        }
        return (items, count < limit ? nil : end)
    }

    func armed(
        _ condition: String, limit: Int = .max, _ bind: (inout BoundStatement) -> Void
    ) throws -> [ArmedSubscription] {
        var select = try BoundStatement(
            db,
            """
            SELECT watched.app, watched.item, subscription.serial, subscription.revision, policy, watched.constants,
                watched.version, shape.shape,
                CASE WHEN watched.constants IS NULL THEN subscription.condition ELSE shape.source END,
                subscription.status = 0 AND profile.reason IS NULL, cool_down, fired_at,
                watched.last_firing > 0, watched.held, subscription.device, profile.user
            FROM subscription_item AS watched JOIN subscription ON subscription.serial = watched.subscription
            LEFT JOIN device_profile AS profile ON profile.device = subscription.device
            LEFT JOIN condition_shape AS shape ON shape.serial = watched.shape
            WHERE \(condition) LIMIT ?
            """)
        bind(&select)
        select.bind(limit)
        return try select.all { columns in
            guard let item = columns.text(1).flatMap({ ItemName($0) }) else {
                throw StoreFault(.unavailable, "an item's name cannot be read")
            }
            let condition = columns.text(7).map { shape in
                WatchedCondition(shape: shape, source: columns.text(8) ?? "", constants: columns.bytes(5))
            }
            return ArmedSubscription(
                item: ItemKey(app: AppSerial(columns.integer(0)), name: item), isArmed: columns.integer(9) != 0,
                target: .init(
                    subscription: SubscriptionSerial(columns.integer(2)), revision: columns.integer(3)),
                owner: .init(device: DeviceSerial(columns.integer(14)), user: columns.text(15).flatMap { UserID($0) }),
                policy: .init(rawValue: UInt8(clamping: columns.integer(4))) ?? .once, condition: condition,
                since: columns.integer(6), hasFired: columns.integer(12) != 0,
                held: columns.integerIfAny(13).map { $0 != 0 },
                coolDownSeconds: columns.integer(10),
                firedAt: columns.integerIfAny(11).map(Timestamp.init(milliseconds:)))
        }
    }

    // MARK: Firing

    func subjects(_ subscriptions: [SubscriptionSerial]) throws -> [FiringSubject] {
        var select = try BoundStatement(
            db,
            """
            SELECT \(FiringSubscription.columns), id, subscription.device, subscription.app, key, fields, format, items,
                profile.locale, profile.time_zone
            FROM subscription LEFT JOIN device_profile AS profile ON profile.device = subscription.device WHERE serial = ?
            """)
        let place = FiringSubscription.columnCount
        return try subscriptions.compactMap { serial -> FiringSubject? in
            select.bind(serial.rawValue)
            return try select.first { columns -> FiringSubject? in
                let subscription = FiringSubscription(columns, from: 0)
                guard subscription.isArmed else { return nil }
                return FiringSubject(
                    serial: serial, id: SubscriptionID(try columns.bytes16(place)),
                    device: DeviceSerial(columns.integer(place + 1)), app: AppSerial(columns.integer(place + 2)),
                    key: columns.text(place + 3), fields: Self.texts(columns.bytes(place + 4) ?? []),
                    format: columns.text(place + 5) ?? "", policy: subscription.machine.policy, pace: subscription.pace,
                    items: Int(columns.integer(place + 6)),
                    reader: Reader(locale: columns.text(place + 7), timeZone: columns.text(place + 8)))
            } ?? nil
        }
    }
}
