import CarillonCore
import GRDB

/// The table `hand_over`, inside a transaction.
struct HandOverTable {
    private let db: Database

    init(_ db: Database) { self.db = db }

    /// The kinds that this version supports. A newer version can have written other kinds.
    private static let kinds = HandOver.Kind.allCases.map { String($0.rawValue) }.joined(separator: ", ")

    func pending(in shards: ShardSet, after number: Int64, limit: Int) throws -> [HandOver] {
        var select = try BoundStatement(
            db,
            """
            SELECT number, shard, kind, content FROM hand_over
            WHERE number > ? AND kind IN (\(Self.kinds)) \(shards.condition(onShard: "shard"))
            ORDER BY number LIMIT ?
            """)
        select.bind(number)
        select.bind(numbersOf: shards)
        select.bind(limit)
        return try select.all { columns in
            guard let shard = UInt16(exactly: columns.integer(1)), shard < Shard.count,
                let kind = HandOver.Kind(rawValue: columns.integer(2))
            else { throw StoreFault(.unavailable, "the row of a hand-over cannot be read") }
            return HandOver(
                number: columns.integer(0), shard: Shard(number: shard), kind: kind, content: columns.text(3) ?? "")
        }
    }

    func waiting(in shards: ShardSet, limit: Int) throws -> WaitingHandOvers {
        var select = try BoundStatement(
            db,
            """
            SELECT count(*) FROM (
                SELECT 1 FROM hand_over WHERE TRUE \(shards.condition(onShard: "shard")) LIMIT ?
            ) AS counted
            """)
        select.bind(numbersOf: shards)
        select.bind(limit)
        let count = try select.first { $0.integer(0) } ?? 0
        guard count > 0 else { return WaitingHandOvers(count: 0, first: nil) }
        return WaitingHandOvers(count: Int(count), first: try first(in: shards))
    }

    /// Returns the lowest number. If not all shards are read, an index finds the lowest number of each shard.
    private func first(in shards: ShardSet) throws -> Int64? {
        let numbers = SQLDialect.numbers(of: ":shards")
        var select = try BoundStatement(
            db,
            shards == .all
                ? "SELECT min(number) FROM hand_over"
                : "SELECT min((SELECT min(number) FROM hand_over WHERE shard = part.value)) FROM \(numbers) AS part")
        select.bind(numbersOf: shards)
        return try select.first { $0.integerIfAny(0) } ?? nil
    }

    /// Adds hand-overs of one kind.
    struct Addition {
        private var insert: BoundStatement
        private let kind: HandOver.Kind

        fileprivate init(_ db: Database, _ kind: HandOver.Kind) throws {
            insert = try BoundStatement(db, "INSERT INTO hand_over (shard, kind, content) VALUES (?, ?, ?)")
            self.kind = kind
        }

        mutating func add(_ content: String, to shard: Shard) throws {
            insert.bind(Int64(shard.number))
            insert.bind(kind.rawValue)
            insert.bind(content)
            try insert.run()
        }
    }

    func addition(of kind: HandOver.Kind) throws -> Addition { try Addition(db, kind) }

    func apply(_ applied: [AppliedHandOver]) throws {
        var remove = try BoundStatement(db, "DELETE FROM hand_over WHERE number = ? RETURNING number")
        var shapes: Set<Int64> = []
        for handOver in applied {
            remove.bind(handOver.number)
            guard try remove.run() else { continue }
            switch handOver.change {
            case .removeShape(let shape)?: shapes.insert(shape)
            case nil: break
            }
        }
        // Rows that several homes share are written in one order, so that their transactions do not deadlock.
        for shape in shapes.sorted() { try SubscriptionTable(db).forgetShape(shape) }
    }
}
