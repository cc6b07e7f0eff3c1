import CarillonCore
import CarillonWire
import GRDB

/// Reads a device that polls, in one statement.
struct PollReader {
    struct Found {
        /// The device and its binding, without the waiting envelopes.
        var visit: PollVisit
        /// Whether the table of ``InboxIndex`` has a waiting entry of the device.
        var hasEntries: Bool
    }

    private let db: Database

    init(_ db: Database) { self.db = db }

    /// Returns nil if there is no such device.
    func read(_ name: DeviceName, at now: Timestamp) throws -> Found? {
        var select: BoundStatement
        switch name {
        case .id(let id, let hash):
            select = try BoundStatement(db, Self.selectByID)
            select.bind(now.milliseconds)
            select.bind(hash.bytes)
            select.bind(id.value)
        case .credential(let hash):
            select = try BoundStatement(db, Self.selectByCredential)
            select.bind(now.milliseconds)
            select.bind(hash.bytes)
        }
        let (binding, rest) = (Device.columnCount, Device.columnCount + BindingTable.columnCount)
        return try select.first { columns in
            var visit = PollVisit(device: try Device(columns))
            if columns.integerIfAny(binding) != nil {
                visit.binding = UpdateBinding(columns, from: binding)
                visit.isAnyDue = columns.integer(rest) != 0
            }
            return Found(visit: visit, hasEntries: columns.integer(rest + 1) != 0)
        }
    }

    private static let select = """
        SELECT \(Device.columns), \(BindingTable.columns), CASE WHEN \(CompletionTable.dueExists) THEN 1 ELSE 0 END,
            CASE WHEN \(InboxIndexWriter.hasEntries) THEN 1 ELSE 0 END
        FROM \(Device.tables) LEFT JOIN binding ON \(BindingTable.isPresent)
        """
    private static let selectByCredential = select + " WHERE device.credential_hash = ?"
    private static let selectByID = selectByCredential + " AND device.id = ?"
}
