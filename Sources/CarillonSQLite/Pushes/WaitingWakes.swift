import CarillonCore
import CarillonWire
import GRDB

/// Searches for the waiting envelopes that wake a device, inside a transaction of the writing connection. ``FirstWaking``
/// and ``LastWaking`` decide which positions are read.
struct WaitingWakes {
    private let db: Database
    private let index: InboxIndex

    init(_ db: Database, index: InboxIndex) {
        self.db = db
        self.index = index
    }

    /// Returns nil if no waiting envelope wakes the device.
    func span(of device: DeviceSerial, _ reach: inout PushReach, at now: Timestamp) throws -> PushSpan? {
        guard let first = try first(of: device, &reach, at: now) else { return nil }
        return try span(of: device, from: first, at: now)
    }

    /// Whether a waiting envelope wakes the device.
    func areAny(of device: DeviceSerial, _ reach: inout PushReach, at now: Timestamp) throws -> Bool {
        try first(of: device, &reach, at: now) != nil
    }

    /// Returns the first envelope that wakes the device. Envelopes that were searched before are not searched again, because a
    /// device can have thousands of envelopes that do not wake it.
    private func first(of device: DeviceSerial, _ reach: inout PushReach, at now: Timestamp) throws -> PushSpan? {
        guard reach.quietBefore < .max else { return nil }
        let key = InboxIndex.Key(device, isFinal: false)
        // An envelope that the index has in memory is waiting.
        if let first = reach.firstWaking, first.expiresAt > now, try index.contains(first.first, of: key) { return first }
        var search = FirstWaking(from: reach.quietBefore, at: now)
        var count = FirstWaking.atOnce
        while search.found == nil, count == FirstWaking.atOnce {
            let some = try positions(
                inTableOf: key, fromTheEnd: false, beyond: search.beyond, limit: FirstWaking.atOnce)
            count = some.count
            try look(at: some, &search)
        }
        // Positions in memory can be before those in the table.
        let places = reach.quietBefore..<(search.found?.first ?? .max)
        let inMemory = try index.slots(of: key).lazy.map(\.position).filter { places.contains($0) }
        try look(at: inMemory, &search)
        reach.note(search)
        return search.found
    }

    private func look(at positions: some Sequence<Int64>, _ search: inout FirstWaking) throws {
        var select = try BoundStatement(db, Self.selectEnvelope)
        for position in positions {
            if search.saw(try envelope(at: position, &select), at: position) { return }
        }
    }

    private func span(of device: DeviceSerial, from first: PushSpan, at now: Timestamp) throws -> PushSpan {
        let key = InboxIndex.Key(device, isFinal: false)
        var newest: [Int64] = try index.slots(of: key).map(\.position).suffix(LastWaking.looks).reversed()
        // The table is only read for positions before those in memory, and only after the first envelope that wakes.
        if newest.count < LastWaking.looks, newest.last.map({ $0 > first.first }) ?? true {
            newest += try positions(
                inTableOf: key, fromTheEnd: true, beyond: newest.last ?? .max, limit: LastWaking.looks - newest.count)
        }
        var search = LastWaking(after: first, at: now)
        var select = try BoundStatement(db, Self.selectEnvelope)
        for position in newest {
            guard search.reached(position) else { break }
            if search.saw(try envelope(at: position, &select), at: position) { break }
        }
        return search.span
    }

    /// Whether no envelope is waiting.
    func isEmpty(_ device: DeviceSerial) throws -> Bool {
        let key = InboxIndex.Key(device, isFinal: false)
        guard try index.slots(of: key).isEmpty else { return false }
        return try positions(inTableOf: key, fromTheEnd: true, beyond: .max, limit: 1).isEmpty
    }

    private static let selectEnvelope = "SELECT wake, expires_at FROM envelope WHERE position = ?"

    private func envelope(at position: Int64, _ select: inout BoundStatement) throws -> WaitingEnvelope? {
        select.bind(position)
        return try select.first { columns in
            WaitingEnvelope(wake: WakeMode(number: columns.integer(0)), expiresAt: columns.timestamp(1))
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
        return try select.all { columns in columns.integer(0) }
    }
}

extension WakeMode {
    /// The number in the table of envelopes.
    var number: Int64 {
        switch self {
        case .none: 0
        case .background: 1
        case .alert: 2
        }
    }

    init?(number: Int64) {
        switch number {
        case 0: self = .none
        case 1: self = .background
        case 2: self = .alert
        default: return nil
        }
    }
}
