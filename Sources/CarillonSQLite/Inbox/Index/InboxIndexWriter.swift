import CarillonCore
import GRDB

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Changes the index of the inboxes inside one transaction of the writing connection.
final class InboxIndexWriter {
    private let db: Database
    private let index: InboxIndex
    private var log = IndexLog()
    private var hasRemoved = false

    init(_ db: Database, index: InboxIndex) {
        self.db = db
        self.index = index
    }

    func add(_ row: InboxRow) {
        let slot = InboxIndex.Slot(position: row.position, size: row.byteCount)
        index.add(slot, to: row.indexKey)
        log.note(.added(slot, row.indexKey))
    }

    func remove(_ row: InboxRow) throws {
        log.note(.removed(row.position, row.indexKey))
        if !hasRemoved {
            hasRemoved = true
            db.afterNextTransaction { [index] _ in index.removedForAll() }
        }
        let slot = InboxIndex.Slot(position: row.position, size: row.byteCount)
        guard index.remove(slot, from: row.indexKey) else { return }
        var delete = try BoundStatement(db, "DELETE FROM inbox_index WHERE device = ? AND is_final = ? AND position = ?")
        delete.bind(row.indexKey.device)
        delete.bind(row.indexKey.isFinal ? 1 : 0)
        delete.bind(row.position)
        try delete.run()
    }

    func slots(of device: DeviceSerial, isFinal: Bool, limit: Int = .max) throws -> [InboxIndex.Slot] {
        let key = InboxIndex.Key(device, isFinal: isFinal)
        return try Self.slots(of: key, inMemory: index.slots(of: key), after: 0, limit: limit, in: db)
    }

    /// Returns the entries in memory, as they were before the transaction began, and in the table.
    static func slots(
        of key: InboxIndex.Key, inMemory: [InboxIndex.Slot], after position: Int64, limit: Int, in db: Database
    ) throws -> [InboxIndex.Slot] {
        let inTable = try slotsInTable(of: key, after: position, limit: limit, in: db)
        return Array(InboxIndex.merged(inTable, inMemory).prefix(limit))
    }

    static func slotsInTable(
        of key: InboxIndex.Key, after position: Int64, limit: Int, in db: Database
    ) throws -> [InboxIndex.Slot] {
        var select = try BoundStatement(
            db,
            """
            SELECT position, size FROM inbox_index WHERE device = ? AND is_final = ? AND position > ?
            ORDER BY position LIMIT ?
            """)
        select.bind(key.device)
        select.bind(key.isFinal ? 1 : 0)
        select.bind(position)
        select.bind(limit)
        return try select.all { InboxIndex.Slot(position: $0.integer(0), size: Int($0.integer(1))) }
    }

    /// The condition that the table has a waiting entry of a device of the statement.
    static let hasEntries = "EXISTS (SELECT 1 FROM inbox_index WHERE inbox_index.device = device.serial AND is_final = 0)"

    // MARK: Work with each commit

    /// Appends the changes to the log, and moves a part of the generation that is being moved. This must be called once, after
    /// the last change.
    func finish() throws {
        _ = try index.number()
        if let number = index.takeMovedUpTo() {
            try db.run("DELETE FROM inbox_log WHERE generation <= ?", [number])
        }
        if !log.isEmpty { try append(log.bytes) }
        // Marks that the table may have a part of the generation before this row.
        if index.beginMovingWhenFull() { try append([]) }
        // Entries are moved twice as fast as new ones are added, so that the move ends before the next one.
        guard let next = index.nextToMove(atLeast: max(Self.fewestAtOnce, 2 * log.additions)) else { return }
        var insert = try BoundStatement(
            db, "INSERT OR IGNORE INTO inbox_index (device, is_final, position, size) VALUES (?, ?, ?, ?)")
        for (key, slots) in next.entries {
            for slot in slots {
                insert.bind(key.device)
                insert.bind(key.isFinal ? 1 : 0)
                insert.bind(slot.position)
                insert.bind(slot.size)
                try insert.run()
            }
        }
        if next.areLast { db.afterNextTransaction { [index] _ in index.moved() } }
    }

    private func append(_ changes: [UInt8]) throws {
        var insert = try BoundStatement(db, "INSERT INTO inbox_log (generation, changes) VALUES (?, ?)")
        insert.bind(try index.number())
        insert.bind(changes)
        try insert.run()
    }

    private static let fewestAtOnce = 64

    /// Reads the entries in memory from the log.
    static func read(into index: InboxIndex, from db: Database) throws {
        var reading = InboxIndex.Reading()
        let rows = try Row.fetchCursor(db, sql: "SELECT generation, changes FROM inbox_log ORDER BY serial")
        while let row = try rows.next() {
            let (generation, data) = (row[0] as Int64, row[1] as Data)
            reading.begin(generation)
            try data.withUnsafeBytes { try IndexLog.forEachChange(in: $0) { reading.take($0) } }
        }
        index.take(reading, duringTransaction: db.isInsideTransaction)
    }
}

extension InboxRow {
    var indexKey: InboxIndex.Key { InboxIndex.Key(device, isFinal: finalOutcome != nil) }
}
