import CarillonCore
import CarillonWire

/// A store of bindings that reads the facts that ``BindingRules`` request and writes their changes.
struct TableBindings {
    private let rules: BindingRules
    var rows: [BindingSerial: NaiveBinding] = [:]
    var users: [Int64: UserID] = [:]
    var isAppDeleted = false
    var lastUpdate: Int64 = 0
    var lastExpired: Int64 = 0
    private var lastSerial: Int64 = 0

    init(most: Int) { rules = BindingRules(mostOfDevice: most) }

    mutating func begin(_ device: Int64, _ profile: String, at now: Timestamp) -> Int64? {
        var facts = BeginFacts(
            owner: BindingOwner(
                device: DeviceSerial(device), app: AppSerial(1), user: users[device], isAppDeleted: isAppDeleted),
            bindings: bindings(of: device) { [users] in $0.user == users[device] && $0.profile == profile })
        while true {
            switch rules.begin(profile, at: now, knowing: facts) {
            case .needsUnfinished:
                facts.unfinished = Set(rows.filter { $0.value.device == device && $0.value.isUnfinished }.keys)
            case .needsMissedContent(let binding): facts.missed = rows[binding]?.missed
            case .present(let binding): return binding.rawValue
            case .refused: return nil
            case .begins(let changes): return write(changes)
            }
        }
    }

    private func bindings(of device: Int64, _ isOwn: (NaiveBinding) -> Bool) -> [BindingRow] {
        rows.values.filter { $0.device == device }.map { row in
            BindingRow(
                serial: BindingSerial(row.serial), isOwn: isOwn(row), revision: row.revision,
                needsResync: row.needsResync, endedAt: row.endedAt)
        }
    }

    private mutating func write(_ changes: BindingChanges) -> Int64? {
        for end in changes.ended {
            rows[end.binding]?.endedAt = end.at
            rows[end.binding]?.revision = end.revision
            rows[end.binding]?.needsCleanup = end.needsCleanup
            rows[end.binding]?.cursor = 0
        }
        if let removed = changes.removed { rows[removed] = nil }
        switch changes.beginning {
        case .new(let new):
            lastSerial += 1
            rows[BindingSerial(lastSerial)] = NaiveBinding(
                serial: lastSerial, device: new.owner.device.rawValue, user: new.owner.user, profile: new.profile,
                seenTo: lastUpdate)
            return lastSerial
        case .again(let again):
            rows[again.binding]?.endedAt = nil
            rows[again.binding]?.needsCleanup = false
            rows[again.binding]?.cursor = 0
            rows[again.binding]?.revision = again.revision
            rows[again.binding]?.needsResync = again.needsResync
            return again.binding.rawValue
        case nil: return nil
        }
    }

    mutating func signIn(_ device: Int64, _ user: UserID?, at now: Timestamp) {
        users[device] = user
        _ = write(rules.userChanged(at: now, knowing: bindings(of: device) { $0.user == user }))
    }

    mutating func change(_ serial: Int64, revision: Int64) -> Bool {
        guard var row = open(serial), row.revision == revision else { return false }
        let changed = rules.changed(
            UpdateBinding(
                serial: BindingSerial(serial), device: DeviceSerial(row.device), user: row.user, profile: row.profile,
                revision: revision, parametersRevision: nil, values: ParameterValues(), locatedAt: nil, kinds: [],
                cursor: AudienceCursor(UpdateSerial(row.cursor), rules: row.heldBy), seenTo: UpdateSerial(row.seenTo),
                needsResync: row.needsResync, receivedTo: ReceivedTo(all: 0, updates: 0)))
        row.revision = changed.revision
        row.cursor = changed.cursor.place.rawValue
        rows[BindingSerial(serial)] = row
        return true
    }

    mutating func evaluated(_ serial: Int64, revision: Int64, to update: Int64, rules version: Int64, isFull: Bool) -> Bool {
        let found = open(serial)
        let facts = found.map { row in
            CursorFacts(
                revision: row.revision, cursor: AudienceCursor(UpdateSerial(row.cursor), rules: row.heldBy),
                seenTo: UpdateSerial(row.seenTo), lastExpired: UpdateSerial(lastExpired))
        }
        let place = AudienceCursor(UpdateSerial(update), rules: version)
        guard var row = found, let change = rules.evaluated(to: place, isFull: isFull, of: revision, knowing: facts) else {
            return false
        }
        row.cursor = change.cursor.place.rawValue
        row.heldBy = change.cursor.rules
        row.seenTo = change.seenTo.rawValue
        rows[BindingSerial(serial)] = row
        return true
    }

    private func open(_ serial: Int64) -> NaiveBinding? {
        rows[BindingSerial(serial)].flatMap { $0.endedAt == nil ? $0 : nil }
    }
}
