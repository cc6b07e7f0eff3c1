import CarillonCore
import CarillonWire
import GRDB

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The rows of scheduled work and the queues of this work, inside one transaction.
///
/// A queue exists as long as it has work. Each change of work also writes the amount of work in its queue, and the time at which
/// the queue's first work is ready.
struct WorkQueues {
    /// A new row of `leased_work`.
    struct NewWork {
        var kind: WorkKind
        /// The number of the work's subject in the table of its kind.
        var subject: Int64
        var app: Int64
        var device: Int64
        /// Host and port.
        var peer: String
        var dueAt: Timestamp
    }

    private let db: Database

    init(_ db: Database) { self.db = db }

    // MARK: Adding and moving

    /// Returns the queue of an app's work with a peer. Creates the queue if it is missing, with the reliability of the peer for
    /// the app.
    private func queue(of work: NewWork) throws -> Int64 {
        let select = try db.cachedStatement(sql: "SELECT serial FROM work_lane WHERE app = ? AND peer = ? AND kind = ?")
        if let queue = try Int64.fetchOne(select, arguments: [work.app, work.peer, work.kind.rawValue]) { return queue }
        // A peer is a host, a colon and a port. An IPv6 host also contains colons.
        let host = work.peer.lastIndex(of: ":").map { String(work.peer[..<$0]) } ?? work.peer
        return try db.inserted(
            """
            INSERT INTO work_lane (app, kind, peer, host, on_trial, failures, rests_until, head_at)
            SELECT :app, :kind, :peer, :host, coalesce(on_trial, 1), coalesce(failures, 0), coalesce(rests_until, 0), :never
            FROM (SELECT 1) LEFT JOIN work_lane ON app = :app AND peer = :peer LIMIT 1
            RETURNING serial
            """,
            [
                "app": work.app, "kind": work.kind.rawValue, "peer": work.peer, "host": host,
                "never": Timestamp.never.milliseconds,
            ])
    }

    func add(_ work: NewWork, at now: Timestamp) throws {
        let queue = try queue(of: work)
        let insert = try db.cachedStatement(
            sql: "INSERT INTO leased_work (lane, device, kind, subject, due_at, set_at) VALUES (?, ?, ?, ?, ?, ?)")
        try insert.execute(arguments: [
            queue, work.device, work.kind.rawValue, work.subject, work.dueAt.milliseconds, now.milliseconds,
        ])
        try changed(queue, adding: 1)
    }

    /// Moves the work of the same subject to the peer and the due time of the work.
    func move(_ work: NewWork, at now: Timestamp) throws {
        let select = try db.cachedStatement(
            sql: """
                SELECT lane.serial, lane.peer FROM leased_work JOIN work_lane AS lane ON lane.serial = leased_work.lane
                WHERE leased_work.kind = ? AND leased_work.subject = ?
                """)
        let former = try Row.first(select, [work.kind.rawValue, work.subject]) { row in
            (queue: row[0] as Int64, peer: row[1] as String)
        }
        guard let former else { return }
        let queue = try former.peer == work.peer ? former.queue : queue(of: work)
        let update = try db.cachedStatement(
            sql: "UPDATE leased_work SET lane = ?, due_at = ?, set_at = ? WHERE kind = ? AND subject = ?")
        try update.execute(arguments: [
            queue, work.dueAt.milliseconds, now.milliseconds, work.kind.rawValue, work.subject,
        ])
        guard queue != former.queue else { return try changed(queue) }
        try changed(queue, adding: 1)
        try left(former.queue)
    }

    func remove(_ kind: WorkKind, of subject: Int64) throws {
        let delete = try db.cachedStatement(sql: "DELETE FROM leased_work WHERE kind = ? AND subject = ? RETURNING lane")
        for queue in try Int64.fetchAll(delete, arguments: [kind.rawValue, subject]) { try left(queue) }
    }

    /// Updates a queue after its work was added, or is ready at another time.
    private func changed(_ queue: Int64, adding count: Int = 0) throws {
        try db.run(
            """
            UPDATE work_lane SET size = size + ?,
                head_at = (SELECT min(ready_at) FROM leased_work WHERE leased_work.lane = work_lane.serial)
            WHERE serial = ?
            """, [count, queue])
    }

    /// Updates a queue after work was removed from it or moved to another queue.
    private func left(_ queue: Int64) throws {
        try db.run("DELETE FROM work_lane WHERE serial = ? AND size = 1", [queue])
        if db.changesCount == 0 { try changed(queue, adding: -1) }
    }

    // MARK: Reading

    /// See ``LeasedWorkStore/dueWork(in:at:besides:limit:)``.
    func due(in homeShards: ShardSet, at now: Timestamp, besides busy: BusyPeerSets, limit: Int) throws -> [DueWork] {
        // Searches the index once for each combination of app, kind and reliability.
        let select = try db.cachedStatement(
            sql: """
                WITH RECURSIVE share (id) AS (
                    SELECT min(share) FROM work_lane
                    UNION ALL
                    SELECT (SELECT min(work_lane.share) FROM work_lane WHERE work_lane.share > share.id)
                    FROM share WHERE share.id NOT NULL
                )
                SELECT id FROM share
                WHERE id NOT NULL AND (SELECT min(ready_at) FROM work_lane WHERE work_lane.share = id) <= ?
                    AND NOT (share.id / 2 % 32 IN (\(Self.endingWithApp))
                        AND EXISTS (SELECT 1 FROM app WHERE app.serial = share.id / 64 AND ended_at NOT NULL))
                """)
        let shares = try Int64.fetchAll(select, arguments: [now.milliseconds])
        let proven = shares.filter { $0 & 1 == 0 }
        let onTrial = shares.filter { $0 & 1 == 1 }
        return try due(proven, homeShards, now, busy.proven, limit) + due(onTrial, homeShards, now, busy.onTrial, limit)
    }

    private static let endingWithApp = WorkKind.allCases.filter(\.endsWithApp).map { String($0.rawValue) }
        .joined(separator: ", ")

    /// The maximum number of items that one statement returns.
    private static let mostDue = 2048

    private func due(
        _ shares: [Int64], _ homeShards: ShardSet, _ now: Timestamp, _ busy: BusyPeers, _ limit: Int
    ) throws -> [DueWork] {
        guard !shares.isEmpty else { return [] }
        let select = try db.cachedStatement(
            sql: """
                SELECT lane.kind, lane.app, lane.peer, lane.host, lane.on_trial, lane.served_at, work.serial, work.device,
                    work.ready_at
                FROM json_each(:shares) AS share
                CROSS JOIN work_lane AS lane ON lane.serial IN (
                    SELECT due.serial FROM work_lane AS due
                    WHERE due.share = share.value AND due.ready_at <= :now
                        AND due.peer NOT IN (SELECT value FROM json_each(:peers))
                        AND due.host NOT IN (SELECT value FROM json_each(:hosts))
                        AND EXISTS (
                            SELECT 1 FROM leased_work AS any WHERE any.lane = due.serial AND any.ready_at <= :now
                                AND any.device NOT IN (SELECT value FROM json_each(:devices))
                                \(homeShards.condition(on: "any.device")))
                    ORDER BY due.ready_at LIMIT :limit)
                CROSS JOIN leased_work AS work ON work.serial = (
                    SELECT first.serial FROM leased_work AS first WHERE first.lane = lane.serial
                        AND first.ready_at <= :now AND first.device NOT IN (SELECT value FROM json_each(:devices))
                        \(homeShards.condition(on: "first.device"))
                    ORDER BY first.ready_at LIMIT 1)
                """)
        let rows = try Row.fetchAll(
            select,
            arguments: homeShards.arguments(with: [
                "shares": Self.json(shares), "now": now.milliseconds, "peers": Self.json(busy.peers),
                "hosts": Self.json(busy.hosts), "devices": Self.json(busy.devices.map(\.rawValue)),
                "limit": max(1, min(limit, Self.mostDue / shares.count)),
            ]))
        return rows.compactMap { DueWork(row: $0) }
    }

    private static func json(_ values: some Sequence<some Encodable>) throws -> String {
        String(decoding: try JSONEncoder().encode(Array(values)), as: UTF8.self)
    }

    // MARK: Leases

    /// - Parameter subject: Reads the subject of an item of work.
    func lease<Subject>(
        _ work: [DueWork], at now: Timestamp, until end: Timestamp,
        subject: (WorkKind, Int64) throws -> Subject
    ) throws -> LeasedItems<Subject> {
        var leased = LeasedItems<Subject>(items: [], unreadable: 0)
        for work in work {
            do {
                if let item = try lease(work, at: now, until: end, subject) { leased.items.append(item) }
            } catch let error where !(error is DatabaseError) {
                // A row that cannot be read does not delay the others.
                try setDue(work.serial, now.adding(seconds: 3600), at: now)
                leased.unreadable += 1
            }
        }
        return leased
    }

    private func lease<Subject>(
        _ work: DueWork, at now: Timestamp, until end: Timestamp,
        _ subject: (WorkKind, Int64) throws -> Subject
    ) throws -> LeasedItem<Subject>? {
        let select = try db.cachedStatement(
            sql: """
                SELECT work.lane, work.fence, work.subject, lane.on_trial, lane.failures
                FROM leased_work AS work JOIN work_lane AS lane ON lane.serial = work.lane
                WHERE work.serial = ? AND work.ready_at <= ?
                """)
        guard let row = try Row.fetchOne(select, arguments: [work.serial, now.milliseconds]) else { return nil }
        let subject = try subject(work.kind, row["subject"])
        let lease = WorkLease(work: work.serial, fence: row["fence"] + 1)
        let update = try db.cachedStatement(
            sql: "UPDATE leased_work SET held_until = ?, fence = ? WHERE serial = ?")
        try update.execute(arguments: [end.milliseconds, lease.fence, lease.work])
        let serve = try db.cachedStatement(
            sql: """
                UPDATE work_lane SET served_at = ?,
                    head_at = (SELECT min(ready_at) FROM leased_work WHERE leased_work.lane = work_lane.serial)
                WHERE serial = ?
                """)
        try serve.execute(arguments: [now.milliseconds, row["lane"] as Int64])
        return LeasedItem(
            lease: lease, due: work,
            health: EndpointHealth(isOnTrial: row["on_trial"] != 0, failures: row["failures"]), subject: subject)
    }

    /// Ends a lease. The work stays due at the same time.
    func release(_ work: Int64) throws {
        try update("UPDATE leased_work SET held_until = 0 WHERE serial = ?", [work])
    }

    /// Ends a lease. The work is due at a new time, which was set at `now`.
    func release(_ work: Int64, dueAt: Timestamp, at now: Timestamp) throws {
        try update(
            "UPDATE leased_work SET held_until = 0, due_at = ?, set_at = ? WHERE serial = ?",
            [dueAt.milliseconds, now.milliseconds, work])
    }

    /// - Parameter sql: Changes the time at which one item of work is ready.
    private func update(_ sql: String, _ arguments: StatementArguments) throws {
        let queues = try Int64.fetchAll(db.cachedStatement(sql: sql + " RETURNING lane"), arguments: arguments)
        for queue in queues { try changed(queue) }
    }

    /// Stores the reliability of the peer at the end of a lease, for all work of the app with the peer.
    func note(_ end: WorkEnd) throws {
        try db.run(
            "UPDATE work_lane SET on_trial = ?, failures = ?, rests_until = ? WHERE app = ? AND peer = ?",
            [
                end.health.isOnTrial, end.health.failures, end.peerRestsUntil.milliseconds, end.app.rawValue, end.peer,
            ])
    }

    // MARK: Time

    func setDue(_ work: Int64, _ dueAt: Timestamp, at now: Timestamp) throws {
        try setDue([WatchChanges.MovedPing(work: work, dueAt: dueAt, at: now)])
    }

    /// Sets the due times of pings. Each queue is written once.
    func setDue(_ pings: [WatchChanges.MovedPing]) throws {
        var update = try BoundStatement(
            db, "UPDATE leased_work SET due_at = ?, set_at = ? WHERE serial = ? RETURNING lane")
        var queues: Set<Int64> = []
        for ping in pings {
            update.bind(ping.dueAt.milliseconds)
            update.bind(ping.at.milliseconds)
            update.bind(ping.work)
            queues.formUnion(try update.all { columns in columns.integer(0) })
        }
        for queue in queues.sorted() { try changed(queue) }
    }

    /// See ``LeasedWorkStore/bringBackWork(in:at:)``.
    func bringBack(in shards: ShardSet, at now: Timestamp) throws {
        try db.run(
            """
            UPDATE leased_work SET set_at = :now,
                due_at = CASE WHEN due_at > set_at THEN :now + due_at - set_at ELSE :now END
            WHERE set_at > :now \(shards.condition(on: "device"))
            """,
            shards.arguments(with: ["now": now.milliseconds]))
        var count = db.changesCount
        try db.run(
            "UPDATE leased_work SET held_until = :now WHERE held_until > :now + :lease \(shards.condition(on: "device"))",
            shards.arguments(with: ["now": now.milliseconds, "lease": WorkLease.seconds * 1000]))
        count += db.changesCount
        if count > 0 {
            try db.run(
                """
                UPDATE work_lane SET head_at = (SELECT min(ready_at) FROM leased_work WHERE leased_work.lane = work_lane.serial)
                WHERE serial IN (SELECT lane FROM leased_work)
                """)
        }
        try db.run(
            "UPDATE work_lane SET rests_until = 0 WHERE rests_until > :now + :rest",
            ["now": now.milliseconds, "rest": EndpointHealth.longestRestMilliseconds])
        try db.run("UPDATE work_lane SET served_at = :now WHERE served_at > :now", ["now": now.milliseconds])
    }
}

extension DueWork {
    /// Returns nil for a kind that this version does not support.
    init?(row: Row) {
        guard let kind = WorkKind(rawValue: row["kind"]) else { return nil }
        self.init(
            serial: row["serial"], kind: kind, app: AppSerial(row["app"]), device: DeviceSerial(row["device"]),
            peer: row["peer"], host: row["host"], isOnTrial: row["on_trial"] != 0, readyAt: row.timestamp("ready_at"),
            servedAt: row.timestamp("served_at"))
    }
}
