package import CarillonCore
package import CarillonWire
import GRDB

extension SQLiteStore: UpdateStore {
    // MARK: Updates

    package func logMark(of app: AppSerial) async throws -> UpdateLogMark? {
        try await read { db in try UpdateTable(db).mark(of: app) }
    }

    package func publishUpdate(_ request: UpdateRequest, at now: Timestamp) async throws -> UpdatePut {
        try await group.run { db in try UpdateTable(db).publish(request, at: now) }
    }

    package func liveUpdates(of app: AppSerial) async throws -> [Update] {
        try await read { db in
            try UpdateTable(db).updates("app = ? AND status = 0 AND NOT is_resync AND paused_at IS NULL ORDER BY serial") {
                $0.bind(app.rawValue)
            }
        }
    }

    package func update(_ id: UpdateID, of app: AppSerial) async throws -> Update? {
        try await read { db in try UpdateTable(db).update(id, of: app) }
    }

    package func updates(
        of app: AppSerial, _ filter: UpdateFilter, before: UpdateSerial?, limit: Int
    ) async throws -> [Update] {
        let condition =
            switch filter {
            case .all: ""
            case .live: " AND status = 0"
            case .paused: " AND status = 0 AND paused_at IS NOT NULL"
            }
        return try await scan { db in
            try UpdateTable(db).updates("app = ? AND serial < ?\(condition) ORDER BY serial DESC LIMIT ?") { select in
                select.bind(app.rawValue)
                select.bind(before?.rawValue ?? .max)
                select.bind(limit)
            }
        }
    }

    package func lastExpiredContent(of app: AppSerial) async throws -> UpdateSerial {
        try await read { db in try UpdateTable(db).lastExpiredContent(of: app) }
    }

    package func expiredContent(
        of app: AppSerial, after place: UpdateSerial, limit: Int
    ) async throws -> [Update]? {
        let found = try await read { db in
            try UpdateTable(db).expiredContent(of: app, after: place, limit: limit + 1)
        }
        return found.flatMap { $0.count > limit ? nil : $0 }
    }

    package func withdrawUpdate(_ update: Update, by key: KeyID, at now: Timestamp) async throws -> Bool {
        try await group.run { db in
            guard try UpdateTable(db).end(update.serial, as: .withdrawn, at: now) else { return false }
            try AuditTable(db).append(
                AuditEntry(at: now, key: key, action: .withdrawn, update: update.id), of: update.app)
            return true
        }
    }

    package func resumeUpdate(
        _ update: Update, by key: KeyID, audienceBytes limit: Int, at now: Timestamp
    ) async throws -> UpdateResumption {
        // The update stays paused until all its completions are due.
        while try await !group.run({ db in try CompletionTable(db).bringForward(update.serial, limit: 1000) }) {}
        return try await group.run { db in
            let resumption = try UpdateTable(db).resume(update, audienceBytes: limit)
            guard resumption == .resumed else { return resumption }
            try AuditTable(db).append(AuditEntry(at: now, key: key, action: .resumed, update: update.id), of: update.app)
            return .resumed
        }
    }

    package func endExpiredUpdates(at now: Timestamp, limit: Int) async throws -> [EndedUpdate] {
        let isAny = try await read { db in
            try Int.first(
                db, "SELECT 1 FROM audience_update WHERE status = 0 AND expires_at <= ? LIMIT 1", [now.milliseconds]) != nil
        }
        guard isAny else { return [] }
        return try await group.run { db in try UpdateTable(db).endExpired(at: now, limit: limit) }
    }

    package func forgetUpdates(
        _ limits: UpdateLimits, by retention: RetentionTime?, limit: Int
    ) async throws -> Bool {
        try await group.run { db in try UpdateTable(db).forget(limits, by: retention, limit: limit) }
    }

    package func counts(of update: UpdateSerial) async throws -> [CompletionMachine.State: Int] {
        try await scan { db in
            var select = try BoundStatement(
                db, "SELECT state, count(*) FROM completion WHERE in_update = ? GROUP BY state")
            select.bind(update.rawValue)
            var counts: [CompletionMachine.State: Int] = [:]
            try select.forEachRow { columns in
                if let state = CompletionMachine.State(rawValue: Int(columns.integer(0))) {
                    counts[state] = Int(columns.integer(1))
                }
                return true
            }
            return counts
        }
    }

    package func completions(
        of update: UpdateSerial, in state: CompletionMachine.State?, after: CompletionKey?, limit: Int
    ) async throws -> [DeviceCompletion] {
        let states = state.map { [$0] } ?? CompletionMachine.State.allCases
        return try await scan { db in
            // The index is ordered by state, so a page of each state is read, and the first completions of all pages are
            // returned.
            let table = CompletionTable(db)
            let pages = try states.flatMap { try table.page(of: update, in: $0, after: after, limit: limit) }
            guard states.count > 1 else { return pages }
            let sorted = pages.sorted { one, other in
                let (one, other) = (one.completion.key, other.completion.key)
                return (one.binding.rawValue, one.entry) < (other.binding.rawValue, other.entry)
            }
            return Array(sorted.prefix(limit))
        }
    }

    package func completions(of update: UpdateSerial, at device: DeviceID) async throws -> [Completion] {
        try await read { db in try CompletionTable(db).completions(of: update, at: device) }
    }

    // MARK: Bindings

    package func binding(of device: DeviceSerial, profile: String, at now: Timestamp) async throws -> UpdateBinding? {
        if let present = try await read({ db in try BindingTable(db).present(of: device, profile: profile) }) {
            return present
        }
        return try await group.run { db in
            try BindingTransaction(db).begin(of: device, profile: profile, at: now)
        }
    }

    package func presentBinding(of device: DeviceSerial) async throws -> UpdateBinding? {
        try await read { db in try BindingTable(db).present(of: device) }
    }

    package func change(
        _ binding: UpdateBinding, hasOtherKinds: Bool, at now: Timestamp
    ) async throws -> (binding: UpdateBinding, takenOut: [MessageID])? {
        guard hasOtherKinds else {
            return try await group.run { db in try BindingTransaction(db).change(binding, hasOtherKinds: false, at: now) }
        }
        return try await changeInboxes { db, transaction in
            let change = try BindingTransaction(db).change(binding, hasOtherKinds: true, at: now)
            if let change { try transaction.takeOut(change.takenOut, at: now) }
            return change
        }
    }

    package func bindingCount(of app: AppSerial) async throws -> Int {
        try await scan { db in
            try Int.first(db, "SELECT count(*) FROM binding WHERE app = ? AND ended_at IS NULL", [app.rawValue]) ?? 0
        }
    }

    package func bindings(of app: AppSerial, after: BindingSerial, limit: Int) async throws -> [AppBinding] {
        try await scan { db in try BindingTable(db).of(app, after: after, limit: limit) }
    }

    package func forgetLocations(in shards: ShardSet, before moment: Timestamp, limit: Int) async throws {
        let isAny = try await read { db in
            try Int.first(
                db,
                """
                SELECT 1 FROM binding WHERE located_at IS NOT NULL AND located_at <= ? \(shards.condition(on: "device"))
                LIMIT 1
                """, shards.arguments(with: [moment.milliseconds])) != nil
        }
        guard isAny else { return }
        try await group.run { db in try BindingTable(db).forgetLocations(in: shards, before: moment, limit: limit) }
    }

    package func bindingsToRelease(in shards: ShardSet, limit: Int) async throws -> [ReleasedBinding] {
        try await read { db in
            var select = try BoundStatement(
                db,
                """
                SELECT serial, device FROM binding WHERE is_left_over \(shards.condition(on: "device"))
                ORDER BY serial LIMIT ?
                """)
            select.bind(shards)
            select.bind(limit)
            return try select.all { columns in
                ReleasedBinding(binding: BindingSerial(columns.integer(0)), device: DeviceSerial(columns.integer(1)))
            }
        }
    }

    package func release(_ binding: BindingSerial, limit: Int, at now: Timestamp) async throws -> [MessageID]? {
        try await group.run { db in try CompletionTransaction(db).release(binding, limit: limit, at: now) }
    }

    package func poll(of name: DeviceName, at now: Timestamp) async throws -> PollVisit? {
        try await readStepwise { [memory] db in
            let reader = PollReader(db)
            let departures = memory.index.departures
            guard let found = try reader.read(name, at: now) else { return nil }
            let device = found.visit.device.serial
            let key = InboxIndex.Key(device, isFinal: false)
            var visit: PollVisit? = found.visit
            if !found.hasEntries, try memory.index.isEmpty(key, since: departures) {
                visit?.waiting = []
                return visit
            }
            // The index in memory is read before the transaction begins.
            let slots = WaitingSlots(
                key, inMemory: try memory.index.slotsForReaders(of: key), after: 0, in: db)
            try db.inTransaction(.deferred) {
                visit = try reader.read(name, at: now)?.visit
                if visit?.device.serial == device {
                    visit?.waiting = try slots.names(upTo: PollVisit.mostWaiting, at: now)
                }
                return .commit
            }
            return visit
        }
    }

    // MARK: Waking

    package func wakingUpdates(limit: Int) async throws -> [WakingUpdate] {
        try await read { db in try UpdateTable(db).waking(limit: limit) }
    }

    package func bindingsToWake(of app: AppSerial, after: BindingSerial, limit: Int) async throws -> [AppBinding] {
        try await read { db in try BindingTable(db).of(app, after: after, limit: limit, withAddress: true) }
    }

    package func woke(_ update: UpdateSerial, to place: BindingSerial?) async throws {
        try await group.run { db in try UpdateTable(db).woke(update, to: place) }
    }

    // MARK: Completions

    package func completions(of binding: BindingSerial, _ updates: [UpdateSerial]) async throws -> [Completion] {
        try await read { db in
            let table = CompletionTable(db)
            return try updates.compactMap { try table.last(of: binding, $0) }
        }
    }

    package func bindingState(
        of binding: BindingSerial, from first: UpdateSerial, under rules: Int64
    ) async throws -> BindingState? {
        try await read { db in try BindingReader(db).bindingState(of: binding, from: first, under: rules) }
    }

    package func unfinished(of binding: BindingSerial) async throws -> [Completion] {
        try await read { db in try CompletionTable(db).unfinished(of: binding) }
    }

    package func evaluated(
        _ binding: BindingSerial, revision: Int64, to place: AudienceCursor, isFull: Bool, adding completions: [Completion],
        at now: Timestamp
    ) async throws -> Bool {
        try await group.run { db in
            let bindings = BindingTransaction(db)
            guard try bindings.evaluated(binding, revision: revision, to: place, isFull: isFull) else { return false }
            try CompletionTransaction(db).add(completions, at: now)
            return true
        }
    }

    package func report(
        _ results: [ReportedResult], receivedTo place: ReceivedTo?, of binding: BindingSerial, at now: Timestamp
    ) async throws -> (answers: [ReportAnswer], isAnyDue: Bool) {
        try await group.run { db in
            if let place { try BindingTable(db).received(binding, to: place) }
            let completions = CompletionTransaction(db)
            let answers = try results.map { try completions.report($0, of: binding, at: now) }
            return (answers, try CompletionTable(db).isAnyDue(of: binding, at: now))
        }
    }

    package func offerAgain(to binding: BindingSerial, needsResync: Bool, at now: Timestamp) async throws {
        try await group.run { db in
            try BindingTable(db).begins(binding, needsResync: needsResync)
            try CompletionTransaction(db).offerAgain(to: binding, at: now)
        }
    }

    package func unreceivedContent(
        of binding: BindingSerial
    ) async throws -> (completions: [Completion], resync: UpdateSerial?) {
        try await read { db in try CompletionTable(db).unreceivedContent(of: binding) }
    }

    package func envelopes(of completions: [CompletionKey]) async throws -> [MessageID] {
        try await read { db in
            let table = CompletionTable(db)
            return try completions.compactMap { try table.envelope(of: $0) }
        }
    }

    package func coalesce(
        _ coalesced: [(CompletionKey, by: UpdateSerial)], at now: Timestamp
    ) async throws -> [MessageID] {
        try await changeInboxes { db, transaction in
            let envelopes = try CompletionTransaction(db).coalesce(coalesced, at: now)
            try transaction.takeOut(envelopes, at: now)
            return envelopes
        }
    }

    package func resync(
        _ binding: BindingSerial, _ request: ResyncRequest, at now: Timestamp
    ) async throws -> (update: UpdateSerial, coalesced: [MessageID]) {
        try await changeInboxes { db, transaction in
            let app = try Int64.first(
                db, "SELECT app FROM binding WHERE serial = ? AND ended_at IS NULL", [binding.rawValue])
            guard let app else { return (UpdateSerial(0), []) }
            let update = try UpdateTable(db).resync(of: AppSerial(app), request, at: now)
            let coalesced = try CompletionTransaction(db).resync(update, of: binding, at: now)
            try transaction.takeOut(coalesced, at: now)
            try BindingTable(db).madeUp(binding)
            return (update, coalesced)
        }
    }

    package func saw(_ binding: BindingSerial, to place: UpdateSerial) async throws {
        try await group.run { db in try BindingTable(db).saw(binding, to: place) }
    }

    package func leftAudience(
        _ completions: [CompletionKey], of binding: BindingSerial, revision: Int64, at now: Timestamp
    ) async throws -> [MessageID] {
        try await changeInboxes { db, transaction in
            let envelopes = try CompletionTransaction(db).leftAudience(
                completions, of: binding, revision: revision, at: now)
            try transaction.takeOut(envelopes, at: now)
            return envelopes
        }
    }

    package func returned(
        _ completions: [CompletionKey], of binding: BindingSerial, revision: Int64, at now: Timestamp
    ) async throws {
        try await group.run { db in
            try CompletionTransaction(db).returned(completions, of: binding, revision: revision, at: now)
        }
    }

    package func unsupported(
        _ completions: [CompletionKey], of binding: BindingSerial, revision: Int64, at now: Timestamp
    ) async throws {
        try await changeInboxes { db, transaction in
            let envelopes = try CompletionTransaction(db).unsupported(
                completions, of: binding, revision: revision, at: now)
            try transaction.takeOut(envelopes, at: now)
        }
    }

    package func dueCompletions(
        of binding: BindingSerial?, in shards: ShardSet, at now: Timestamp, limit: Int
    ) async throws -> [DueCompletion] {
        try await read { db in
            let ofBinding = binding == nil ? "" : "completion.binding = ? AND completion.state < 10 AND"
            let index = binding == nil ? "completion_due" : "completion_unfinished"
            var select = try BoundStatement(
                db,
                """
                SELECT \(UpdateTable.columns), \(CompletionTable.columns), \(BindingTable.columns), device.id, app.id
                FROM completion \(IndexHint.sql(index)) JOIN audience_update ON audience_update.serial = in_update AND audience_update.status = 0
                    AND paused_at IS NULL
                JOIN binding ON binding.serial = completion.binding AND binding.ended_at IS NULL
                JOIN device ON device.serial = binding.device JOIN app ON app.serial = device.app
                WHERE \(ofBinding) due_at IS NOT NULL AND due_at <= ? \(shards.condition(on: "binding.device"))
                ORDER BY \(binding == nil ? "due_at" : "in_update") LIMIT ?
                """)
            if let binding { select.bind(binding.rawValue) }
            select.bind(now.milliseconds)
            select.bind(shards)
            select.bind(limit)
            var found: [DueCompletion] = []
            let binding = Update.columnCount + CompletionTable.columnCount
            let device = binding + BindingTable.columnCount
            try select.forEachRow { columns in
                guard let app = columns.text(device + 1).flatMap({ AppID($0) }) else { return true }
                found.append(
                    DueCompletion(
                        completion: Completion(columns, from: Update.columnCount), update: try Update(columns, from: 0),
                        binding: UpdateBinding(columns, from: binding), device: DeviceID(try columns.bytes16(device)),
                        app: app))
                return true
            }
            return found
        }
    }

    package func putOff(_ key: CompletionKey, revision: Int64, until moment: Timestamp) async throws {
        try await group.run { db in try CompletionTransaction(db).putOff(key, revision: revision, until: moment) }
    }

    package func bringBackCompletions(
        in shards: ShardSet, dueAfter moment: Timestamp, at now: Timestamp, limit: Int
    ) async throws -> Bool {
        try await group.run { db in
            try CompletionTable(db).bringBack(in: shards, dueAfter: moment, at: now, limit: limit)
        }
    }

    package func findUnfinishedOfEnded(
        in shards: ShardSet, after place: UpdateSerial, limit: Int
    ) async throws -> UpdateSerial? {
        try await group.run { db in try UpdateTable(db).findUnfinished(in: shards, after: place, limit: limit) }
    }

    package func unfinishedOfEnded(in shards: ShardSet, limit: Int) async throws -> [EndedCompletion] {
        let isAny = try await read { db in
            try Int.first(db, "SELECT 1 FROM audience_update WHERE is_left_over LIMIT 1") != nil
        }
        guard isAny else { return [] }
        return try await group.run { db in
            var found = try UpdateTable(db).unfinished(in: shards, limit: limit)
            for index in found.indices where found[index].completion.machine.isInInbox {
                found[index].envelope = try CompletionTable(db).envelope(of: found[index].completion.key)
            }
            return found
        }
    }

    package func endCompletions(_ ended: [(CompletionKey, CompletionMachine.State)], at now: Timestamp) async throws {
        try await group.run { db in
            for (key, state) in ended { try CompletionTransaction(db).end(key, as: state, at: now) }
        }
    }

    package func requeue(
        _ completions: [CompletionKey], at now: Timestamp, noting request: (key: KeyID, update: UpdateID), of app: AppSerial
    ) async throws -> Int {
        try await group.run { db in
            let count = try CompletionTransaction(db).requeue(completions, at: now)
            try AuditTable(db).append(
                AuditEntry(at: now, key: request.key, action: .requeued, update: request.update, count: count), of: app)
            return count
        }
    }

    // MARK: The audit

    package func audit(of app: AppSerial, before number: Int64?, limit: Int) async throws -> [AuditEntry] {
        try await scan { db in try AuditTable(db).page(of: app, before: number ?? .max, limit: limit) }
    }

    package func forgetAudit(before moment: Timestamp, beyond most: Int, limit: Int) async throws {
        try await group.run { db in try AuditTable(db).forget(before: moment, beyond: most, limit: limit) }
    }
}
