import CarillonCore
import GRDB

/// Changes watches, and their calls, inside one transaction, as ``WatchRules`` decides.
struct WatchTransaction {
    private let db: Database
    private let rules = WatchRules()
    private let reader: WatchReader
    private let writer: WatchChangeWriter

    init(_ db: Database) {
        self.db = db
        reader = WatchReader(db)
        writer = WatchChangeWriter(db)
    }

    // MARK: Watches

    func put(_ request: WatchRequest, at now: Timestamp) throws -> PutWatchResult {
        var facts = try reader.putFacts(of: request.channel)
        while true {
            switch rules.put(request, at: now, knowing: facts) {
            case .needsCounts(let device, let app): facts.counts = try reader.counts(of: device, app)
            case .refused(let result): return result
            case .put(var watch, let isNew, let changes):
                if let serial = try writer.write(changes) { watch.serial = serial }
                return .put(watch, isNew: isNew)
            }
        }
    }

    func remove(of channel: ChannelSerial) throws -> Bool {
        let delete = try db.cachedStatement(
            sql: """
                DELETE FROM watch WHERE channel = ? RETURNING serial, app, \(WatchUsage.columns(of: "watch.app"))
                """)
        guard let row = try Row.fetchAll(delete, arguments: [channel.rawValue]).first else { return false }
        try WorkQueues(db).remove(.ping, of: row["serial"])
        try writer.write(rules.removedWatch(of: AppSerial(row["app"]), knowing: WatchUsage(row)))
        return true
    }

    // MARK: Results

    func record(_ record: PingRecord) throws -> Bool {
        var facts = WatchFacts()
        try reader.read(record, into: &facts)
        return try write(rules.record(record, knowing: facts))
    }

    func record(_ step: CallbackMachine.Step, of callback: DisconnectCallback, end: WorkEnd) throws -> Bool {
        try write(rules.record(step, of: callback, end: end, knowing: reader.callbackFacts(end)))
    }

    private func write(_ ruling: WatchRules.Ruling) throws -> Bool {
        try writer.write(ruling.changes)
        return ruling.counts
    }

    // MARK: Ends of channels

    /// Ends the watches of channels. The caller must remove or close the channels.
    ///
    /// - Parameter condition: Selects rows of `channel`.
    func channelsEnd(
        _ condition: String, _ arguments: StatementArguments, because reason: DisconnectReason, at now: Timestamp,
        limits: CallbackLimits
    ) throws {
        var facts = try reader.endFacts(condition, arguments)
        while true {
            switch rules.channelsEnd(because: reason, at: now, limits: limits, knowing: facts) {
            case .needs(let questions): try reader.answer(questions, into: &facts)
            case .decided(let changes):
                try writer.write(changes)
                return
            }
        }
    }

    // MARK: Overdue pings

    /// - Parameter limit: The maximum number of pings in memory at once.
    func spreadOverduePings(in shards: ShardSet, at now: Timestamp, atOnce limit: Int = 1000) throws {
        var last: Int64 = 0
        while let (pings, end) = try reader.overduePings(in: shards, at: now, after: last, limit: limit) {
            try writer.write(rules.spread(pings, at: now))
            last = end
        }
    }
}
