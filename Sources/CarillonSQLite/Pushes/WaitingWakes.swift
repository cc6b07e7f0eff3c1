import CarillonCore
import CarillonWire
import GRDB

/// What waits for a device that it is to be woken for, inside a transaction of the writing connection.
struct WaitingWakes {
    struct Span: Equatable {
        var first: Int64
        var last: Int64
        /// Of the last.
        var expiresAt: Timestamp
    }

    private let db: Database
    private let index: InboxIndex

    init(_ db: Database, index: InboxIndex) {
        self.db = db
        self.index = index
    }

    /// Nil when nothing waits that wakes.
    func span(of device: DeviceSerial, at now: Timestamp) throws -> Span? {
        let key = InboxIndex.Key(device, isFinal: false)
        let young = try index.slots(of: key).map(\.position)
        guard
            let last = try waking(young.reversed(), at: now) ?? waking(inTableOf: key, fromTheEnd: true, at: now)
        else { return nil }
        let first = try waking(inTableOf: key, fromTheEnd: false, at: now) ?? waking(young, at: now)
        return Span(
            first: min(first?.position ?? last.position, last.position), last: last.position, expiresAt: last.expiresAt)
    }

    /// Whether nothing waits at all.
    func isEmpty(_ device: DeviceSerial) throws -> Bool {
        let key = InboxIndex.Key(device, isFinal: false)
        guard try index.slots(of: key).isEmpty else { return false }
        return try positions(inTableOf: key, fromTheEnd: true, beyond: .max, limit: 1).isEmpty
    }

    private typealias Waking = (position: Int64, expiresAt: Timestamp)

    private func waking(_ positions: some Collection<Int64>, at now: Timestamp) throws -> Waking? {
        var select = try BoundStatement(db, "SELECT wake, expires_at FROM envelope WHERE position = ?")
        for position in positions {
            select.bind(position)
            let row = try select.first { (wake: $0.integer(0), expiresAt: $0.timestamp(1)) }
            if let row, row.wake == WakeMode.background.number, row.expiresAt > now { return (position, row.expiresAt) }
        }
        return nil
    }

    private func waking(inTableOf key: InboxIndex.Key, fromTheEnd: Bool, at now: Timestamp) throws -> Waking? {
        var beyond: Int64 = fromTheEnd ? .max : 0
        while true {
            let some = try positions(inTableOf: key, fromTheEnd: fromTheEnd, beyond: beyond, limit: Self.atOnce)
            if let found = try waking(some, at: now) { return found }
            guard some.count == Self.atOnce, let last = some.last else { return nil }
            beyond = last
        }
    }

    private func positions(
        inTableOf key: InboxIndex.Key, fromTheEnd: Bool, beyond position: Int64, limit: Int
    ) throws -> [Int64] {
        var select = try BoundStatement(
            db,
            """
            SELECT position FROM inbox_index WHERE device = ? AND is_final = 0 AND position \(fromTheEnd ? "<" : ">") ?
            ORDER BY position \(fromTheEnd ? "DESC" : "ASC") LIMIT ?
            """)
        select.bind(key.device)
        select.bind(position)
        select.bind(limit)
        var positions: [Int64] = []
        try select.forEachRow { columns in
            positions.append(columns.integer(0))
            return true
        }
        return positions
    }

    private static let atOnce = 16
}

extension WakeMode {
    /// As the table of envelopes has it.
    var number: Int64 {
        switch self {
        case .none: 0
        case .background: 1
        case .alert: 2
        }
    }
}
