import CarillonCore
import CarillonWire
import GRDB

/// The waiting envelopes of one device, read a few rows at a time by a reading connection.
struct WaitingSlots {
    private let db: Database
    private let key: InboxIndex.Key
    private let inMemory: [InboxIndex.Slot]
    private let position: Int64

    /// - Parameter inMemory: The entries of ``InboxIndex`` from before the transaction began.
    init(_ key: InboxIndex.Key, inMemory: [InboxIndex.Slot], after position: Int64, in db: Database) {
        self.db = db
        self.key = key
        self.inMemory = inMemory
        self.position = position
    }

    /// Returns the first envelopes that do not expire by `now`: at least one if there is one, however large it is, and none
    /// if the limit is 0.
    ///
    /// - Returns: Nil if there is no such device, or its app was deleted.
    func envelopes(limit: Int, bytes: Int, at now: Timestamp) throws -> [Envelope]? {
        guard let first = try slotsOfDevice(limit: limit) else { return nil }
        var envelopes: [Envelope] = []
        var size = 0
        try forEachRow(Self.selectEnvelopes, pages: limit, inTable: first) { columns in
            guard Envelope.expiry(columns) > now else { return true }
            let envelope = try Envelope(columns)
            size += envelope.byteCount
            envelopes.append(envelope)
            return size < bytes && envelopes.count < limit
        }
        return envelopes
    }

    /// Returns the names of all waiting envelopes, without their contents; nil if there are more than the limit.
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

    /// Returns the first entries of the table; nil if there is no such device, or its app was deleted.
    private func slotsOfDevice(limit: Int) throws -> [InboxIndex.Slot]? {
        var select = try BoundStatement(
            db,
            """
            SELECT inbox_index.position, inbox_index.size FROM \(Device.tables)
            LEFT JOIN inbox_index ON inbox_index.device = device.serial AND is_final = ? AND inbox_index.position > ?
            WHERE device.serial = ? ORDER BY inbox_index.position LIMIT ?
            """)
        select.bind(key.isFinal ? 1 : 0)
        select.bind(position)
        select.bind(key.device)
        // A device without entries has one row as well.
        select.bind(max(1, limit))
        var slots: [InboxIndex.Slot]?
        try select.forEachRow { columns in
            slots = slots ?? []
            guard let position = columns.integerIfAny(0) else { return true }
            slots?.append(.init(position: position, size: Int(columns.integer(1))))
            return true
        }
        return slots
    }

    /// - Parameters:
    ///   - pages: The number of entries that are read from the index at a time.
    ///   - first: The first entries of the table, if they were read.
    ///   - body: Returns whether it needs more rows.
    private func forEachRow(
        _ select: String, pages: Int, inTable first: [InboxIndex.Slot]? = nil, _ body: (StatementColumns) throws -> Bool
    ) throws {
        var wantsMore = true
        var after = position
        var inMemory = inMemory[...]
        var first = first
        while true {
            inMemory = inMemory.drop { $0.position <= after }
            let inTable = try first ?? InboxIndexWriter.slotsInTable(of: key, after: after, limit: pages, in: db)
            first = nil
            let slots = InboxIndex.merged(inTable, inMemory.prefix(pages)).prefix(pages)
            if slots.isEmpty { return }
            var select = try BoundStatement(db, select)
            for start in stride(from: 0, to: slots.count, by: Self.rowsAtOnce) {
                // An unused parameter is bound to NULL, and matches no row.
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

    /// Leaves out updates that ended, or that were for a former user. They are removed from the inbox a little later.
    private static let isWanted = """
        AND (kind != \(EnvelopeKind.update.rawValue) OR EXISTS (
            SELECT 1 FROM audience_update JOIN binding ON binding.serial = CAST(topic AS INTEGER) AND binding.ended_at IS NULL
            WHERE audience_update.serial = origin AND audience_update.status = 0))
        """
}
