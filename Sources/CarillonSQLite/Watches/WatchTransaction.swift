import CarillonCore
import CarillonWire
import GRDB
import Metrics

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Changes of watches, and of the calls that they owe, inside one transaction.
struct WatchTransaction {
    private let db: Database
    private let lanes: WorkLanes

    init(_ db: Database) {
        self.db = db
        lanes = WorkLanes(db)
    }

    // MARK: Watches

    func put(_ wish: WatchWish, at now: Timestamp) throws -> PutWatchResult {
        guard
            let owner = try Row.fetchOne(
                db,
                sql: """
                    SELECT channel.device, device.app FROM channel JOIN device ON device.serial = channel.device
                    JOIN app ON app.serial = device.app AND app.ended_at IS NULL
                    WHERE channel.serial = ? AND channel.of_user < 2
                    """,
                arguments: [wish.channel.rawValue])
        else { return .channelGone }
        let earlier = try Watch.fetch(of: wish.channel, in: db)
        if earlier == nil, let refusal = try refusal(owner, wish.limits) { return refusal }
        try db.run(
            """
            INSERT INTO watch (channel, device, app, ping_address, ping_interval, disconnect_address, callback_id,
                secret, token, created_at)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (channel) DO UPDATE SET revision = revision + 1, ping_address = excluded.ping_address,
                ping_interval = excluded.ping_interval, disconnect_address = excluded.disconnect_address,
                token = excluded.token,
                failures = CASE WHEN ping_address IS excluded.ping_address THEN failures ELSE 0 END,
                last_at = CASE WHEN ping_address IS excluded.ping_address THEN last_at END,
                secret = CASE WHEN ? THEN excluded.secret ELSE secret END
            """,
            [
                wish.channel.rawValue, owner["device"] as Int64, owner["app"] as Int64, wish.ping?.address.text,
                wish.ping?.intervalSeconds, wish.disconnectAddress?.text, wish.callbackID, Data(wish.sealed.secret),
                Data(wish.sealed.token), now.milliseconds, wish.renewsSecret,
            ])
        guard
            let serial = try Int64.first(db, "SELECT serial FROM watch WHERE channel = ?", [wish.channel.rawValue])
        else { return .channelGone }
        if let ping = wish.ping {
            var dueAt = wish.firstDueAt ?? now
            if let earlier, earlier.ping?.address == ping.address, let due = earlier.dueAt { dueAt = min(due, dueAt) }
            try lanes.put(
                .init(
                    kind: .ping, subject: serial, app: owner["app"], device: owner["device"], peer: ping.address.peer,
                    dueAt: dueAt), at: now)
        } else {
            try lanes.remove(.ping, of: serial)
        }
        return .put(try Watch.fetch("watch.serial = ?", serial, in: db), isNew: earlier == nil)
    }

    private func refusal(_ owner: Row, _ limits: WatchLimits) throws -> PutWatchResult? {
        let ofDevice = try Int.first(db, "SELECT count(*) FROM watch WHERE device = ?", [owner["device"] as Int64])
        if let ofDevice, ofDevice >= limits.perDevice { return .tooManyOfDevice }
        let ofApp = try Int.first(db, "SELECT watches FROM watch_usage WHERE app = ?", [owner["app"] as Int64])
        if let ofApp, ofApp >= limits.perApp { return .tooManyOfApp }
        return nil
    }

    /// Whether an effect would count now.
    func counts(_ effect: Effect) throws -> Bool {
        switch effect {
        case .pinged(let record):
            guard try lanes.isInForce(record.end.lease) else { return false }
            let select = try db.cachedStatement(
                sql: "SELECT 1 FROM watch WHERE serial = ? AND revision = ? AND ping_address NOT NULL")
            return try Int.fetchOne(select, arguments: [record.watch.rawValue, record.revision]) != nil
        case .vouchedFor(let channel):
            let select = try db.cachedStatement(sql: "SELECT 1 FROM watch WHERE channel = ? AND told NOT NULL")
            return try Int.fetchOne(select, arguments: [channel.rawValue]) != nil
        case .statusTold, .fired, .heldTold, .updateOffered, .updateRetracted, .request: return false
        }
    }

    /// It did not count; what the call said of its peer is noted all the same.
    func giveUp(_ effect: Effect) throws {
        if case .pinged(let record) = effect { _ = try lanes.end(record.end) }
    }

    /// Answers whether it counted.
    func apply(_ effect: Effect) throws -> Bool {
        switch effect {
        case .pinged(let record): return try self.record(record)
        case .vouchedFor(let channel):
            try db.run(
                "UPDATE watch SET told = NULL, failures = 0, revision = revision + 1 WHERE channel = ? AND told NOT NULL",
                [channel.rawValue])
            return db.changesCount == 1
        case .statusTold, .fired, .heldTold, .updateOffered, .updateRetracted, .request: return false
        }
    }

    func record(_ record: PingRecord) throws -> Bool {
        guard try lanes.end(record.end) else { return false }
        try db.run(
            """
            UPDATE watch SET told = ?, failures = ? WHERE serial = ? AND revision = ? AND ping_address NOT NULL
            """,
            [
                record.machine.told?.rawValue, record.machine.failures, record.watch.rawValue, record.revision,
            ])
        guard db.changesCount == 1 else { return false }
        if let last = record.lastPing {
            try db.run(
                "UPDATE watch SET last_at = ?, last_code = ?, last_detail = ? WHERE serial = ?",
                [last.at.milliseconds, last.failure?.rawValue, last.detail, record.watch.rawValue])
        }
        try lanes.setDue(record.end.lease.work, record.dueAt, at: record.end.at)
        return true
    }

    // MARK: Ends of channels

    /// To be said before the channels are removed: those that are watched leave a callback behind. What waits for one
    /// app, or for one peer of it, is bounded: the oldest are given up for the newest.
    ///
    /// - Parameter condition: which rows of `channel` are meant.
    func channelsEnd(
        _ condition: String, _ arguments: StatementArguments, because reason: DisconnectReason, at now: Timestamp,
        limits: CallbackLimits
    ) throws {
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT channel, device, app, disconnect_address, callback_id, secret, token FROM watch
                WHERE disconnect_address NOT NULL AND channel IN (SELECT serial FROM channel WHERE \(condition))
                """,
            arguments: arguments)
        let insert = try db.cachedStatement(
            sql: """
                INSERT INTO disconnect_callback
                    (channel, device, app, address, webhook_id, secret, token, reason, ended_at)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
                """)
        for row in rows {
            let app: Int64 = row["app"]
            // An address that cannot be read was checked when it was written: there is nobody to be called.
            guard let address = try? CallAddress(stored: row["disconnect_address"]) else { continue }
            try insert.execute(arguments: [
                row["channel"] as Int64, row["device"] as Int64, app, row["disconnect_address"] as String,
                row["callback_id"] as String, row["secret"] as Data, row["token"] as Data, reason.rawValue,
                now.milliseconds,
            ])
            let lane = try lanes.put(
                .init(
                    kind: .callback, subject: db.lastInsertedRowID, app: app, device: row["device"], peer: address.peer,
                    dueAt: now), at: now)
            try giveUpOldest(of: app, lane, limits)
        }
    }

    private func giveUpOldest(of app: Int64, _ lane: Int64, _ limits: CallbackLimits) throws {
        if let waiting = try lanes.queue(lane), waiting.count > limits.perPeer {
            try db.run("DELETE FROM disconnect_callback WHERE serial = ?", [waiting.oldest])
            db.count(1, of: Self.crowdedOut)
        }
        let usage = try db.cachedStatement(sql: "SELECT callbacks FROM watch_usage WHERE app = ?")
        if let waiting = try Int.fetchOne(usage, arguments: [app]), waiting > limits.perApp {
            try db.run(
                """
                DELETE FROM disconnect_callback WHERE serial =
                    (SELECT serial FROM disconnect_callback WHERE app = ? ORDER BY serial LIMIT 1)
                """,
                [app])
            db.count(1, of: Self.crowdedOut)
        }
    }

    private static let crowdedOut = ServerMetric.disconnectCallbacks.counter("crowded_out")

    func record(_ step: CallbackMachine.Step, of callback: DisconnectCallback, end: WorkEnd) throws -> Bool {
        guard try lanes.end(end) else { return false }
        switch step {
        case .delivered, .givenUp, .lost:
            try db.run("DELETE FROM disconnect_callback WHERE serial = ?", [callback.serial])
        case .retry(let moment):
            try db.run(
                "UPDATE disconnect_callback SET attempts = ? WHERE serial = ?",
                [callback.machine.attempts, callback.serial])
            try lanes.setDue(end.lease.work, moment, at: end.at)
        }
        return true
    }

    // MARK: Pings that are due

    /// Spreads what is overdue by its number, which is as good as by chance.
    func spreadOverduePings(at now: Timestamp) throws {
        try db.run(
            """
            UPDATE leased_work SET set_at = :now, due_at = :now + (serial * 7919)
                % (min((SELECT ping_interval FROM watch WHERE watch.serial = leased_work.subject), :span) * 1000)
            WHERE kind = :ping AND due_at < :now
            """,
            [
                "now": now.milliseconds, "span": PingMachine.firstWithinSeconds, "ping": WorkKind.ping.rawValue,
            ])
    }
}
