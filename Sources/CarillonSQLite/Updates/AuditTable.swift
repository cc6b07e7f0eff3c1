import CarillonCore
import CarillonWire
import GRDB

/// The audit of operations on updates, inside a transaction. Entries are never changed.
struct AuditTable {
    private let db: Database

    init(_ db: Database) { self.db = db }

    func append(_ entry: AuditEntry, of app: AppSerial) throws {
        var insert = try BoundStatement(
            db, "INSERT INTO update_audit (app, at, key, action, of_update, count) VALUES (?, ?, ?, ?, ?, ?)")
        insert.bind(app.rawValue)
        insert.bind(entry.at.milliseconds)
        insert.bind(Int64(bitPattern: entry.key.value))
        insert.bind(entry.action.rawValue)
        insert.bind(entry.update.value)
        insert.bind(entry.count.map(Int64.init))
        try insert.run()
    }

    /// Returns entries in descending order.
    func page(of app: AppSerial, before number: Int64, limit: Int) throws -> [AuditEntry] {
        var select = try BoundStatement(
            db,
            """
            SELECT number, at, key, action, of_update, count FROM update_audit WHERE app = ? AND number < ?
            ORDER BY number DESC LIMIT ?
            """)
        select.bind(app.rawValue)
        select.bind(number)
        select.bind(limit)
        return try select.all { columns in
            guard let action = columns.text(3).flatMap(AuditEntry.Action.init) else { return nil }
            return try AuditEntry(
                number: columns.integer(0), at: columns.timestamp(1),
                key: KeyID(UInt64(bitPattern: columns.integer(2))), action: action,
                update: UpdateID(columns.bytes16(4)), count: columns.integerIfAny(5).map(Int.init))
        }
    }

    func forget(before moment: Timestamp, beyond most: Int, limit: Int) throws {
        try db.run(
            "DELETE FROM update_audit WHERE number IN (SELECT number FROM update_audit WHERE at <= ? ORDER BY at LIMIT ?)",
            [moment.milliseconds, limit])
        try db.run(
            """
            DELETE FROM update_audit WHERE number IN (SELECT number FROM update_audit WHERE app =
                (SELECT app FROM update_audit GROUP BY app HAVING count(*) > ? LIMIT 1) ORDER BY number LIMIT ?)
            """, [most, min(limit, max(1, most / 100))])
    }
}
