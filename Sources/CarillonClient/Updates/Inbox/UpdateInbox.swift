import CarillonBasics
import CarillonWire
import GRDB

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The updates of one device, user and profile: waiting updates, finished updates, and results that must be reported. Each method
/// is one transaction on the disk (`synchronous=FULL`): the updates of a response are committed together with its position.
struct UpdateInbox: Sendable {
    let store: ClientStore
    var clock = DeviceClock.system

    static let mostWaiting = 2_500
    /// The most finished updates, and the most results, that are stored for one owner.
    static let rememberedDone = 10_000
    static let rememberedFailed = 1_000

    // MARK: Polling

    struct Report: Equatable, Sendable {
        var position: String?
        /// The revision of the parameters that the server has.
        var parameters: String?
        var results: [WaitingResult] = []
        /// The number of updates that the inbox can accept.
        var capacity: Int
    }

    /// Returns the report of the next poll, with up to `limit` results.
    func report(results limit: Int) async throws(PushError) -> Report {
        try await store.write { db in
            let place = try Row.fetchOne(db, sql: "SELECT position, parameters FROM update_place")
            let results = try Row.fetchAll(
                db, sql: "SELECT number, result FROM update_result WHERE owner = ? ORDER BY number LIMIT ?",
                arguments: [try Self.ownerNumber(db), limit])
            let waiting = try Int.fetchOne(db, sql: "SELECT count(*) FROM update_inbox WHERE state <> 'failed'") ?? 0
            return Report(
                position: place?["position"], parameters: place?["parameters"],
                results: results.compactMap { row in
                    JSONValue(parsing: Array((row["result"] as String).utf8)).map {
                        WaitingResult(number: row["number"], json: $0)
                    }
                },
                capacity: max(0, Self.mostWaiting - waiting))
        }
    }

    /// Stores the response of a poll, unless the inbox has another owner by now.
    ///
    /// - Parameters:
    ///   - asked: The position with which the poll was sent. If another response changed the position meanwhile, the updates are
    ///     not stored, and the server sends them again.
    ///   - reported: The results that the server accepted with the poll.
    ///   - parameters: The revision that was reported to the server. A revision in the response takes precedence.
    func received(
        _ answer: PollAnswer, to asked: String?, by owner: UpdateOwner, reported results: [WaitingResult],
        parameters: String?
    ) async throws(PushError) -> Arrival {
        try await store.write { db in
            let row = try Row.fetchOne(db, sql: "SELECT device, user, profile, position FROM update_place")
            guard row.map({ UpdateOwner(device: $0["device"], user: $0["user"], profile: $0["profile"]) }) == owner else {
                return Arrival()
            }
            var arrival = Arrival(isStored: true)
            for result in results {
                try db.execute(sql: "DELETE FROM update_result WHERE number = ?", arguments: [result.number])
            }
            var known = parameters
            if case .revision(let revision) = answer.parameters { known = revision }
            if known != nil || answer.parameters == .none {
                try db.execute(
                    sql: "UPDATE update_place SET parameters = ?",
                    arguments: [answer.parameters == .none ? nil : known])
            }
            guard row?["position"] as String? == asked else { return arrival }
            for frame in answer.updates {
                try Self.take(frame, into: &arrival, db)
                try noteTime(of: frame, db)
            }
            if let position = answer.position {
                try db.execute(sql: "UPDATE update_place SET position = ?", arguments: [position])
            }
            return arrival
        }
    }

    /// Removes the position, which the server rejected. The server sends all unfinished updates again.
    func clearPosition() async throws(PushError) {
        try await store.write { db in try db.execute(sql: "UPDATE update_place SET position = NULL") }
    }

    private static func take(_ frame: UpdateFrame, into arrival: inout Arrival, _ db: Database) throws {
        guard let json = JSONValue(parsing: frame.body), case .string(let id)? = json["id"] else { return }
        let key = UpdateKey(update: id, entry: frame.entry)
        if frame.attempt == 0 {
            if let number = try number(of: key, db) {
                try revive(coalescedBy: number, db)
                try db.execute(sql: "DELETE FROM update_inbox WHERE number = ?", arguments: [number])
            }
            arrival.retracted.append(key)
            return
        }
        guard case .string(let name)? = json["kind"] else { return }
        if let done = try result(of: key, db) { return try storeResult(done, of: key, db) }
        guard let kind = UpdateKind(name), let payload = try? UpdatePayload(json["payload"], of: kind) else {
            // The update is of a later version. It is reported as unsupported, and is not stored as finished.
            return try storeResult(UpdateOutcome.unsupported.json(of: key, frame.attempt), of: key, db)
        }
        try db.execute(
            sql: """
                INSERT INTO update_inbox (id, entry, attempt, body, state) VALUES (?, ?, ?, ?, 'new')
                ON CONFLICT (id, entry) DO UPDATE SET attempt = excluded.attempt, state = 'new'
                WHERE excluded.attempt > update_inbox.attempt
                """, arguments: [id, frame.entry, frame.attempt, Data(frame.body)])
        guard db.changesCount > 0 else { return }
        if frame.attempt == 1 { arrival.counts[name, default: 0] += 1 }
        if case .content(let change) = payload { try coalesce(what: change, by: key, orderKey: orderKey(json), db) }
    }

    private static func orderKey(_ json: JSONValue) -> String? {
        if case .string(let key)? = json["orderKey"] { key } else { nil }
    }

    private static func number(of key: UpdateKey, _ db: Database) throws -> Int64? {
        try Int64.fetchOne(
            db, sql: "SELECT number FROM update_inbox WHERE id = ? AND entry = ?", arguments: [key.update, key.entry])
    }

    /// Marks earlier content updates with the same order key that a later change replaces. They need not be processed if the
    /// later change is.
    private static func coalesce(
        what change: ContentChange, by key: UpdateKey, orderKey: String?, _ db: Database
    ) throws {
        guard let number = try number(of: key, db) else { return }
        for row in try Row.fetchAll(
            db, sql: "SELECT * FROM update_inbox WHERE number < ? AND state <> 'away'", arguments: [number])
        {
            guard let earlier = waiting(row), case .content(let other) = earlier.payload,
                change.coalesces(other, under: orderKey, of: earlier.orderKey)
            else { continue }
            try db.execute(
                sql: "UPDATE update_inbox SET state = 'absorbed', absorbed_by = ? WHERE number = ?",
                arguments: [number, earlier.number])
        }
    }

    private static func revive(coalescedBy number: Int64, _ db: Database) throws {
        try db.execute(
            sql: "UPDATE update_inbox SET state = 'new', absorbed_by = NULL WHERE absorbed_by = ? AND state = 'absorbed'",
            arguments: [number])
    }

    private static func coalesced(by number: Int64, _ db: Database) throws -> [WaitingUpdate] {
        try Row.fetchAll(
            db, sql: "SELECT * FROM update_inbox WHERE absorbed_by = ? AND state = 'absorbed'", arguments: [number]
        ).compactMap(waiting)
    }

    // MARK: Processing

    /// Returns the next update to process.
    func next() async throws(PushError) -> WaitingUpdate? {
        try await store.write { db in
            while let row = try Row.fetchOne(
                db, sql: "SELECT * FROM update_inbox WHERE state = 'new' ORDER BY number LIMIT 1")
            {
                if let update = Self.waiting(row) { return update }
                // Another version of the library wrote the row.
                try db.execute(sql: "DELETE FROM update_inbox WHERE number = ?", arguments: [row["number"] as Int64])
            }
            return nil
        }
    }

    func isAllProcessed() async throws(PushError) -> Bool {
        try await store.write { db in try Row.fetchOne(db, sql: "SELECT 1 FROM update_inbox WHERE state = 'new'") == nil }
    }

    /// Records that the update waits for the user or for the app's own code. Returns false if it was withdrawn meanwhile.
    @discardableResult
    func setAway(_ update: WaitingUpdate) async throws(PushError) -> Bool {
        try await store.write { db in
            guard try Self.contains(update, db) else { return false }
            try Self.set(.away, nil, update, db)
            return true
        }
    }

    /// Whether the update was not withdrawn.
    func contains(_ update: WaitingUpdate) async throws(PushError) -> Bool {
        try await store.write { db in try Self.contains(update, db) }
    }

    static func contains(_ update: WaitingUpdate, _ db: Database) throws -> Bool { try newestAttempt(of: update, db) != nil }

    /// Returns the newest attempt that the server sent; nil if the update was withdrawn.
    private static func newestAttempt(of update: WaitingUpdate, _ db: Database) throws -> Int? {
        try Int.fetchOne(
            db, sql: "SELECT attempt FROM update_inbox WHERE number = ? AND id = ? AND entry = ?",
            arguments: [update.number, update.key.update, update.key.entry])
    }

    func noteNotified(_ update: WaitingUpdate) async throws(PushError) {
        try await store.write { db in
            try db.execute(sql: "UPDATE update_inbox SET was_told = 1 WHERE number = ?", arguments: [update.number])
        }
    }

    /// Makes the update ready for processing again. Returns false, and changes nothing, if it does not wait for the user any
    /// more.
    func recheck(at update: WaitingUpdate) async throws(PushError) -> Bool {
        try await store.write { db in
            try db.execute(
                sql: """
                    UPDATE update_inbox SET state = 'new' WHERE number = ? AND id = ? AND entry = ? AND state = 'away'
                    """, arguments: [update.number, update.key.update, update.key.entry])
            return db.changesCount > 0
        }
    }

    /// Makes an update that waits for the user, or for the app's own code, ready for processing again.
    func recheck(at key: UpdateKey) async throws(PushError) {
        try await store.write { db in
            try db.execute(
                sql: "UPDATE update_inbox SET state = 'new' WHERE id = ? AND entry = ? AND state = 'away'",
                arguments: [key.update, key.entry])
        }
    }

    /// Makes the updates that wait for a condition ready for processing again.
    func happened(_ condition: DeferralCondition) async throws(PushError) {
        try await store.write { db in
            try db.execute(
                sql: "UPDATE update_inbox SET state = 'new' WHERE state = 'deferred' AND condition = ?",
                arguments: [condition.rawValue])
        }
    }

    /// Stores the result of an update, for the newest attempt that the server sent. Returns false, and stores nothing, if the
    /// update was withdrawn.
    @discardableResult
    func finished(_ update: WaitingUpdate, _ outcome: UpdateOutcome) async throws(PushError) -> Bool {
        try await store.write { db in
            guard let attempt = try Self.newestAttempt(of: update, db) else { return false }
            var newest = update
            newest.attempt = attempt
            try Self.finish(newest, outcome, db)
            return true
        }
    }

    static func finish(_ update: WaitingUpdate, _ outcome: UpdateOutcome, _ db: Database) throws {
        let result = outcome.json(of: update.key, update.attempt)
        try storeResult(result, of: update.key, db)
        switch outcome {
        case .deferred(let condition, _): try set(.deferred, condition, update, db)
        case .failed:
            try set(.failed, nil, update, db)
            try db.execute(sql: "UPDATE update_inbox SET starts = 0 WHERE number = ?", arguments: [update.number])
            try revive(coalescedBy: update.number, db)
            try db.execute(
                sql: """
                    DELETE FROM update_inbox WHERE number IN
                    (SELECT number FROM update_inbox WHERE state = 'failed' ORDER BY number DESC LIMIT -1 OFFSET ?)
                    """, arguments: [rememberedFailed])
        case .unsupported:
            try revive(coalescedBy: update.number, db)
            try remove(update, db)
        case .done:
            for earlier in try coalesced(by: update.number, db) { try finish(earlier, .done(code: "absorbed"), db) }
            try remove(update, db)
            try remember(result, of: update.key, db)
        }
    }

    private static func remove(_ update: WaitingUpdate, _ db: Database) throws {
        try db.execute(sql: "DELETE FROM update_inbox WHERE number = ?", arguments: [update.number])
    }

    private static func set(
        _ state: WaitingUpdate.State, _ condition: DeferralCondition?, _ update: WaitingUpdate, _ db: Database
    ) throws {
        try db.execute(
            sql: "UPDATE update_inbox SET state = ?, condition = ? WHERE number = ?",
            arguments: [state.rawValue, condition?.rawValue, update.number])
    }

    static func waiting(_ row: Row) -> WaitingUpdate? {
        guard let json = JSONValue(parsing: Array(row["body"] as Data)), case .string(let name)? = json["kind"],
            let kind = UpdateKind(name), let payload = try? UpdatePayload(json["payload"], of: kind)
        else { return nil }
        var publishedAt: Int64 = 0
        if case .string(let text)? = json["publishedAt"] { publishedAt = Timestamp3339.milliseconds(text) ?? 0 }
        return WaitingUpdate(
            number: row["number"], key: UpdateKey(update: row["id"], entry: row["entry"]), attempt: row["attempt"],
            kind: kind, payload: payload, publishedAt: publishedAt, orderKey: orderKey(json), wasNotified: row["was_told"],
            starts: row["starts"])
    }
}
