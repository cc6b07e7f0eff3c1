import CarillonCore
import CarillonWire
import GRDB

/// Firings that wait for the minimum interval of their subscription, inside a transaction. Of the firings of a subscription and
/// an item, the first has a due time, and the others wait for it.
struct ThrottledFiringTable {
    private let db: Database

    init(_ db: Database) { self.db = db }

    func throttle(_ firings: [ThrottledFiring], at now: Timestamp) throws -> [ThrottleResult] {
        let reader = FiringReader(db)
        var (facts, asked) = (FiringFacts(), FiringQuestions())
        while let questions = FiringRules.questions(toHold: firings, at: now, knowing: facts, asked: asked) {
            try reader.answer(questions, into: &facts)
            asked.formUnion(questions)
        }
        var rules = FiringRules(knowing: facts)
        let results = firings.map { rules.throttle($0, at: now) }
        try FiringChangeWriter(db).write(rules.changes)
        return results
    }

    func drop(_ numbers: [Int64], at now: Timestamp) throws {
        let facts = try FiringReader(db).answer(FiringRules.questions(forDropping: numbers))
        var rules = FiringRules(knowing: facts)
        for number in numbers { rules.drop(number, at: now) }
        var changes = rules.changes
        // A firing without facts does not exist, or its item cannot be read. It must not stay due forever.
        changes.removed += numbers.filter { facts.throttled[$0] == nil }
        try FiringChangeWriter(db).write(changes)
    }

    /// Corrects due times after the clock was set back.
    func bringBack(in shards: ShardSet, at now: Timestamp) throws {
        var select = try BoundStatement(
            db,
            """
            SELECT held.serial, due_at, max_frequency FROM held_firing AS held
            JOIN subscription ON subscription.serial = held.subscription
            WHERE due_at > ? \(shards.condition(on: "held.device"))
            """)
        select.bind(now.milliseconds)
        select.bind(shards)
        var dues: [(number: Int64, dueAt: Timestamp)] = []
        try select.forEachRow { columns in
            guard let maxFrequency = columns.doubleIfAny(2) else { return true }
            let pace = FiringPace(maxFrequency: maxFrequency)
            if let dueAt = FiringRules.dueTime(broughtBackFrom: columns.timestamp(1), by: pace, at: now) {
                dues.append((columns.integer(0), dueAt))
            }
            return true
        }
        guard !dues.isEmpty else { return }
        var update = try BoundStatement(db, "UPDATE held_firing SET due_at = ? WHERE serial = ?")
        for due in dues {
            update.bind(due.dueAt.milliseconds)
            update.bind(due.number)
            try update.run()
        }
    }

    func due(in shards: ShardSet, at now: Timestamp, limit: Int) throws -> [DueFiring] {
        var select = try BoundStatement(
            db,
            """
            SELECT held.serial, held.device, subscription.app, subscription.serial, id, notification, ttl, is_always_pushed,
                is_distinct
            FROM held_firing AS held JOIN subscription ON subscription.serial = held.subscription
            WHERE due_at <= ? \(shards.condition(on: "held.device")) ORDER BY due_at LIMIT ?
            """)
        select.bind(now.milliseconds)
        select.bind(shards)
        select.bind(limit)
        return try select.all { columns in
            try DueFiring(
                number: columns.integer(0), device: DeviceSerial(columns.integer(1)), app: AppSerial(columns.integer(2)),
                origin: Origin(.subscription, serial: columns.integer(3), id: columns.bytes16(4)),
                body: columns.bytes(5) ?? [], ttl: columns.integer(6), isAlwaysPushed: columns.integer(7) != 0,
                isDistinct: columns.integer(8) != 0)
        }
    }
}
