package import CarillonCore
import CarillonWire
import GRDB

extension SQLiteStore: WatchStore {
    package func putWatch(_ request: WatchRequest, at now: Timestamp) async throws -> PutWatchResult {
        try await group.run { db in try WatchTransaction(db).put(request, at: now) }
    }

    package func watch(of channel: ChannelSerial) async throws -> Watch? {
        try await read { db in try Watch.fetch(of: channel, in: db) }
    }

    package func removeWatch(of channel: ChannelSerial) async throws -> Bool {
        try await group.run { db in try WatchTransaction(db).remove(of: channel) }
    }

    package func leaseWork(
        _ work: [DueWork], at now: Timestamp, until end: Timestamp
    ) async throws -> LeasedItems<WatchSubject> {
        try await group.run { db in
            try WorkQueues(db).lease(work, at: now, until: end) { kind, subject in
                try WatchSubject.fetch(kind, subject, in: db)
            }
        }
    }

    package func spreadOverduePings(in shards: ShardSet, at now: Timestamp) async throws {
        try await group.run { db in try WatchTransaction(db).spreadOverduePings(in: shards, at: now) }
    }

    package func record(_ record: PingRecord) async throws -> Bool {
        try await group.run { db in try WatchTransaction(db).record(record) }
    }

    package func record(
        _ step: CallbackMachine.Step, of callback: DisconnectCallback, end: WorkEnd
    ) async throws -> Bool {
        try await group.run { db in try WatchTransaction(db).record(step, of: callback, end: end) }
    }
}

extension Watch {
    static let select = """
        SELECT watch.*, channel.id AS channel_id, leased_work.due_at AS due_at
        FROM watch JOIN channel ON channel.serial = watch.channel
        LEFT JOIN leased_work ON leased_work.kind = \(WorkKind.ping.rawValue) AND leased_work.subject = watch.serial
        """

    /// Returns the row, which must exist.
    static func fetch(_ condition: String, _ serial: Int64, in db: Database) throws -> Watch {
        let select = try db.cachedStatement(sql: Self.select + " WHERE " + condition)
        guard let row = try Row.fetchOne(select, arguments: [serial]) else {
            throw StoreFault(.unavailable, "a watch is missing")
        }
        return try Watch(row: row)
    }

    static func fetch(of channel: ChannelSerial, in db: Database) throws -> Watch? {
        let select = try db.cachedStatement(sql: Self.select + " WHERE watch.channel = ?")
        return try Row.fetchOne(select, arguments: [channel.rawValue]).map(Watch.init)
    }

    init(row: Row) throws {
        var ping: Ping?
        if let address = row["ping_address"] as String? {
            ping = Ping(address: try CallAddress(stored: address), intervalSeconds: row["ping_interval"])
        }
        var lastPing: LastPing?
        if let at = row["last_at"] as Int64? {
            lastPing = LastPing(
                at: Timestamp(milliseconds: at), failure: (row["last_code"] as Int?).flatMap(PingFailure.init),
                detail: row["last_detail"])
        }
        self.init(
            serial: WatchSerial(row["serial"]), revision: row["revision"], channel: ChannelSerial(row["channel"]),
            device: DeviceSerial(row["device"]), app: AppSerial(row["app"]),
            channelID: ChannelID(try row.bytes16("channel_id")), ping: ping,
            disconnectAddress: try (row["disconnect_address"] as String?).map(CallAddress.init(stored:)),
            sealed: Sealed(row),
            machine: PingMachine(notified: (row["told"] as Int?).flatMap(PingFailure.init), failures: row["failures"]),
            lastPing: lastPing, dueAt: (row["due_at"] as Int64?).map(Timestamp.init(milliseconds:)),
            createdAt: row.timestamp("created_at"))
    }
}

extension Watch.Sealed {
    init(_ row: Row) { self.init(secret: row.bytes("secret") ?? [], token: row.bytes("token") ?? []) }
}

extension WatchSubject {
    static func fetch(_ kind: WorkKind, _ subject: Int64, in db: Database) throws -> WatchSubject {
        switch kind {
        case .ping: .ping(try Watch.fetch("watch.serial = ?", subject, in: db))
        case .callback: .callback(try DisconnectCallback.fetch(subject, in: db))
        }
    }
}

extension DisconnectCallback {
    static func fetch(_ serial: Int64, in db: Database) throws -> DisconnectCallback {
        let select = try db.cachedStatement(sql: "SELECT * FROM disconnect_callback WHERE serial = ?")
        guard let row = try Row.fetchOne(select, arguments: [serial]) else {
            throw StoreFault(.unavailable, "a callback is missing")
        }
        return try DisconnectCallback(row: row)
    }

    init(row: Row) throws {
        guard let reason = DisconnectReason(rawValue: row["reason"]) else {
            throw StoreFault(.unavailable, "a callback's reason is unknown")
        }
        self.init(
            serial: row["serial"], channel: ChannelSerial(row["channel"]), address: try CallAddress(stored: row["address"]),
            sealed: Watch.Sealed(row), webhookID: row["webhook_id"], reason: reason,
            endedAt: row.timestamp("ended_at"), machine: CallbackMachine(attempts: row["attempts"]))
    }
}

extension CallAddress {
    /// Parses an address that was checked before it was stored.
    init(stored text: String) throws(StoreFault) {
        do {
            try self.init(text)
        } catch {
            throw StoreFault(.unavailable, "a stored address is not valid")
        }
    }
}
