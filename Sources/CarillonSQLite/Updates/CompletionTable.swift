import CarillonCore
import CarillonWire
import GRDB

/// What became of updates at bindings, inside a transaction.
struct CompletionTable {
    let db: Database

    init(_ db: Database) { self.db = db }

    // MARK: Reading

    static let columns = """
        in_update, completion.binding, entry, state, attempt, failures, first_failed_at, due_at, reason, changed_at,
        completion.order_key, has_left, is_received
        """
    static let columnCount: Int32 = 13

    func completion(_ key: CompletionKey) throws -> Completion? {
        var select = try BoundStatement(
            db, "SELECT \(Self.columns) FROM completion WHERE binding = ? AND in_update = ? AND entry = ?")
        select.bind(key.binding.rawValue)
        select.bind(key.update.rawValue)
        select.bind(key.entry)
        return try select.first { Completion($0, from: 0) }
    }

    /// The last entry of an update.
    func last(of binding: BindingSerial, _ update: UpdateSerial) throws -> Completion? {
        var select = try BoundStatement(
            db,
            "SELECT \(Self.columns) FROM completion WHERE binding = ? AND in_update = ? ORDER BY entry DESC LIMIT 1")
        select.bind(binding.rawValue)
        select.bind(update.rawValue)
        return try select.first { Completion($0, from: 0) }
    }

    func unfinished(of binding: BindingSerial, limit: Int = .max) throws -> [Completion] {
        var select = try BoundStatement(
            db,
            """
            SELECT \(Self.columns) FROM completion INDEXED BY completion_unfinished
            WHERE binding = ? AND state < 10 ORDER BY in_update LIMIT ?
            """)
        select.bind(binding.rawValue)
        select.bind(limit)
        var found: [Completion] = []
        try select.forEachRow {
            found.append(Completion($0, from: 0))
            return true
        }
        return found
    }

    func isAnyDue(of binding: BindingSerial, at now: Timestamp) throws -> Bool {
        var select = try BoundStatement(
            db,
            """
            SELECT 1 FROM completion INDEXED BY completion_unfinished
            WHERE binding = ? AND state < 10 AND due_at NOT NULL AND due_at <= ? LIMIT 1
            """)
        select.bind(binding.rawValue)
        select.bind(now.milliseconds)
        return try select.run()
    }

    /// Of an update in one state, in the order of their bindings.
    func page(
        of update: UpdateSerial, in state: CompletionMachine.State, after: CompletionKey?, limit: Int
    ) throws -> [DeviceCompletion] {
        var select = try BoundStatement(
            db,
            """
            SELECT \(Self.columns), device.id, binding.user, binding.profile FROM completion INDEXED BY completion_of_update
            JOIN binding ON binding.serial = completion.binding JOIN device ON device.serial = binding.device
            WHERE in_update = ? AND state = ? AND (completion.binding, entry) > (?, ?)
            ORDER BY completion.binding, entry LIMIT ?
            """)
        select.bind(update.rawValue)
        select.bind(state.rawValue)
        select.bind(after?.binding.rawValue ?? 0)
        select.bind(after?.entry ?? 0)
        select.bind(limit)
        var found: [DeviceCompletion] = []
        try select.forEachRow { columns in
            found.append(
                DeviceCompletion(
                    device: DeviceID(try columns.bytes16(Self.columnCount)),
                    user: columns.text(Self.columnCount + 1).flatMap(UserID.init),
                    profile: columns.text(Self.columnCount + 2) ?? "", completion: Completion(columns, from: 0)))
            return true
        }
        return found
    }

    /// Of an update at one device, with all its users and profiles.
    func completions(of update: UpdateSerial, at device: DeviceID) throws -> [Completion] {
        var select = try BoundStatement(
            db,
            """
            SELECT \(Self.columns) FROM binding JOIN completion ON completion.binding = binding.serial AND in_update = ?
            WHERE binding.device = (SELECT serial FROM device WHERE id = ?)
            """)
        select.bind(update.rawValue)
        select.bind(device.value)
        var found: [Completion] = []
        try select.forEachRow { columns in
            found.append(Completion(columns, from: 0))
            return true
        }
        return found
    }

    /// Of updates that live, from one on: of each the last entry, ascending.
    func lastOfLive(of binding: BindingSerial, from first: UpdateSerial) throws -> [Completion] {
        var select = try BoundStatement(
            db,
            """
            SELECT \(Self.columns) FROM completion
            JOIN audience_update ON audience_update.serial = in_update AND audience_update.status = 0
            WHERE completion.binding = ? AND in_update >= ? ORDER BY in_update, entry
            """)
        select.bind(binding.rawValue)
        select.bind(first.rawValue)
        var found: [Completion] = []
        try select.forEachRow { columns in
            let completion = Completion(columns, from: 0)
            if found.last?.key.update == completion.key.update { found.removeLast() }
            found.append(completion)
            return true
        }
        return found
    }

    /// The envelope of it that waits in the inbox of its device.
    func envelope(of key: CompletionKey) throws -> MessageID? {
        var select = try BoundStatement(
            db,
            """
            SELECT position, secret FROM envelope WHERE origin_kind = \(Origin.Kind.update.rawValue) AND origin = ?
                AND device = (SELECT device FROM binding WHERE serial = ?) AND topic = ? AND topic IS NOT NULL
            """)
        select.bind(key.update.rawValue)
        select.bind(key.binding.rawValue)
        select.bind(key.topic)
        return try select.first { MessageID(position: $0.integer(0), secret: try $0.bytes16(1)) }
    }

    /// Of content that its device does not have.
    func unreceivedContent(of binding: BindingSerial) throws -> UnreceivedContent {
        var select = try BoundStatement(
            db,
            """
            SELECT \(Self.columns), is_resync FROM completion INDEXED BY completion_unfinished
            JOIN audience_update ON audience_update.serial = in_update AND audience_update.kind = 'content'
            WHERE completion.binding = ? AND completion.state < 10 AND completion.state = 0 AND NOT is_received
            ORDER BY in_update
            """)
        select.bind(binding.rawValue)
        var found = UnreceivedContent(completions: [], resync: nil)
        try select.forEachRow { columns in
            let completion = Completion(columns, from: 0)
            if columns.integer(Self.columnCount) != 0 {
                found.resync = completion.key.update
            } else {
                found.completions.append(completion)
            }
            return true
        }
        return found
    }

    // MARK: Writing

    func insert(_ completion: Completion) throws {
        var insert = try BoundStatement(
            db,
            """
            INSERT INTO completion (in_update, binding, entry, state, attempt, failures, first_failed_at, due_at, reason,
                changed_at, order_key, has_left, absorbed_by, is_received) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """)
        let (key, machine) = (completion.key, completion.machine)
        insert.bind(key.update.rawValue)
        insert.bind(key.binding.rawValue)
        insert.bind(key.entry)
        insert.bind(machine.state.rawValue)
        insert.bind(machine.attempt)
        insert.bind(machine.failures)
        insert.bind(machine.firstFailedAt?.milliseconds)
        insert.bind(machine.dueAt?.milliseconds)
        insert.bind(machine.reason)
        insert.bind(completion.changedAt.milliseconds)
        insert.bind(completion.orderKey)
        insert.bind(completion.hasLeft ? 1 : 0)
        insert.bind(completion.absorbedBy?.rawValue)
        insert.bind(machine.isReceived ? 1 : 0)
        try insert.run()
        if key.entry > Completion.mostEntries {
            try db.run(
                "DELETE FROM completion WHERE binding = ? AND in_update = ? AND entry <= ? AND state >= 10",
                [key.binding.rawValue, key.update.rawValue, key.entry - Completion.mostEntries])
        }
    }

    /// Writes what it became, and lets the next of its order key go on where it holds nobody up any more.
    func change(_ before: Completion, to machine: CompletionMachine, hasLeft: Bool? = nil, at now: Timestamp) throws {
        var update = try BoundStatement(
            db,
            """
            UPDATE completion SET state = ?, attempt = ?, failures = ?, first_failed_at = ?, due_at = ?, reason = ?,
                changed_at = ?, has_left = ?, is_received = ? WHERE binding = ? AND in_update = ? AND entry = ?
            """)
        update.bind(machine.state.rawValue)
        update.bind(machine.attempt)
        update.bind(machine.failures)
        update.bind(machine.firstFailedAt?.milliseconds)
        update.bind(machine.dueAt?.milliseconds)
        update.bind(machine.reason)
        update.bind(now.milliseconds)
        update.bind(hasLeft ?? before.hasLeft ? 1 : 0)
        update.bind(machine.isReceived ? 1 : 0)
        update.bind(before.key.binding.rawValue)
        update.bind(before.key.update.rawValue)
        update.bind(before.key.entry)
        try update.run()
        if before.machine.holdsUpOthers, !machine.holdsUpOthers { try releaseNext(after: before, at: now) }
        try absorbing(before, became: machine.state, at: now)
    }

    // MARK: Absorbing

    /// Answers what of it is in the inbox.
    func absorb(_ absorbed: [(CompletionKey, by: UpdateSerial)], at now: Timestamp) throws -> [MessageID] {
        try absorbed.compactMap { key, absorber in
            let envelope = try envelope(of: key)
            return try absorb(key, by: absorber, at: now) ? envelope : nil
        }
    }

    /// Answers whether it was absorbed.
    private func absorb(_ key: CompletionKey, by absorber: UpdateSerial, at now: Timestamp) throws -> Bool {
        guard let before = try completion(key) else { return false }
        var machine = before.machine
        guard machine.absorbed() else { return false }
        // With it goes what it stood for itself.
        try db.run(
            "UPDATE completion SET absorbed_by = ?1 WHERE binding = ?2 AND (in_update = ?3 AND entry = ?4 OR absorbed_by = ?3)",
            [absorber.rawValue, key.binding.rawValue, key.update.rawValue, key.entry])
        try change(before, to: machine, at: now)
        return true
    }

    /// What stood for earlier content may come to nothing: then that is given by itself. What nobody received before it expired is made up for.
    private func absorbing(_ before: Completion, became state: CompletionMachine.State, at now: Timestamp) throws {
        guard !before.machine.state.isFinal else { return }
        let (binding, update) = (before.key.binding.rawValue, before.key.update.rawValue)
        switch state {
        case .parked, .withdrawn, .superseded, .gone: try revive(absorbedBy: update, binding, at: now)
        case .expired:
            // What was to be given again its device may have lost.
            let isOwed =
                [.waiting, .failed].contains(before.machine.state) || before.machine.dueAt.map { $0 <= now } ?? false
            try miss(before.key, isAway: !isOwed)
        default: break
        }
    }

    /// What a device could not process before it expired, it shows as it was; what it could, it need not fetch.
    func reportedLate(_ completion: Completion, _ result: UpdateResult) throws {
        guard completion.machine.state == .expired else { return }
        switch result {
        case .failed: try miss(completion.key)
        case .done, .doneWith:
            try standIn(completion.key.update, forExpiredOf: completion.key.binding, completion.key.update)
        case .deferred, .unsupported: break
        }
    }

    /// What expired need not be made up for any more: all of it, or an update.
    func standIn(
        _ update: UpdateSerial, forExpiredOf binding: BindingSerial, _ expired: UpdateSerial? = nil
    ) throws {
        try db.run(
            """
            UPDATE completion SET absorbed_by = ?1 WHERE binding = ?2 AND in_update = coalesce(?3, in_update)
                AND state = \(CompletionMachine.State.expired.rawValue) AND absorbed_by IS NULL
            """, [update.rawValue, binding.rawValue, expired?.rawValue])
    }

    /// - Parameter isAway: Only where its user signed out, with whom went what he had.
    private func miss(_ key: CompletionKey, isAway: Bool = false) throws {
        try db.run(
            """
            UPDATE binding SET needs_resync = 1 WHERE serial = ? \(isAway ? "AND ended_at NOT NULL" : "")
                AND EXISTS (SELECT 1 FROM audience_update WHERE serial = ? AND kind = 'content')
            """, [key.binding.rawValue, key.update.rawValue])
    }

    private func revive(absorbedBy absorber: Int64, _ binding: Int64, at now: Timestamp) throws {
        // Everything goes on standing for everything.
        var select = try BoundStatement(
            db,
            """
            SELECT \(Self.columns), audience_update.status FROM completion INDEXED BY completion_absorbed
            JOIN audience_update ON audience_update.serial = in_update AND audience_update.status IN (0, 3)
            WHERE completion.binding = ?1 AND absorbed_by = ?2 AND absorbed_by NOT NULL AND completion.state = \(CompletionMachine.State.superseded.rawValue)
                AND NOT EXISTS (SELECT 1 FROM audience_update WHERE serial = ?2 AND is_resync)
            ORDER BY in_update
            """)
        select.bind(binding)
        select.bind(absorber)
        var absorbed: [Completion] = []
        var isMissed = false
        try select.forEachRow { columns in
            if columns.integer(Self.columnCount) == 0 {
                absorbed.append(Completion(columns, from: 0))
            } else {
                isMissed = true
            }
            return true
        }
        if isMissed { try db.run("UPDATE binding SET needs_resync = 1 WHERE serial = ?", [binding]) }
        for before in absorbed {
            let key = before.key
            try db.run(
                "UPDATE completion SET absorbed_by = NULL WHERE binding = ? AND in_update = ? AND entry = ?",
                [binding, key.update.rawValue, key.entry])
            var machine = before.machine
            machine.revived()
            if before.orderKey == nil { machine.released(at: now) }
            try change(before, to: machine, at: now)
            try releaseNext(after: before, at: now)
        }
    }

    func remove(_ completion: Completion, at now: Timestamp) throws {
        let key = completion.key
        try db.run(
            "DELETE FROM completion WHERE binding = ? AND in_update = ? AND entry = ?",
            [key.binding.rawValue, key.update.rawValue, key.entry])
        if completion.machine.holdsUpOthers { try releaseNext(after: completion, at: now) }
        try absorbing(completion, became: .gone, at: now)
    }

    /// The first that stands behind others of an order key may be given, when none before it holds it up.
    private func releaseNext(after completion: Completion, at now: Timestamp) throws {
        guard let orderKey = completion.orderKey, let next = try first(of: orderKey, completion.key.binding),
            next.machine.state == .waiting, next.machine.attempt == 0, next.machine.dueAt == nil
        else { return }
        var machine = next.machine
        machine.released(at: now)
        try change(next, to: machine, at: now)
    }

    /// The first of an order key that holds up others.
    private func first(of orderKey: String, _ binding: BindingSerial) throws -> Completion? {
        var select = try BoundStatement(
            db,
            """
            SELECT \(Self.columns) FROM completion INDEXED BY completion_order
            WHERE binding = ? AND order_key = ? AND order_key NOT NULL AND state < 4
            ORDER BY in_update, entry LIMIT 1
            """)
        select.bind(binding.rawValue)
        select.bind(orderKey)
        return try select.first { Completion($0, from: 0) }
    }

    /// Of several of an order key that are due at once, only the first is: the others stand behind it, as if they had never been given.
    func lineUp(_ binding: BindingSerial) throws {
        try db.run(
            """
            UPDATE completion SET due_at = NULL, attempt = 0
            WHERE binding = ? AND order_key NOT NULL AND state = 0 AND due_at NOT NULL
                AND EXISTS (SELECT 1 FROM completion AS earlier INDEXED BY completion_order
                    WHERE earlier.binding = completion.binding AND earlier.order_key = completion.order_key
                        AND earlier.order_key NOT NULL AND earlier.state < 4
                        AND (earlier.in_update, earlier.entry) < (completion.in_update, completion.entry))
            """, [binding.rawValue])
    }

    /// One that stands behind others of its order key, if there are some: it may be given at once where they came to an end meanwhile.
    ///
    /// Nothing is written where the update ended meanwhile: nothing would end the row any more.
    func insertBehind(_ completion: Completion, at now: Timestamp) throws {
        guard try isLive(completion.key.update, at: now) else { return }
        var completion = completion
        if let orderKey = completion.orderKey, try first(of: orderKey, completion.key.binding) == nil {
            completion.machine.released(at: now)
        }
        try insert(completion)
    }

    // MARK: Effects

    func counts(_ offer: UpdateOffer) throws -> Bool { try offered(offer) != nil }

    /// Answers whether it counted.
    func offer(_ offer: UpdateOffer) throws -> Bool {
        guard let (before, after) = try offered(offer) else { return false }
        if let before {
            try change(before, to: after, at: offer.at)
        } else {
            try insert(Completion(key: offer.key, machine: after, changedAt: offer.at, orderKey: offer.orderKey))
        }
        return true
    }

    /// What it was, and what it becomes; nil when nothing comes of it.
    private func offered(_ offer: UpdateOffer) throws -> (before: Completion?, after: CompletionMachine)? {
        guard try isLive(offer.key.update, at: offer.at, orPaused: false),
            try isOpen(offer.key.binding, revision: offer.revision)
        else {
            return nil
        }
        let present = try completion(offer.key)
        if offer.isAgain {
            guard let present, !present.hasLeft, !present.machine.state.isFinal, present.machine.dueAt != nil else {
                return nil
            }
        } else {
            guard present == nil, offer.attempt == 1 else { return nil }
        }
        var machine = present?.machine ?? CompletionMachine()
        guard machine.attempt == offer.attempt - 1 else { return nil }
        machine.offered()
        return (present, machine)
    }

    func isLive(_ update: UpdateSerial, at now: Timestamp, orPaused: Bool = true) throws -> Bool {
        let isUnpaused = orPaused ? "" : " AND paused_at IS NULL"
        var select = try BoundStatement(
            db, "SELECT 1 FROM audience_update WHERE serial = ? AND status = 0 AND expires_at > ?\(isUnpaused)")
        select.bind(update.rawValue)
        select.bind(now.milliseconds)
        return try select.run()
    }

    func canEnd(_ key: CompletionKey) throws -> Bool {
        try completion(key).map { !$0.machine.state.isFinal } ?? false
    }

    /// Answers whether it had not come to an end before.
    func end(_ key: CompletionKey, as state: CompletionMachine.State, at now: Timestamp) throws -> Bool {
        guard let before = try completion(key) else { return false }
        var machine = before.machine
        guard machine.ended(as: state) else { return false }
        try change(before, to: machine, at: now)
        return true
    }

    /// An envelope left its inbox.
    func heard(_ row: InboxRow) throws {
        guard let settlement = row.settlement, let topic = row.topic,
            let key = CompletionKey(UpdateSerial(row.origin.serial), topic: topic), let before = try completion(key)
        else { return }
        var machine = before.machine
        switch settlement.outcome {
        case .acknowledged: machine.received(at: settlement.at)
        case .unsupported: _ = machine.reported(.unsupported, at: settlement.at)
        case .failed: _ = machine.reported(.failed(isPermanent: false, reason: nil), at: settlement.at)
        // It ends with its update, of which the device is told then.
        case .cancelled, .expired, .gone: machine.takenOut(at: settlement.at)
        case .replaced, .dropped: return
        }
        if machine != before.machine { try change(before, to: machine, at: settlement.at) }
    }
}

extension Completion {
    /// - Parameter place: Of the first of ``CompletionTable/columns``.
    init(_ columns: StatementColumns, from place: Int32) {
        self.init(
            key: CompletionKey(
                update: UpdateSerial(columns.integer(place)), binding: BindingSerial(columns.integer(place + 1)),
                entry: Int(columns.integer(place + 2))),
            machine: CompletionMachine(
                CompletionMachine.State(rawValue: Int(columns.integer(place + 3))) ?? .gone,
                attempt: Int(columns.integer(place + 4)), isReceived: columns.integer(place + 12) != 0,
                failures: Int(columns.integer(place + 5)),
                firstFailedAt: columns.integerIfAny(place + 6).map(Timestamp.init(milliseconds:)),
                dueAt: columns.integerIfAny(place + 7).map(Timestamp.init(milliseconds:)), reason: columns.text(place + 8)),
            changedAt: columns.timestamp(place + 9), orderKey: columns.text(place + 10),
            hasLeft: columns.integer(place + 11) != 0)
    }
}
