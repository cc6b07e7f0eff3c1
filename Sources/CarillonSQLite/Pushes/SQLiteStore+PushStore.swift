package import CarillonCore
package import CarillonWire
import GRDB

extension SQLiteStore: PushStore {
    package func bringBackPushes(in shards: ShardSet, at now: Timestamp) async throws {
        try await group.run { [memory] db in
            try PushTable(db, memory: memory).bringBack(in: shards, at: now)
            memory.pushes.forgetAll()
        }
    }

    package func dueQueues(in shards: ShardSet, at now: Timestamp) async throws -> [PushQueue] {
        try await read { [memory] db in try PushTable(db, memory: memory).dueQueues(in: shards, at: now) }
    }

    package func leasePushes(
        of queue: PushQueue, in shards: ShardSet, limit: Int, at now: Timestamp, until end: Timestamp
    ) async throws -> LeasedPushes {
        try await group.run { [memory, settings] db in
            try PushTable(db, memory: memory, settings: settings).lease(
                queue, in: shards, limit: limit, at: now, until: end)
        }
    }

    package func endPushes(_ ends: [PushEnd]) async throws -> [PushState] {
        try await group.run { [memory, settings] db in
            let table = PushTable(db, memory: memory, settings: settings)
            return try ends.compactMap { try table.end($0) }
        }
    }

    package func sweepPushes(
        in shards: ShardSet, at now: Timestamp, forgetting retention: RetentionTime?, limit: Int
    ) async throws -> Bool {
        try await group.run { [memory, settings] db in
            try PushTable(db, memory: memory, settings: settings).sweep(
                in: shards, at: now, forgetting: retention, limit: limit)
        }
    }

    // MARK: Reading

    package func pushes(
        for message: MessageID, of device: DeviceSerial, at now: Timestamp
    ) async throws -> [PushRecord] {
        try await read { db in
            // A wake does not concern a message that wakes no device, even if its position is between two messages that do.
            var select = try BoundStatement(
                db,
                """
                SELECT \(PushRecord.columns) FROM push WHERE device = ?1 AND ?2 BETWEEN first AND last
                    AND (kind <> \(PushKind.wake.rawValue)
                        OR coalesce((SELECT wake FROM envelope WHERE position = ?2), (SELECT wake FROM outcome WHERE position = ?2), 0) <> 0)
                ORDER BY serial
                """)
            select.bind(device.rawValue)
            select.bind(message.position)
            var records = try select.all { columns in try PushRecord(columns) }
            if let owed = try PushRecord.owed(for: message.position, of: device, at: now, in: db) {
                records.append(owed)
            }
            return records
        }
    }

    package func parkedPushes(of app: AppSerial, in shards: ShardSet, limit: Int) async throws -> [PushRecord] {
        try await read { db in
            var records: [PushRecord] = []
            for queue in Self.queues(of: app) {
                var select = try BoundStatement(
                    db,
                    """
                    SELECT \(PushRecord.columns) FROM push WHERE lane = ? AND state = \(PushState.parked.rawValue)
                    \(shards.condition(on: "device")) ORDER BY serial LIMIT ?
                    """)
                select.bind(queue.number)
                select.bind(shards)
                select.bind(limit)
                records += try select.all { columns in try PushRecord(columns) }
            }
            return Array(records.prefix(limit))
        }
    }

    package func requeueParkedPushes(of app: AppSerial, in shards: ShardSet, at now: Timestamp) async throws -> Int {
        var requeued = 0
        for queue in Self.queues(of: app) {
            // Pushes that are parked meanwhile are newer or were requeued, and are not requeued again.
            var oldest: Int64? = .max
            while let before = oldest {
                let some = try await group.run { [memory, settings] db in
                    try PushTable(db, memory: memory, settings: settings)
                        .requeueParked(of: queue, in: shards, before: before, limit: Self.requeuedAtOnce, at: now)
                }
                requeued += some.count
                oldest = some.oldest
            }
        }
        return requeued
    }

    private static let requeuedAtOnce = 500

    private static func queues(of app: AppSerial) -> [PushQueue] {
        PushEnvironment.allCases.map { PushQueue(app: app, environment: $0) }
    }
}

extension PushRecord {
    fileprivate static let columns = "serial, kind, state, state_at, due_at, id, reason, lane, is_shortened"

    fileprivate init(_ columns: StatementColumns) throws {
        let state = PushState(rawValue: Int(columns.integer(2))) ?? .cancelled
        self.init(
            serial: columns.integer(0), kind: PushKind(rawValue: Int(columns.integer(1))) ?? .wake,
            queue: PushQueue(number: columns.integer(7)),
            standing: .state(state), at: columns.timestamp(3),
            dueAt: state == .scheduled ? columns.integerIfAny(4).map(Timestamp.init(milliseconds:)) : nil,
            id: try columns.bytes16(5), reason: columns.text(6), isShortened: columns.integer(8) != 0)
    }

    /// Returns the pending push of a device for a message that is not in the outbox yet; nil if no push is pending for the message.
    fileprivate static func owed(
        for position: Int64, of device: DeviceSerial, at now: Timestamp, in db: Database
    ) throws -> PushRecord? {
        var select = try BoundStatement(
            db,
            """
            SELECT profile.reason NOT NULL, profile.status_at, wake.due_at, wake.set_at, envelope.wake, envelope.accepted_at,
                wake.lane
            FROM envelope JOIN device_profile AS profile ON profile.device = envelope.device
            LEFT JOIN wake ON wake.device = envelope.device
            WHERE envelope.position = ? AND envelope.wake <> 0 AND envelope.expires_at > ?
                AND (profile.token NOT NULL OR profile.reason NOT NULL)
            """)
        select.bind(position)
        select.bind(now.milliseconds)
        return try select.first { columns -> PushRecord? in
            let mode = columns.integer(4)
            let kind: PushKind = mode == WakeMode.alert.number ? .alert : .wake
            if columns.integer(0) != 0 {
                let since = max(columns.timestamp(1), columns.timestamp(5))
                return PushRecord(kind: kind, queue: nil, standing: .suspended, at: since)
            }
            guard kind == .wake, let dueAt = columns.integerIfAny(2) else { return nil }
            return PushRecord(
                kind: .wake, queue: PushQueue(number: columns.integer(6)), standing: .state(.scheduled),
                at: max(columns.timestamp(3), columns.timestamp(5)),
                dueAt: Timestamp(milliseconds: dueAt))
        } ?? nil
    }
}
