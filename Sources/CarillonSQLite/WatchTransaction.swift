import CarillonCore
import CarillonWire
import GRDB

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Changes of watches, and of the calls that they owe, inside one transaction.
struct WatchTransaction {
    private let db: Database

    init(_ db: Database) { self.db = db }

    // MARK: Watches

    func put(_ wish: WatchWish, at now: Timestamp) throws -> PutWatchResult? {
        guard
            try Int.fetchOne(db, sql: "SELECT 1 FROM channel WHERE serial = ?", arguments: [wish.channel.rawValue]) != nil
        else { return nil }
        let earlier = try Watch.fetch(of: wish.channel, in: db)
        var dueAt = wish.firstDueAt
        if let earlier, earlier.ping?.address == wish.ping?.address, let due = earlier.dueAt, let first = dueAt {
            dueAt = min(due, first)
        }
        let peer = try wish.ping.map { try self.peer($0.address, dueAt: dueAt ?? now) }
        try db.execute(
            sql: """
                INSERT INTO watch (channel, ping_address, ping_interval, ping_peer, due_at, disconnect_address,
                    callback_id, secret, token, created_at)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT (channel) DO UPDATE SET revision = revision + 1, ping_address = excluded.ping_address,
                    ping_interval = excluded.ping_interval, ping_peer = excluded.ping_peer, due_at = excluded.due_at,
                    disconnect_address = excluded.disconnect_address, token = excluded.token,
                    failures = CASE WHEN ping_address IS excluded.ping_address THEN failures ELSE 0 END,
                    last_at = CASE WHEN ping_address IS excluded.ping_address THEN last_at END,
                    secret = CASE WHEN ? THEN excluded.secret ELSE secret END
                """,
            arguments: [
                wish.channel.rawValue, wish.ping?.address.text, wish.ping?.intervalSeconds, peer,
                wish.ping == nil ? nil : (dueAt ?? now).milliseconds, wish.disconnectAddress?.text, wish.callbackID,
                Data(wish.sealed.secret), Data(wish.sealed.token), now.milliseconds, wish.renewsSecret,
            ])
        return try Watch.fetch(of: wish.channel, in: db).map { PutWatchResult(watch: $0, isNew: earlier == nil) }
    }

    /// Answers whether it counted.
    func apply(_ change: WatchChange) throws -> Bool {
        switch change {
        case .pinged(let record): return try self.record(record)
        case .vouchedFor(let channel):
            try db.execute(
                sql:
                    "UPDATE watch SET told = NULL, failures = 0, revision = revision + 1 WHERE channel = ? AND told NOT NULL",
                arguments: [channel.rawValue])
            return db.changesCount == 1
        }
    }

    func record(_ record: PingRecord) throws -> Bool {
        guard try endLease(record.lease) else { return false }
        try db.execute(
            sql: """
                UPDATE watch SET told = ?, failures = ?, due_at = ? WHERE serial = ? AND revision = ? AND due_at NOT NULL
                """,
            arguments: [
                record.machine.told?.rawValue, record.machine.failures, record.dueAt.milliseconds,
                record.watch.rawValue, record.revision,
            ])
        let counts = db.changesCount == 1
        if counts, let last = record.lastPing {
            try db.execute(
                sql: "UPDATE watch SET last_at = ?, last_code = ?, last_detail = ? WHERE serial = ?",
                arguments: [last.at.milliseconds, last.failure?.rawValue, last.detail, record.watch.rawValue])
        }
        try lookAgain(at: record.lease.peer)
        return counts
    }

    // MARK: Ends of channels

    /// To be said before the channels are removed: those that are watched leave a callback behind.
    ///
    /// - Parameter condition: which rows of `channel` are meant.
    func channelsEnd(
        _ condition: String, _ arguments: StatementArguments, because reason: DisconnectReason, at now: Timestamp
    ) throws {
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT channel, disconnect_address, callback_id, secret, token FROM watch
                WHERE disconnect_address NOT NULL AND channel IN (SELECT serial FROM channel WHERE \(condition))
                """,
            arguments: arguments)
        let insert = try db.cachedStatement(
            sql: """
                INSERT INTO disconnect_callback
                    (channel, address, peer, webhook_id, secret, token, reason, ended_at, due_at)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
                """)
        for row in rows {
            let peer = try peer(CallAddress(stored: row["disconnect_address"]), dueAt: now)
            try insert.execute(arguments: [
                row["channel"] as Int64, row["disconnect_address"] as String, peer, row["callback_id"] as String,
                row["secret"] as Data, row["token"] as Data, reason.rawValue, now.milliseconds, now.milliseconds,
            ])
        }
    }

    func record(_ step: CallbackMachine.Step, of callback: DisconnectCallback, lease: CallLease) throws -> Bool {
        guard try endLease(lease) else { return false }
        switch step {
        case .delivered, .givenUp:
            try db.execute(sql: "DELETE FROM disconnect_callback WHERE serial = ?", arguments: [callback.serial])
        case .retry(let moment):
            try db.execute(
                sql: "UPDATE disconnect_callback SET attempts = ?, due_at = ? WHERE serial = ?",
                arguments: [callback.machine.attempts, moment.milliseconds, callback.serial])
        }
        try lookAgain(at: lease.peer)
        return true
    }

    // MARK: Calls that are due

    func lease(at now: Timestamp, until end: Timestamp, limit: Int) throws -> [LeasedCall] {
        let peers = try Row.fetchAll(
            db.cachedStatement(
                sql: "SELECT serial, fence FROM peer WHERE due_at <= ? AND leased_until <= ? ORDER BY due_at LIMIT ?"),
            arguments: [now.milliseconds, now.milliseconds, limit])
        let update = try db.cachedStatement(sql: "UPDATE peer SET leased_until = ?, fence = ? WHERE serial = ?")
        return try peers.compactMap { row -> LeasedCall? in
            let lease = CallLease(peer: row["serial"], fence: row["fence"] + 1)
            do {
                guard let work = try work(of: lease.peer, at: now) else {
                    try lookAgain(at: lease.peer)
                    return nil
                }
                try update.execute(arguments: [end.milliseconds, lease.fence, lease.peer])
                return LeasedCall(lease: lease, work: work)
            } catch let error where !(error is DatabaseError) {
                // A row that cannot be read holds up its own peer, and no other.
                try db.execute(
                    sql: "UPDATE peer SET due_at = ? WHERE serial = ?",
                    arguments: [now.adding(seconds: 3600).milliseconds, lease.peer])
                return nil
            }
        }
    }

    /// The call of a peer that has been due for the longest time; callbacks go before pings.
    private func work(of peer: Int64, at now: Timestamp) throws -> LeasedCall.Work? {
        let callbacks = try db.cachedStatement(
            sql: "SELECT * FROM disconnect_callback WHERE peer = ? AND due_at <= ? ORDER BY due_at LIMIT 1")
        if let row = try Row.fetchOne(callbacks, arguments: [peer, now.milliseconds]) {
            return .callback(try DisconnectCallback(row: row))
        }
        let watches = try db.cachedStatement(
            sql: Watch.select + " WHERE watch.ping_peer = ? AND watch.due_at <= ? ORDER BY watch.due_at LIMIT 1")
        return try Row.fetchOne(watches, arguments: [peer, now.milliseconds]).map { .ping(try Watch(row: $0)) }
    }

    /// Spreads what is overdue by the number of its watch, which is as good as by chance.
    func spreadOverduePings(at now: Timestamp) throws {
        try db.execute(
            sql: """
                UPDATE watch SET due_at = :now + (serial * 7919) % (min(ping_interval, :span) * 1000)
                WHERE due_at < :now
                """,
            arguments: ["now": now.milliseconds, "span": PingMachine.firstWithinSeconds])
        for peer in try Int64.fetchAll(
            db, sql: "SELECT serial FROM peer WHERE due_at < ?", arguments: [now.milliseconds])
        {
            try lookAgain(at: peer)
        }
    }

    /// The number of a peer, which is looked at not later than the moment.
    private func peer(_ address: CallAddress, dueAt: Timestamp) throws -> Int64? {
        try Int64.fetchOne(
            db,
            sql: """
                INSERT INTO peer (name, due_at) VALUES (?, ?)
                ON CONFLICT (name) DO UPDATE SET due_at = min(due_at, excluded.due_at) RETURNING serial
                """,
            arguments: [address.peer, dueAt.milliseconds])
    }

    private func endLease(_ lease: CallLease) throws -> Bool {
        let update = try db.cachedStatement(sql: "UPDATE peer SET leased_until = 0 WHERE serial = ? AND fence = ?")
        try update.execute(arguments: [lease.peer, lease.fence])
        return db.changesCount == 1
    }

    /// Finds out anew when a peer's first call is due; one without calls is forgotten.
    private func lookAgain(at peer: Int64) throws {
        let select = try db.cachedStatement(
            sql: """
                SELECT min(due_at) FROM (SELECT min(due_at) AS due_at FROM watch WHERE ping_peer = :peer
                    UNION ALL SELECT min(due_at) FROM disconnect_callback WHERE peer = :peer)
                """)
        if let due = try Int64.fetchOne(select, arguments: ["peer": peer]) {
            try db.execute(sql: "UPDATE peer SET due_at = ? WHERE serial = ?", arguments: [due, peer])
        } else {
            try db.execute(sql: "DELETE FROM peer WHERE serial = ?", arguments: [peer])
        }
    }
}
