import CarillonCore
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

    /// The first of those that do not expire by `now`; one at least when there is one, however large.
    func envelopes(limit: Int, bytes: Int, at now: Timestamp) throws -> [Envelope] {
        let columns = "*, (SELECT body FROM shared_content WHERE serial = content) AS shared_body"
        var envelopes: [Envelope] = []
        var size = 0
        try forEachRow(columns, pages: limit) { row in
            guard row.timestamp("expires_at") > now else { return true }
            let envelope = try Envelope(row: row)
            size += envelope.byteCount
            envelopes.append(envelope)
            return size < bytes && envelopes.count < limit
        }
        return envelopes
    }

    func count(at now: Timestamp) throws -> Int {
        var count = 0
        try forEachRow("expires_at", pages: 1000) { row in
            if row.timestamp("expires_at") > now { count += 1 }
            return true
        }
        return count
    }

    /// - Parameters:
    ///   - pages: How many entries are looked up in the index at a time.
    ///   - body: Answers whether it wants more.
    private func forEachRow(_ columns: String, pages: Int, _ body: (Row) throws -> Bool) throws {
        let marks = repeatElement("?", count: Self.rowsAtOnce).joined(separator: ", ")
        let select = try db.cachedStatement(
            sql: "SELECT \(columns) FROM envelope WHERE position IN (\(marks)) ORDER BY position")
        var after = position
        var inMemory = inMemory[...]
        while true {
            inMemory = inMemory.drop { $0.position <= after }
            let slots = try InboxIndexWriter.slots(
                of: key, inMemory: Array(inMemory.prefix(pages)), after: after, limit: pages, in: db)
            for start in stride(from: 0, to: slots.count, by: Self.rowsAtOnce) {
                let positions = slots[start..<min(start + Self.rowsAtOnce, slots.count)].map(\.position)
                // A place too many finds nothing.
                let padding = repeatElement(Int64(-1), count: Self.rowsAtOnce - positions.count)
                let rows = try Row.fetchCursor(select, arguments: StatementArguments(positions + padding))
                while let row = try rows.next() {
                    guard try body(row) else { return }
                }
            }
            guard let last = slots.last, slots.count == pages else { return }
            after = last.position
        }
    }

    private static let rowsAtOnce = 32
}
