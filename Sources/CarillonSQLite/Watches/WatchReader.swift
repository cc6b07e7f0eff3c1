import CarillonCore
import CarillonWire
import GRDB

/// Reads the facts that ``WatchRules`` needs, inside a transaction.
struct WatchReader {
    private let db: Database

    init(_ db: Database) { self.db = db }

    // MARK: Watches

    /// Reads all facts except the counts.
    func putFacts(of channel: ChannelSerial) throws -> PutWatchFacts {
        let select = try db.cachedStatement(
            sql: """
                SELECT channel.id AS channel_id, channel.device AS owner, channel.of_user, device.app AS app_of_owner,
                    app.ended_at AS app_ended_at, watch.*, leased_work.due_at AS due_at
                FROM channel JOIN device ON device.serial = channel.device JOIN app ON app.serial = device.app
                LEFT JOIN watch ON watch.channel = channel.serial
                LEFT JOIN leased_work
                    ON leased_work.kind = \(WorkKind.ping.rawValue) AND leased_work.subject = watch.serial
                WHERE channel.serial = ?
                """)
        guard let row = try Row.fetchOne(select, arguments: [channel.rawValue]) else { return PutWatchFacts() }
        return PutWatchFacts(
            channel: WatchedChannel(
                serial: channel, id: ChannelID(try row.bytes16("channel_id")), device: DeviceSerial(row["owner"]),
                app: AppSerial(row["app_of_owner"]), isOfFormerUser: (row["of_user"] as Int64) == 2,
                isAppDeleted: (row["app_ended_at"] as Int64?) != nil),
            watch: try (row["serial"] as Int64?).map { _ in try Watch(row: row) })
    }

    func counts(of device: DeviceSerial, _ app: AppSerial) throws -> PutWatchFacts.Counts {
        let select = try db.cachedStatement(
            sql: """
                SELECT (SELECT count(*) FROM watch WHERE device = ?1) AS of_device, \(WatchUsage.columns(of: "?2"))
                """)
        guard let row = try Row.fetchOne(select, arguments: [device.rawValue, app.rawValue]) else {
            throw StoreFault(.unavailable, "the watches cannot be counted")
        }
        return PutWatchFacts.Counts(ofDevice: row["of_device"], ofApp: WatchUsage(row))
    }

    // MARK: Results

    func read(_ record: PingRecord, into facts: inout WatchFacts) throws {
        let work = record.end.lease.work
        let select = try db.cachedStatement(
            sql: """
                SELECT leased_work.fence, leased_work.held_until, watch.serial, watch.revision, watch.ping_address, watch.told,
                    watch.failures
                FROM leased_work LEFT JOIN watch ON watch.serial = ? WHERE leased_work.serial = ?
                """)
        guard let row = try Row.fetchOne(select, arguments: [record.watch.rawValue, work]) else { return }
        facts.leases[work] = StoredLease(row)
        if (row["serial"] as Int64?) != nil { facts.states[record.watch] = WatchState(row) }
    }

    func read(_ channel: ChannelSerial, into facts: inout WatchFacts) throws {
        let select = try db.cachedStatement(
            sql: "SELECT serial, revision, ping_address, told, failures FROM watch WHERE channel = ?")
        guard let row = try Row.fetchOne(select, arguments: [channel.rawValue]) else { return }
        let watch = WatchSerial(row["serial"])
        facts.watches[channel] = watch
        facts.states[watch] = WatchState(row)
    }

    func callbackFacts(_ end: WorkEnd) throws -> CallbackFacts {
        let select = try db.cachedStatement(
            sql: """
                SELECT leased_work.fence, leased_work.held_until, \(WatchUsage.columns(of: "?1"))
                FROM leased_work WHERE leased_work.serial = ?2
                """)
        let row = try Row.fetchOne(select, arguments: [end.app.rawValue, end.lease.work])
        return CallbackFacts(lease: row.map(StoredLease.init), usage: row.map(WatchUsage.init) ?? WatchUsage())
    }

    // MARK: Ends of channels

    /// - Parameter condition: Selects rows of `channel`.
    func endFacts(_ condition: String, _ arguments: StatementArguments) throws -> ChannelEndFacts {
        let select = try db.cachedStatement(
            sql: """
                SELECT watch.serial, watch.channel, watch.device, watch.app, watch.disconnect_address, watch.callback_id,
                    watch.secret, watch.token, \(WatchUsage.columns(of: "watch.app"))
                FROM watch WHERE watch.channel IN (SELECT serial FROM channel WHERE \(condition))
                """)
        var facts = ChannelEndFacts()
        for row in try Row.fetchAll(select, arguments: arguments) {
            let watch = EndingWatch(row)
            facts.watches.append(watch)
            facts.usage[watch.app] = WatchUsage(row)
        }
        return facts
    }

    func answer(_ questions: ChannelEndQuestions, into facts: inout ChannelEndFacts) throws {
        for queue in questions.queues { facts.waiting[queue] = try waiting(in: queue) }
        for (queue, limit) in questions.oldestOfQueues { facts.oldestOfQueues[queue] = try oldest(of: queue, limit: limit) }
        for (app, limit) in questions.oldestOfApps { facts.oldestOfApps[app] = try oldest(of: app, limit: limit) }
    }

    private func waiting(in queue: CallbackQueue) throws -> Int {
        try Int.first(
            db, "SELECT size FROM work_lane WHERE app = ? AND peer = ? AND kind = \(WorkKind.callback.rawValue)",
            [queue.app.rawValue, queue.peer]) ?? 0
    }

    private func oldest(of queue: CallbackQueue, limit: Int) throws -> [Int64] {
        let select = try db.cachedStatement(
            sql: """
                SELECT subject FROM leased_work WHERE lane =
                    (SELECT serial FROM work_lane WHERE app = ? AND peer = ? AND kind = \(WorkKind.callback.rawValue))
                ORDER BY serial LIMIT ?
                """)
        return try Int64.fetchAll(select, arguments: [queue.app.rawValue, queue.peer, limit])
    }

    private func oldest(of app: AppSerial, limit: Int) throws -> [WaitingCallback] {
        let select = try db.cachedStatement(
            sql: """
                SELECT disconnect_callback.serial, coalesce(work_lane.peer, '') AS peer
                FROM disconnect_callback
                LEFT JOIN leased_work ON leased_work.kind = \(WorkKind.callback.rawValue)
                    AND leased_work.subject = disconnect_callback.serial
                LEFT JOIN work_lane ON work_lane.serial = leased_work.lane
                WHERE disconnect_callback.app = ? ORDER BY disconnect_callback.serial LIMIT ?
                """)
        return try Row.fetchAll(select, arguments: [app.rawValue, limit]).map { row in
            WaitingCallback(serial: row["serial"], queue: CallbackQueue(app, row["peer"]))
        }
    }

    // MARK: Overdue pings

    /// Returns the overdue pings of the next watches in the order of their serial numbers, and the serial number of the last of
    /// these watches. Nil if no more pings are overdue.
    func overduePings(
        in shards: ShardSet, at now: Timestamp, after watch: Int64, limit: Int
    ) throws -> (pings: [OverduePing], last: Int64)? {
        var select = try BoundStatement(
            db,
            """
            SELECT leased_work.serial, watch.ping_interval, leased_work.due_at, leased_work.subject
            FROM leased_work JOIN watch ON watch.serial = leased_work.subject
            WHERE leased_work.kind = \(WorkKind.ping.rawValue) AND leased_work.subject > ? AND leased_work.due_at < ?
                AND watch.ping_interval IS NOT NULL \(shards.condition(on: "leased_work.device"))
            ORDER BY leased_work.subject LIMIT ?
            """)
        select.bind(watch)
        select.bind(now.milliseconds)
        select.bind(shards)
        select.bind(limit)
        var (pings, last): ([OverduePing], Int64) = ([], watch)
        try select.forEachRow { columns in
            pings.append(
                OverduePing(
                    work: columns.integer(0), intervalSeconds: Int(columns.integer(1)), dueAt: columns.timestamp(2)))
            last = columns.integer(3)
            return true
        }
        guard !pings.isEmpty else { return nil }
        return (pings, last)
    }
}

extension StoredLease {
    fileprivate init(_ row: Row) { self.init(fence: row["fence"], isHeld: (row["held_until"] as Int64) != 0) }
}

extension WatchState {
    fileprivate init(_ row: Row) {
        self.init(
            revision: row["revision"], isPinged: (row["ping_address"] as String?) != nil,
            machine: PingMachine(notified: (row["told"] as Int?).flatMap(PingFailure.init), failures: row["failures"]))
    }
}

extension WatchUsage {
    /// The columns that ``init(_:)`` reads.
    ///
    /// - Parameter app: The column with the serial number of the app, or its parameter in the statement.
    static func columns(of app: String) -> String {
        """
        \(CounterTable.sum(.watches, of: app)) AS watches, \(CounterTable.sum(.callbacks, of: app)) AS callbacks
        """
    }

    init(_ row: Row) { self.init(watches: row["watches"], callbacks: row["callbacks"]) }
}

extension EndingWatch {
    fileprivate init(_ row: Row) {
        self.init(
            serial: WatchSerial(row["serial"]), channel: ChannelSerial(row["channel"]), device: DeviceSerial(row["device"]),
            app: AppSerial(row["app"]),
            // If an address cannot be read, although it was checked before it was stored, no call can be made.
            disconnectAddress: (row["disconnect_address"] as String?).flatMap { try? CallAddress(stored: $0) },
            callbackID: row["callback_id"], sealed: Watch.Sealed(row))
    }
}
