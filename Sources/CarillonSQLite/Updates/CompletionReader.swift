import CarillonCore
import CarillonWire
import GRDB

/// Reads the facts that ``CompletionRules`` needs, inside a transaction.
struct CompletionReader {
    private let db: Database

    init(_ db: Database) { self.db = db }

    private static let standing = """
        audience_update.status, audience_update.expires_at, audience_update.paused_at, audience_update.kind
        """
    private static let stateColumns: Int32 = 4

    /// Reads a completion with its update and its binding.
    ///
    /// - Parameter needsCursor: Whether the cursor of the binding is also read.
    func facts(of key: CompletionKey, needsCursor: Bool = false) throws -> CompletionFacts {
        var select = try BoundStatement(
            db,
            """
            SELECT \(CompletionTable.columns), \(Self.standing), binding.ended_at, \(needsCursor ? CursorFacts.columns : "binding.revision")
            FROM binding LEFT JOIN audience_update ON audience_update.serial = ?
            LEFT JOIN completion ON completion.binding = binding.serial AND in_update = ? AND entry = ?
            WHERE binding.serial = ?
            """)
        select.bind(key.update.rawValue)
        select.bind(key.update.rawValue)
        select.bind(key.entry)
        select.bind(key.binding.rawValue)
        let binding = CompletionTable.columnCount + Self.stateColumns
        let facts = try select.first { columns in
            let isOpen = columns.integerIfAny(binding) == nil
            return CompletionFacts(
                completion: columns.integerIfAny(0).map { _ in Completion(columns, from: 0) },
                update: UpdateState(columns, from: CompletionTable.columnCount),
                revision: isOpen ? columns.integer(binding + 1) : nil,
                evaluated: isOpen && needsCursor ? CursorFacts(columns, from: binding + 1) : nil)
        }
        return facts ?? CompletionFacts()
    }

    /// - Parameter completion: A completion that is not stored yet.
    func facts(ofNew completion: Completion) throws -> NewCompletionFacts {
        var select = try BoundStatement(
            db,
            """
            SELECT \(Self.standing),
                EXISTS (SELECT 1 FROM completion WHERE binding = ? AND in_update = ? AND entry = ?),
                EXISTS (SELECT 1 FROM completion \(IndexHint.sql("completion_order"))
                    WHERE binding = ? AND order_key = ? AND order_key IS NOT NULL AND state < 4)
            FROM audience_update WHERE audience_update.serial = ?
            """)
        let key = completion.key
        select.bind(key.binding.rawValue)
        select.bind(key.update.rawValue)
        select.bind(key.entry)
        select.bind(key.binding.rawValue)
        select.bind(completion.orderKey)
        select.bind(key.update.rawValue)
        let facts = try select.first { columns in
            NewCompletionFacts(
                update: UpdateState(columns, from: 0), isKnown: columns.integer(Self.stateColumns) != 0,
                isBlocked: columns.integer(Self.stateColumns + 1) != 0)
        }
        return facts ?? NewCompletionFacts()
    }

    /// Returns the update of a result that a device reports.
    func update(_ reported: ReportedResult) throws -> (serial: UpdateSerial, isContent: Bool)? {
        var select = try BoundStatement(db, "SELECT serial, kind FROM audience_update WHERE id = ?")
        select.bind(reported.update.value)
        return try select.first { (UpdateSerial($0.integer(0)), $0.text(1) == UpdateKind.content.name) }
    }

    /// Returns the revision of a binding; nil if it ended.
    func revision(of binding: BindingSerial) throws -> Int64? {
        var select = try BoundStatement(db, "SELECT revision FROM binding WHERE serial = ? AND ended_at IS NULL")
        select.bind(binding.rawValue)
        return try select.first { $0.integer(0) }
    }

    // MARK: Consequences

    func answer(
        _ questions: ConsequenceQuestions, about step: CompletionStep, into facts: inout ConsequenceFacts
    ) throws {
        let key = step.before.key
        for orderKey in questions.orderKeys { facts.firsts[orderKey] = try first(of: orderKey.text, besides: key) }
        if questions.coalesced { facts.coalesced = try coalesced(by: key) }
        if questions.content { facts.content = ConsequenceFacts.Content(try self.facts(of: key)) }
    }

    private func first(of orderKey: String, besides key: CompletionKey) throws -> [Completion] {
        var select = try BoundStatement(
            db,
            """
            SELECT \(CompletionTable.columns) FROM completion \(IndexHint.sql("completion_order"))
            WHERE binding = ? AND order_key = ? AND order_key IS NOT NULL AND state < 4 AND NOT (in_update = ? AND entry = ?)
            ORDER BY in_update, entry LIMIT 1
            """)
        select.bind(key.binding.rawValue)
        select.bind(orderKey)
        select.bind(key.update.rawValue)
        select.bind(key.entry)
        return try select.first { [Completion($0, from: 0)] } ?? []
    }

    private func coalesced(by key: CompletionKey) throws -> [ConsequenceFacts.Coalesced] {
        var select = try BoundStatement(
            db,
            """
            SELECT \(CompletionTable.columns), audience_update.status FROM completion \(IndexHint.sql("completion_absorbed"))
            JOIN audience_update ON audience_update.serial = in_update AND audience_update.status IN (0, 3)
            WHERE completion.binding = ? AND absorbed_by = ? AND absorbed_by IS NOT NULL
                AND completion.state = \(CompletionMachine.State.superseded.rawValue)
                AND NOT EXISTS (SELECT 1 FROM audience_update AS absorber WHERE absorber.serial = ? AND absorber.is_resync)
            ORDER BY in_update
            """)
        select.bind(key.binding.rawValue)
        select.bind(key.update.rawValue)
        select.bind(key.update.rawValue)
        return try select.all { columns in
            ConsequenceFacts.Coalesced(
                completion: Completion(columns, from: 0),
                isExpired: columns.integer(CompletionTable.columnCount) == Update.Status.expired.rawValue)
        }
    }
}

extension ConsequenceFacts.Content {
    init(_ facts: CompletionFacts) {
        self.init(isContent: facts.update?.isContent ?? false, isBindingEnded: facts.revision == nil)
    }
}

extension UpdateState {
    /// Returns nil if there is no update, or its status is unknown.
    fileprivate init?(_ columns: StatementColumns, from place: Int32) {
        guard let number = columns.integerIfAny(place), let status = Update.Status(rawValue: Int(number)) else { return nil }
        self.init(
            status: status, expiresAt: columns.timestamp(place + 1), isPaused: columns.integerIfAny(place + 2) != nil,
            isContent: columns.text(place + 3) == UpdateKind.content.name)
    }
}
