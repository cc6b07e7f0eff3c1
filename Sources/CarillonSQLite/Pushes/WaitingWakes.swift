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
    func span(of device: DeviceSerial, _ reach: inout PushMemory.Reach, at now: Timestamp) throws -> Span? {
        guard let first = try first(of: device, &reach, at: now) else { return nil }
        let last = try last(of: device, notBefore: first, at: now)
        return Span(first: first.position, last: last.position, expiresAt: last.expiresAt)
    }

    /// Whether anything waits that wakes.
    func areAny(of device: DeviceSerial, _ reach: inout PushMemory.Reach, at now: Timestamp) throws -> Bool {
        try first(of: device, &reach, at: now) != nil
    }

    /// What was looked at once is not looked at again: a device that is told of nothing may have thousands of envelopes.
    private func first(of device: DeviceSerial, _ reach: inout PushMemory.Reach, at now: Timestamp) throws -> Waking? {
        let key = InboxIndex.Key(device, isFinal: false)
        var beyond = reach.quietBefore - 1
        while true {
            let some = try positions(inTableOf: key, fromTheEnd: false, beyond: beyond, limit: Self.atOnce)
            if let found = try waking(some, at: now) {
                reach.quietBefore = found.position
                return found
            }
            if let last = some.last { beyond = last }
            guard some.count == Self.atOnce else { break }
        }
        let young = try index.slots(of: key).map(\.position).filter { $0 >= reach.quietBefore }
        let found = try waking(young, at: now)
        reach.quietBefore = found?.position ?? max(beyond, young.last ?? 0) + 1
        return found
    }

    /// The last that wakes; when it is not among the newest, what stands before those.
    private func last(of device: DeviceSerial, notBefore first: Waking, at now: Timestamp) throws -> Waking {
        let key = InboxIndex.Key(device, isFinal: false)
        var newest: [Int64] = try index.slots(of: key).map(\.position).suffix(Self.looks).reversed()
        if newest.count < Self.looks {
            let older = try positions(
                inTableOf: key, fromTheEnd: true, beyond: newest.last ?? .max, limit: Self.looks - newest.count)
            newest += older
        }
        if let found = try waking(newest.filter { $0 > first.position }, at: now) { return found }
        guard let oldest = newest.last, oldest > first.position else { return first }
        return (oldest - 1, first.expiresAt)
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
    private static let looks = 256
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
