import CarillonCore
import CarillonWire
import GRDB

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The rows of calls that are owed, and the lanes that they stand in, inside one transaction.
struct CallLanes {
    /// A row of `outward_call` as it begins.
    struct NewCall {
        var lane: Int64
        var device: Int64
        var watch: Int64?
        var callback: Int64?
        var dueAt: Int64
        var setAt: Int64
    }

    private let db: Database

    init(_ db: Database) { self.db = db }

    // MARK: Entering and moving

    /// The lane of an app's calls to a peer, made when it is missing, with the standing that the peer has with the app.
    func lane(peer: String, kind: CallKind, app: Int64) throws -> Int64 {
        let select = try db.cachedStatement(sql: "SELECT serial FROM call_lane WHERE app = ? AND peer = ? AND kind = ?")
        if let lane = try Int64.fetchOne(select, arguments: [app, peer, kind.rawValue]) { return lane }
        // A peer is a host, a colon and a port; a host of IPv6 has colons of its own.
        let host = peer.lastIndex(of: ":").map { String(peer[..<$0]) } ?? peer
        let insert = try db.cachedStatement(
            sql: """
                INSERT INTO call_lane (app, kind, peer, host, on_trial, failures, rests_until, head_at)
                SELECT :app, :kind, :peer, :host, coalesce(on_trial, 1), coalesce(failures, 0), coalesce(rests_until, 0), :never
                FROM (SELECT 1) LEFT JOIN call_lane ON app = :app AND peer = :peer LIMIT 1
                """)
        try insert.execute(arguments: [
            "app": app, "kind": kind.rawValue, "peer": peer, "host": host, "never": Timestamp.never.milliseconds,
        ])
        return db.lastInsertedRowID
    }

    func insert(_ call: NewCall) throws {
        let insert = try db.cachedStatement(
            sql: "INSERT INTO outward_call (lane, device, watch, callback, due_at, set_at) VALUES (?, ?, ?, ?, ?, ?)")
        try insert.execute(arguments: [call.lane, call.device, call.watch, call.callback, call.dueAt, call.setAt])
    }

    /// The ping of a watch is due at a moment, at a peer that may be another than before.
    func putPing(of watch: Int64, device: Int64, lane: Int64, dueAt: Timestamp, at now: Timestamp) throws {
        try db.execute(
            sql: "UPDATE outward_call SET lane = ?, due_at = ?, set_at = ? WHERE watch = ?",
            arguments: [lane, dueAt.milliseconds, now.milliseconds, watch])
        guard db.changesCount == 0 else { return }
        try insert(
            NewCall(lane: lane, device: device, watch: watch, dueAt: dueAt.milliseconds, setAt: now.milliseconds))
    }

    func removePing(of watch: Int64) throws {
        try db.execute(sql: "DELETE FROM outward_call WHERE watch = ?", arguments: [watch])
    }

    // MARK: Looking

    /// See ``WatchStore/dueCalls(at:besides:limit:)``.
    func due(at now: Timestamp, besides crowd: CallCrowds, limit: Int) throws -> [DueCall] {
        // One look at the index for each app, kind and standing that there is.
        let select = try db.cachedStatement(
            sql: """
                WITH RECURSIVE share (id) AS (
                    SELECT min(share) FROM call_lane
                    UNION ALL
                    SELECT (SELECT min(call_lane.share) FROM call_lane WHERE call_lane.share > share.id)
                    FROM share WHERE share.id NOT NULL
                )
                SELECT id FROM share
                WHERE id NOT NULL AND (SELECT min(ready_at) FROM call_lane WHERE call_lane.share = id) <= ?
                """)
        let shares = try Int64.fetchAll(select, arguments: [now.milliseconds])
        let proven = shares.filter { $0 & 1 == 0 }
        let onTrial = shares.filter { $0 & 1 == 1 }
        return try due(proven, now, crowd.proven, limit) + due(onTrial, now, crowd.onTrial, limit)
    }

    /// The most calls that one statement answers with.
    private static let mostDue = 2048

    private func due(_ shares: [Int64], _ now: Timestamp, _ crowd: CallCrowd, _ limit: Int) throws -> [DueCall] {
        guard !shares.isEmpty else { return [] }
        let select = try db.cachedStatement(
            sql: """
                SELECT lane.kind, lane.app, lane.peer, lane.host, lane.on_trial, lane.served_at, call.serial, call.device,
                    call.ready_at
                FROM json_each(:shares) AS share
                CROSS JOIN call_lane AS lane ON lane.serial IN (
                    SELECT due.serial FROM call_lane AS due
                    WHERE due.share = share.value AND due.ready_at <= :now
                        AND due.peer NOT IN (SELECT value FROM json_each(:peers))
                        AND due.host NOT IN (SELECT value FROM json_each(:hosts))
                        AND EXISTS (
                            SELECT 1 FROM outward_call AS any WHERE any.lane = due.serial AND any.ready_at <= :now
                                AND any.device NOT IN (SELECT value FROM json_each(:devices)))
                    ORDER BY due.ready_at LIMIT :limit)
                CROSS JOIN outward_call AS call ON call.serial = (
                    SELECT first.serial FROM outward_call AS first WHERE first.lane = lane.serial
                        AND first.ready_at <= :now AND first.device NOT IN (SELECT value FROM json_each(:devices))
                    ORDER BY first.ready_at LIMIT 1)
                """)
        let rows = try Row.fetchAll(
            select,
            arguments: [
                "shares": Self.json(shares), "now": now.milliseconds, "peers": Self.json(crowd.peers),
                "hosts": Self.json(crowd.hosts), "devices": Self.json(crowd.devices.map(\.rawValue)),
                "limit": max(1, min(limit, Self.mostDue / shares.count)),
            ])
        return rows.compactMap { DueCall(row: $0) }
    }

    private static func json(_ values: some Sequence<some Encodable>) throws -> String {
        String(decoding: try JSONEncoder().encode(Array(values)), as: UTF8.self)
    }

    // MARK: Leases

    func lease(_ call: DueCall, at now: Timestamp, until end: Timestamp) throws -> LeasedCall? {
        let select = try db.cachedStatement(
            sql: """
                SELECT call.lane, call.fence, call.watch, call.callback, lane.on_trial, lane.failures
                FROM outward_call AS call JOIN call_lane AS lane ON lane.serial = call.lane
                WHERE call.serial = ? AND call.ready_at <= ?
                """)
        guard let row = try Row.fetchOne(select, arguments: [call.serial, now.milliseconds]) else { return nil }
        let work: LeasedCall.Work
        if let watch = row["watch"] as Int64? {
            work = .ping(try Watch.fetch("watch.serial = ?", watch, in: db))
        } else {
            work = .callback(try DisconnectCallback.fetch(row["callback"], in: db))
        }
        let lease = CallLease(call: call.serial, fence: row["fence"] + 1)
        let update = try db.cachedStatement(
            sql: "UPDATE outward_call SET held_until = ?, fence = ? WHERE serial = ?")
        try update.execute(arguments: [end.milliseconds, lease.fence, lease.call])
        let serve = try db.cachedStatement(sql: "UPDATE call_lane SET served_at = ? WHERE serial = ?")
        try serve.execute(arguments: [now.milliseconds, row["lane"] as Int64])
        return LeasedCall(
            lease: lease, due: call,
            standing: PeerStanding(isOnTrial: row["on_trial"] != 0, failures: row["failures"]), work: work)
    }

    func isInForce(_ lease: CallLease) throws -> Bool {
        let select = try db.cachedStatement(
            sql: "SELECT 1 FROM outward_call WHERE serial = ? AND fence = ? AND held_until <> 0")
        return try Int.fetchOne(select, arguments: [lease.call, lease.fence]) != nil
    }

    /// Answers whether the lease was in force: a call is answered for once. What it says of its peer is noted for all
    /// calls of the app to it.
    func end(_ end: CallEnd) throws -> Bool {
        let update = try db.cachedStatement(
            sql: "UPDATE outward_call SET held_until = 0 WHERE serial = ? AND fence = ? AND held_until <> 0")
        try update.execute(arguments: [end.lease.call, end.lease.fence])
        guard db.changesCount == 1 else { return false }
        let note = try db.cachedStatement(
            sql: "UPDATE call_lane SET on_trial = ?, failures = ?, rests_until = ? WHERE app = ? AND peer = ?")
        try note.execute(arguments: [
            end.standing.isOnTrial, end.standing.failures, end.peerRestsUntil.milliseconds, end.app.rawValue, end.peer,
        ])
        return true
    }

    // MARK: Time

    func setDue(_ call: Int64, _ dueAt: Timestamp, at now: Timestamp) throws {
        let update = try db.cachedStatement(sql: "UPDATE outward_call SET due_at = ?, set_at = ? WHERE serial = ?")
        try update.execute(arguments: [dueAt.milliseconds, now.milliseconds, call])
    }

    /// Spreads what is overdue by its number, which is as good as by chance.
    func spreadOverduePings(at now: Timestamp) throws {
        try db.execute(
            sql: """
                UPDATE outward_call SET set_at = :now, due_at = :now + (serial * 7919)
                    % (min((SELECT ping_interval FROM watch WHERE watch.serial = outward_call.watch), :span) * 1000)
                WHERE watch NOT NULL AND due_at < :now
                """,
            arguments: ["now": now.milliseconds, "span": PingMachine.firstWithinSeconds])
    }

    /// See ``WatchStore/bringBackCalls(at:longestLease:)``.
    func bringBack(at now: Timestamp, longestLease: Int64) throws {
        try db.execute(
            sql: "UPDATE outward_call SET due_at = :now + max(0, due_at - set_at), set_at = :now WHERE set_at > :now",
            arguments: ["now": now.milliseconds])
        try db.execute(
            sql: "UPDATE outward_call SET held_until = :now WHERE held_until > :now + :lease",
            arguments: ["now": now.milliseconds, "lease": longestLease * 1000])
        try db.execute(
            sql: "UPDATE call_lane SET rests_until = 0 WHERE rests_until > :now + :rest",
            arguments: ["now": now.milliseconds, "rest": PeerStanding.longestRestMilliseconds])
        try db.execute(
            sql: "UPDATE call_lane SET served_at = :now WHERE served_at > :now", arguments: ["now": now.milliseconds])
    }
}

extension DueCall {
    /// Nil for a kind that this version does not know.
    init?(row: Row) {
        guard let kind = CallKind(rawValue: row["kind"]) else { return nil }
        self.init(
            serial: row["serial"], kind: kind, app: AppSerial(row["app"]), device: DeviceSerial(row["device"]),
            peer: row["peer"], host: row["host"], isOnTrial: row["on_trial"] != 0, readyAt: row.timestamp("ready_at"),
            servedAt: row.timestamp("served_at"))
    }
}
