import CarillonCore
import CarillonWire
import GRDB

/// What waits for one device, read a few rows at a time by a reading connection.
struct WaitingSlots {
    private let db: Database
    private let key: InboxIndex.Key
    private let inMemory: [InboxIndex.Slot]
    private let position: Int64

    /// - Parameter inMemory: What ``InboxIndex`` had before the transaction began.
    init(_ key: InboxIndex.Key, inMemory: [InboxIndex.Slot], after position: Int64, in db: Database) {
        self.db = db
        self.key = key
        self.inMemory = inMemory
        self.position = position
    }

    /// The first of those that do not expire by `now`; one at least when there is one, however large, and none if the limit is 0.
    func envelopes(limit: Int, bytes: Int, at now: Timestamp) throws -> [Envelope] {
        var envelopes: [Envelope] = []
        var size = 0
        try forEachRow(Self.selectEnvelopes, pages: limit) { columns in
            guard Envelope.expiry(columns) > now else { return true }
            let envelope = try Envelope(columns)
            size += envelope.byteCount
            envelopes.append(envelope)
            return size < bytes && envelopes.count < limit
        }
        return envelopes
    }

    /// All of them, without what they say; nil where there are more.
    func names(upTo limit: Int, at now: Timestamp) throws -> [WaitingName]? {
        var names: [WaitingName] = []
        try forEachRow(Self.selectNames, pages: limit + 1) { columns in
            guard columns.timestamp(3) > now else { return true }
            guard let kind = EnvelopeKind(rawValue: Int(columns.integer(2))) else {
                throw StoreFault(.unavailable, "an envelope's kind is unknown")
            }
            let id = MessageID(position: columns.integer(0), secret: try columns.bytes16(1))
            names.append(WaitingName(id: id, kind: kind))
            return names.count <= limit
        }
        return names.count > limit ? nil : names
    }

    func count(at now: Timestamp) throws -> Int {
        var count = 0
        try forEachRow(Self.selectExpiries, pages: 1000) { columns in
            if columns.timestamp(0) > now { count += 1 }
            return true
        }
        return count
    }

    /// - Parameters:
    ///   - pages: How many entries are looked up in the index at a time.
    ///   - body: Answers whether it wants more.
    private func forEachRow(
        _ select: String, pages: Int, _ body: (StatementColumns) throws -> Bool
    ) throws {
        var wantsMore = true
        var after = position
        var inMemory = inMemory[...]
        while true {
            inMemory = inMemory.drop { $0.position <= after }
            let slots = try InboxIndexWriter.slots(
                of: key, inMemory: Array(inMemory.prefix(pages)), after: after, limit: pages, in: db)
            if slots.isEmpty { return }
            var select = try BoundStatement(db, select)
            for start in stride(from: 0, to: slots.count, by: Self.rowsAtOnce) {
                // A place too many is bound to nothing, and finds nothing.
                for slot in slots[start..<min(start + Self.rowsAtOnce, slots.count)] { select.bind(slot.position) }
                try select.forEachRow { columns in
                    wantsMore = try body(columns)
                    return wantsMore
                }
                guard wantsMore else { return }
            }
            guard let last = slots.last, slots.count == pages else { return }
            after = last.position
        }
    }

    private static let rowsAtOnce = 32
    private static let selectEnvelopes = select(Envelope.columns)
    private static let selectNames = select("position, secret, kind, expires_at")
    private static let selectExpiries = select("expires_at")

    private static func select(_ columns: String) -> String {
        let marks = repeatElement("?", count: rowsAtOnce).joined(separator: ", ")
        return "SELECT \(columns) FROM envelope WHERE position IN (\(marks)) \(isWanted) ORDER BY position"
    }

    /// Nobody is given an update that ended, or that was for a user before him: it is taken out of the inbox a little later.
    private static let isWanted = """
        AND (kind != \(EnvelopeKind.update.rawValue) OR EXISTS (
            SELECT 1 FROM audience_update JOIN binding ON binding.serial = CAST(topic AS INTEGER) AND binding.ended_at IS NULL
            WHERE audience_update.serial = origin AND audience_update.status = 0))
        """
}
