import CarillonCore
import CarillonWire

/// A binding according to the documentation, with the results of its updates.
struct NaiveBinding: Equatable {
    var serial: Int64
    var device: Int64
    var user: UserID?
    var profile: String
    var revision: Int64 = 1
    var endedAt: Timestamp?
    var needsResync = false
    var needsCleanup = false
    var cursor: Int64 = 0
    var heldBy: Int64 = 0
    var seenTo: Int64
    /// Something of it is not finished.
    var isUnfinished = false
    var missed = MissedContent(endedWithBinding: false, isWithoutResult: false)
}

/// The bindings of a few devices of one app, one operation after the other.
struct NaiveBindings {
    let most: Int
    var rows: [NaiveBinding] = []
    var users: [Int64: UserID] = [:]
    var isAppDeleted = false
    var lastUpdate: Int64 = 0
    var lastExpired: Int64 = 0
    private var lastSerial: Int64 = 0

    init(most: Int) { self.most = most }

    /// Returns the serial of the binding.
    mutating func begin(_ device: Int64, _ profile: String, at now: Timestamp) -> Int64? {
        let saved = self
        let user = users[device]
        let place = rows.firstIndex { $0.device == device && $0.user == user && $0.profile == profile }
        if let place, rows[place].endedAt == nil { return rows[place].serial }
        if isAppDeleted { return nil }
        for other in rows.indices where rows[other].device == device && rows[other].endedAt == nil {
            end(other, at: now)
            rows[other].needsCleanup = true
        }
        if let place {
            rows[place].endedAt = nil
            rows[place].needsCleanup = false
            rows[place].revision += 1
            rows[place].cursor = 0
            if rows[place].missed != MissedContent(endedWithBinding: false, isWithoutResult: false) {
                rows[place].needsResync = true
            }
            return rows[place].serial
        }
        let owned = rows.filter { $0.device == device }
        if owned.count == most {
            var oldest: NaiveBinding?
            for row in owned where !row.isUnfinished {
                guard let ended = row.endedAt else { continue }
                guard let known = oldest, let earliest = known.endedAt else {
                    oldest = row
                    continue
                }
                if ended < earliest || ended == earliest && row.serial < known.serial { oldest = row }
            }
            guard let oldest else {
                self = saved
                return nil
            }
            rows.removeAll { $0.serial == oldest.serial }
        }
        lastSerial += 1
        rows.append(
            NaiveBinding(serial: lastSerial, device: device, user: user, profile: profile, seenTo: lastUpdate))
        return lastSerial
    }

    private mutating func end(_ place: Int, at now: Timestamp) {
        rows[place].endedAt = now
        rows[place].revision += 1
        rows[place].cursor = 0
    }

    mutating func signIn(_ device: Int64, _ user: UserID?, at now: Timestamp) {
        users[device] = user
        for place in rows.indices where rows[place].device == device && rows[place].endedAt == nil {
            if rows[place].user != user { end(place, at: now) }
        }
    }

    mutating func change(_ serial: Int64, revision: Int64) -> Bool {
        guard let place = open(serial, revision) else { return false }
        rows[place].revision += 1
        rows[place].cursor = 0
        return true
    }

    mutating func evaluated(_ serial: Int64, revision: Int64, to update: Int64, rules: Int64, isFull: Bool) -> Bool {
        guard let place = open(serial, revision) else { return false }
        if rows[place].heldBy != rules { rows[place].cursor = 0 }
        if update > rows[place].cursor { rows[place].cursor = update }
        rows[place].heldBy = rules
        if isFull {
            if update < rows[place].seenTo { rows[place].seenTo = update }
        } else if update > rows[place].seenTo, lastExpired <= rows[place].seenTo {
            rows[place].seenTo = update
        }
        return true
    }

    private func open(_ serial: Int64, _ revision: Int64) -> Int? {
        rows.firstIndex { $0.serial == serial && $0.revision == revision && $0.endedAt == nil }
    }
}
