import CarillonCore
import GRDB

/// Reads the facts that ``FiringRules`` needs, inside a transaction.
struct FiringReader {
    private let db: Database

    init(_ db: Database) { self.db = db }

    func answer(_ questions: FiringQuestions) throws -> FiringFacts {
        var facts = FiringFacts()
        try answer(questions, into: &facts)
        return facts
    }

    /// Reads facts, and replaces earlier facts of the same rows.
    func answer(_ questions: FiringQuestions, into facts: inout FiringFacts) throws {
        if !questions.watches.isEmpty { try readWatches(questions.watches, into: &facts) }
        if !questions.throttled.isEmpty { try readThrottled(questions.throttled, into: &facts) }
        if !questions.queues.isEmpty { try readQueues(questions.queues, into: &facts) }
        if !questions.usage.isEmpty { try readUsage(questions.usage, into: &facts) }
    }

    private static let watchColumns = """
        watched.app, watched.last_firing, watched.told_at,
        EXISTS (SELECT 1 FROM item WHERE item.app = watched.app AND item.name = watched.item)
        """

    private func readWatches(_ keys: Set<FiringKey>, into facts: inout FiringFacts) throws {
        var select = try BoundStatement(
            db,
            """
            SELECT \(FiringSubscription.columns), \(Self.watchColumns) FROM subscription
            JOIN subscription_item AS watched ON watched.app = subscription.app AND watched.item = ?
                AND watched.subscription = subscription.serial
            LEFT JOIN device_profile AS profile ON profile.device = subscription.device WHERE subscription.serial = ?
            """)
        for key in keys {
            select.bind(key.item.text)
            select.bind(key.subscription.rawValue)
            let found = try select.first { columns in
                (
                    subscription: FiringSubscription(columns, from: 0),
                    watch: FiringWatch(columns, from: FiringSubscription.columnCount)
                )
            }
            facts.watches[key] = found?.watch
            // A subscription without a row for this item may have been read through another of its items.
            if let subscription = found?.subscription { facts.subscriptions[key.subscription] = subscription }
        }
    }

    /// A throttled firing whose item cannot be read is missing in the facts: it does not count, and is dropped.
    private func readThrottled(_ numbers: Set<Int64>, into facts: inout FiringFacts) throws {
        var select = try BoundStatement(
            db,
            """
            SELECT \(FiringSubscription.columns), \(Self.watchColumns), subscription.serial, held.item, held.revision,
                watched.subscription IS NOT NULL
            FROM held_firing AS held JOIN subscription ON subscription.serial = held.subscription
            LEFT JOIN subscription_item AS watched ON watched.app = subscription.app AND watched.item = held.item
                AND watched.subscription = subscription.serial
            LEFT JOIN device_profile AS profile ON profile.device = subscription.device WHERE held.serial = ?
            """)
        let place = FiringSubscription.columnCount + FiringWatch.columnCount
        for number in numbers {
            facts.throttled[number] = nil
            select.bind(number)
            try select.forEachRow { columns in
                guard let item = columns.text(place + 1).flatMap({ ItemName($0) }) else { return false }
                let key = FiringKey(SubscriptionSerial(columns.integer(place)), on: item)
                facts.throttled[number] = ThrottledEntry(key, revision: columns.integer(place + 2))
                facts.subscriptions[key.subscription] = FiringSubscription(columns, from: 0)
                facts.watches[key] =
                    columns.integer(place + 3) == 0
                    ? nil : FiringWatch(columns, from: FiringSubscription.columnCount)
                return false
            }
        }
    }

    private func readQueues(_ keys: Set<FiringKey>, into facts: inout FiringFacts) throws {
        var select = try BoundStatement(
            db, "SELECT serial, bytes FROM held_firing WHERE subscription = ? AND item = ? ORDER BY serial")
        for key in keys {
            select.bind(key.subscription.rawValue)
            select.bind(key.item.text)
            facts.queues[key] = try select.all { columns in
                ThrottledSize(columns.integer(0), bytes: Int(columns.integer(1)))
            }
        }
    }

    private func readUsage(_ devices: Set<DeviceSerial>, into facts: inout FiringFacts) throws {
        var select = try BoundStatement(
            db, "SELECT count(*), coalesce(sum(bytes), 0) FROM held_firing WHERE device = ?")
        for device in devices {
            select.bind(device.rawValue)
            facts.usage[device] = try select.first { columns in
                ThrottledUsage(firings: Int(columns.integer(0)), bytes: Int(columns.integer(1)))
            }
        }
    }
}

extension FiringSubscription {
    static let columns = "\(SubscriptionMachine.columns), profile.reason IS NOT NULL, expires_at, max_frequency, buffer_size"
    static let columnCount: Int32 = 10

    init(_ columns: StatementColumns, from place: Int32) {
        self.init(
            SubscriptionMachine(columns, from: place, isPaused: columns.integer(place + 6) != 0),
            isEnded: columns.integer(place + 2) == SubscriptionTable.endedStatus,
            expiresAt: columns.integerIfAny(place + 7).map(Timestamp.init(milliseconds:)),
            pace: columns.doubleIfAny(place + 8).map {
                FiringPace(maxFrequency: $0, bufferSize: columns.integerIfAny(place + 9).map { Int($0) })
            })
    }
}

extension FiringWatch {
    fileprivate static let columnCount: Int32 = 4

    fileprivate init(_ columns: StatementColumns, from place: Int32) {
        self.init(
            app: AppSerial(columns.integer(place)), hasItem: columns.integer(place + 3) != 0,
            lastFiring: columns.integer(place + 1),
            notifiedAt: columns.integerIfAny(place + 2).map(Timestamp.init(milliseconds:)))
    }
}
