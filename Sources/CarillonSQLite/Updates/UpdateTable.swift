import CarillonCore
import CarillonWire
import GRDB

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The log of updates, inside a transaction.
struct UpdateTable {
    private let db: Database
    private let rules = PublishRules()

    init(_ db: Database) { self.db = db }

    static let columns = """
        audience_update.serial, audience_update.id, audience_update.app, audience_update.kind, audience, is_standing,
        audience_update.order_key, supersedes, published_at, audience_update.expires_at, audience_update.status,
        audience_update.status_at, content, (SELECT body FROM shared_content WHERE shared_content.serial = content),
        audience_update.wakes, is_resync, paused_at IS NOT NULL
        """

    func updates(_ condition: String, _ bind: (inout BoundStatement) -> Void) throws -> [Update] {
        var select = try BoundStatement(db, "SELECT \(Self.columns) FROM audience_update WHERE \(condition)")
        bind(&select)
        return try select.all { columns in try Update(columns, from: 0) }
    }

    /// Reads only entries of two indexes, and no row of an update.
    func mark(of app: AppSerial) throws -> UpdateLogMark? {
        var select = try BoundStatement(
            db,
            """
            SELECT log_revision,
                (SELECT max(serial) FROM audience_update \(IndexHint.sql("audience_update_of_app")) WHERE app = ?1),
                (SELECT count(*) FROM audience_update \(IndexHint.sql("audience_update_live")) WHERE app = ?1 AND status = 0)
            FROM app WHERE serial = ?1
            """)
        select.bind(app.rawValue)
        return try select.first { columns in
            UpdateLogMark(
                revision: columns.integer(0), last: UpdateSerial(columns.integer(1)), live: Int(columns.integer(2)))
        }
    }

    func update(_ id: UpdateID, of app: AppSerial) throws -> Update? {
        try updates("id = ? AND app = ?") { select in
            select.bind(id.value)
            select.bind(app.rawValue)
        }.first
    }

    // MARK: Publishing

    func publish(_ request: UpdateRequest, at now: Timestamp) throws -> UpdatePut {
        var facts = PublishFacts(
            isAppDeleted: try Int.first(
                db, "SELECT 1 FROM app WHERE serial = ? AND ended_at IS NULL", [request.app.rawValue]) == nil)
        while true {
            switch rules.publish(request, knowing: facts) {
            case .needs(let question):
                try answer(question, about: request, into: &facts)
                facts.answered.insert(question)
            case .repeated(let id):
                return try update(id, of: request.app).map { UpdatePut.repeated($0) } ?? .refused(.keyReused)
            case .refused(let refusal): return .refused(refusal)
            case .publishes: return try write(request, insteadOf: facts.superseded, at: now)
            }
        }
    }

    private func write(_ request: UpdateRequest, insteadOf superseded: Update?, at now: Timestamp) throws -> UpdatePut {
        if let superseded { _ = try end(superseded.serial, as: .superseded, at: now) }
        let content = SharedContentID(try insertContent(request.body))
        let previous = try Int64.first(
            db,
            """
            SELECT max(serial) FROM audience_update \(IndexHint.sql("audience_update_live"))
            WHERE app = ? AND status = 0 AND NOT is_resync AND paused_at IS NULL
            """,
            [request.app.rawValue])
        let serial = try insert(request, content, at: now)
        try AuditTable(db).append(
            AuditEntry(at: now, key: request.key, action: .published, update: request.proposed), of: request.app)
        let definition = request.definition
        let made = Update(
            serial: serial, id: request.proposed, app: request.app, kind: definition.kind, audience: definition.audience,
            mode: definition.mode, orderKey: definition.orderKey, wakes: definition.wakes,
            supersedes: definition.supersedes, publishedAt: now,
            expiresAt: now.adding(seconds: definition.ttlSeconds), status: .live, statusAt: now, body: request.body,
            content: content)
        return .made(made, superseded: superseded?.serial, previous: UpdateSerial(previous ?? 0))
    }

    private func answer(_ question: PublishQuestion, about request: UpdateRequest, into facts: inout PublishFacts) throws {
        switch question {
        case .earlier: facts.earlier = try request.idempotency.flatMap { try earlier(of: request.app, key: $0.key) }
        case .superseded: facts.superseded = try request.definition.supersedes.flatMap { try update($0, of: request.app) }
        case .counts: facts.counts = try counts(of: request.app)
        case .audienceBytes: facts.audienceBytes = try audienceBytes(of: request.app)
        }
    }

    private func earlier(of app: AppSerial, key: [UInt8]) throws -> PublishFacts.Earlier? {
        var select = try BoundStatement(
            db, "SELECT id, fingerprint FROM audience_update WHERE app = ? AND idempotency_key = ?")
        select.bind(app.rawValue)
        select.bind(key)
        return try select.first { PublishFacts.Earlier(id: UpdateID(try $0.bytes16(0)), fingerprint: $0.bytes(1)) }
    }

    private func counts(of app: AppSerial) throws -> PublishFacts.Counts {
        var select = try BoundStatement(
            db,
            """
            SELECT count(*), count(*) FILTER (WHERE NOT is_indexed) FROM audience_update \(IndexHint.sql("audience_update_live"))
            WHERE app = ? AND status = 0 AND NOT is_resync
            """)
        select.bind(app.rawValue)
        let counts = try select.first { PublishFacts.Counts(live: Int($0.integer(0)), unindexed: Int($0.integer(1))) }
        return counts ?? PublishFacts.Counts(live: 0, unindexed: 0)
    }

    /// Returns the size of the audiences of the live updates that are not paused.
    private func audienceBytes(of app: AppSerial) throws -> Int {
        try Int.first(
            db,
            """
            SELECT coalesce(sum(\(SQLDialect.byteCount(of: "audience"))), 0)
            FROM audience_update \(IndexHint.sql("audience_update_live"))
            WHERE app = ? AND status = 0 AND NOT is_resync AND paused_at IS NULL
            """, [app.rawValue]) ?? 0
    }

    private func insert(_ request: UpdateRequest, _ content: SharedContentID, at now: Timestamp) throws -> UpdateSerial {
        var insert = try BoundStatement(
            db,
            """
            INSERT INTO audience_update (id, app, kind, audience, is_indexed, is_standing, order_key, supersedes, published_at,
                expires_at, status_at, idempotency_key, fingerprint, content, wakes, woken_to)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING serial
            """)
        let definition = request.definition
        insert.bind(request.proposed.value)
        insert.bind(request.app.rawValue)
        insert.bind(definition.kind.name)
        insert.bind(definition.audience)
        insert.bind(request.isIndexed ? 1 : 0)
        insert.bind(definition.mode == .standing ? 1 : 0)
        insert.bind(definition.orderKey)
        insert.bind(definition.supersedes?.value.bytes)
        insert.bind(now.milliseconds)
        insert.bind(now.adding(seconds: definition.ttlSeconds).milliseconds)
        insert.bind(now.milliseconds)
        insert.bind(request.idempotency?.key)
        insert.bind(request.idempotency?.fingerprint)
        insert.bind(content.rawValue)
        insert.bind(definition.wakes ? 1 : 0)
        insert.bind(definition.wakes ? Int64(0) : nil)
        return UpdateSerial(try insert.inserted())
    }

    private func insertContent(_ body: [UInt8]) throws -> Int64 {
        try db.inserted("INSERT INTO shared_content (body) VALUES (?) RETURNING serial", [Data(body)])
    }

    /// Returns the update that notifies an app's devices to fetch everything. It is created with the first notification.
    func resync(of app: AppSerial, _ request: ResyncRequest, at now: Timestamp) throws -> UpdateSerial {
        if let known = try Int64.first(
            db, "SELECT serial FROM audience_update WHERE app = ? AND is_resync", [app.rawValue])
        {
            return UpdateSerial(known)
        }
        let content = try insertContent(request.body)
        let serial = try db.inserted(
            """
            INSERT INTO audience_update (id, app, kind, is_indexed, is_standing, published_at, expires_at, status_at, content, wakes,
                is_resync) VALUES (?, ?, 'content', TRUE, TRUE, ?, ?, ?, ?, FALSE, TRUE) RETURNING serial
            """,
            [
                Data(request.proposed.value.bytes), app.rawValue, now.milliseconds, Int64.max / 2, now.milliseconds,
                content,
            ])
        return UpdateSerial(serial)
    }

    /// Returns expired content of an app after a position; nil if some of it was removed.
    func expiredContent(of app: AppSerial, after place: UpdateSerial, limit: Int) throws -> [Update]? {
        let forgotten = try Int64.first(db, "SELECT up_to FROM forgotten_content WHERE app = ?", [app.rawValue]) ?? 0
        guard forgotten <= place.rawValue else { return nil }
        return try updates("app = ? AND status = 3 AND kind = 'content' AND serial > ? ORDER BY serial LIMIT ?") { select in
            select.bind(app.rawValue)
            select.bind(place.rawValue)
            select.bind(limit)
        }
    }

    func lastExpiredContent(of app: AppSerial) throws -> UpdateSerial {
        let last = try Int64.first(
            db,
            """
            SELECT max(serial) FROM (
                SELECT max(serial) AS serial FROM audience_update WHERE app = ?1 AND status = 3 AND kind = 'content'
                UNION ALL SELECT up_to FROM forgotten_content WHERE app = ?1) AS found
            """, [app.rawValue])
        return UpdateSerial(last ?? 0)
    }

    // MARK: Waking

    /// Returns the first update of each app whose devices must still be woken.
    func waking(limit: Int) throws -> [WakingUpdate] {
        var select = try BoundStatement(
            db,
            """
            SELECT \(Self.columns), woken_to, app.id FROM audience_update JOIN app ON app.serial = audience_update.app
            WHERE audience_update.serial IN
                (SELECT min(serial) FROM audience_update WHERE woken_to IS NOT NULL AND paused_at IS NULL GROUP BY app LIMIT ?)
            """)
        select.bind(limit)
        return try select.all { columns in
            guard let app = columns.text(Update.columnCount + 1).flatMap({ AppID($0) }) else { return nil }
            return try WakingUpdate(
                update: Update(columns, from: 0), app: app,
                wokenTo: BindingSerial(columns.integer(Update.columnCount)))
        }
    }

    func woke(_ update: UpdateSerial, to place: BindingSerial?) throws {
        try db.run(
            "UPDATE audience_update SET woken_to = ? WHERE serial = ? AND woken_to IS NOT NULL",
            [place?.rawValue, update.rawValue])
    }

    // MARK: Pausing

    /// Pauses all live updates.
    func pauseAll(at now: Timestamp) throws {
        try db.run(
            "UPDATE audience_update SET paused_at = ? WHERE status = 0 AND NOT is_resync AND paused_at IS NULL",
            [now.milliseconds])
        // The apps of paused updates may have updates for a device later, so devices that connect are noted.
        try db.run(
            """
            UPDATE app SET log_revision = log_revision + 1
            WHERE serial IN (SELECT app FROM audience_update WHERE status = 0 AND paused_at IS NOT NULL)
            """)
    }

    func paused() throws -> [UpdateSerial] {
        try Int64.fetchAll(
            db, sql: "SELECT serial FROM audience_update WHERE status = 0 AND paused_at IS NOT NULL ORDER BY serial"
        ).map { UpdateSerial($0) }
    }

    /// - Parameter limit: The bytes of the audiences of the app's live updates that are not paused.
    func resume(_ update: Update, audienceBytes limit: Int) throws -> UpdateResumption {
        let isPaused = try Int.first(
            db, "SELECT 1 FROM audience_update WHERE serial = ? AND status = 0 AND paused_at IS NOT NULL",
            [update.serial.rawValue])
        var bytes: Int?
        while true {
            switch rules.resume(update, audienceBytes: limit, isPaused: isPaused != nil, knowing: bytes) {
            case .needsAudienceBytes: bytes = try audienceBytes(of: update.app)
            case .refused(let refusal): return refusal
            case .resumes:
                try endPause(of: update)
                return .resumed
            }
        }
    }

    private func endPause(of update: Update) throws {
        try db.run("UPDATE audience_update SET paused_at = NULL WHERE serial = ?", [update.serial.rawValue])
        try unsee(update)
        try db.run("UPDATE app SET log_revision = log_revision + 1 WHERE serial = ?", [update.app.rawValue])
    }

    /// Content that was paused was seen by no binding. Without this change, later content that a device received would show that
    /// it has this content, too.
    private func unsee(_ update: Update) throws {
        guard update.kind == .content else { return }
        try db.run(
            "UPDATE binding SET seen_to = ?1 WHERE app = ?2 AND seen_to > ?1",
            [update.serial.rawValue - 1, update.app.rawValue])
    }

    // MARK: Ending

    func end(_ update: UpdateSerial, as status: Update.Status, at now: Timestamp) throws -> Bool {
        try db.run(
            """
            UPDATE audience_update SET status = ?, status_at = ?, status_served = (SELECT seconds FROM served),
                is_left_over = TRUE, woken_to = NULL
            WHERE serial = ? AND status = 0
            """,
            [status.rawValue, now.milliseconds, update.rawValue])
        return db.changesCount == 1
    }

    func endExpired(at now: Timestamp, limit: Int) throws -> [EndedUpdate] {
        let expired = try updates("status = 0 AND expires_at <= ? ORDER BY expires_at LIMIT ?") { select in
            select.bind(now.milliseconds)
            select.bind(limit)
        }
        for update in expired {
            _ = try end(update.serial, as: .expired, at: now)
            if update.isPaused { try unsee(update) }
        }
        return expired.map { EndedUpdate(app: $0.app, update: $0.serial) }
    }

    /// Marks ended updates after a position that have unfinished completions. Returns the position for the next call; nil at the
    /// end.
    func findUnfinished(in shards: ShardSet, after place: UpdateSerial, limit: Int) throws -> UpdateSerial? {
        let end = try Int64.first(
            db, "SELECT serial FROM audience_update WHERE serial > ? ORDER BY serial LIMIT 1 OFFSET ?",
            [place.rawValue, limit - 1])
        let device = "(SELECT device FROM binding WHERE binding.serial = completion.binding)"
        try db.run(
            """
            UPDATE audience_update SET is_left_over = TRUE
            WHERE serial > ? AND serial <= ? AND status != 0 AND NOT is_left_over
                AND EXISTS (SELECT 1 FROM completion WHERE in_update = audience_update.serial AND state < 10
                    \(shards.condition(on: device)))
            """, shards.arguments(with: [place.rawValue, end ?? .max]))
        return end.map { UpdateSerial($0) }
    }

    /// Returns unfinished completions of ended updates. Clears the mark of updates without such completions.
    func unfinished(in shards: ShardSet, limit: Int) throws -> [EndedCompletion] {
        var found: [EndedCompletion] = []
        let ofShards = shards.condition(on: "binding.device")
        var isConcerned = ""
        if shards != .all {
            try finishUpdates()
            isConcerned = """
                AND EXISTS (SELECT 1 FROM completion JOIN binding ON binding.serial = completion.binding
                    WHERE in_update = audience_update.serial AND state < 10 \(ofShards))
                """
        }
        for update in try updates("is_left_over \(isConcerned) ORDER BY serial LIMIT 100", { $0.bind(shards) }) {
            var select = try BoundStatement(
                db,
                """
                SELECT \(CompletionTable.columns), binding.device FROM completion
                JOIN binding ON binding.serial = completion.binding WHERE in_update = ? AND state < 10 \(ofShards) LIMIT ?
                """)
            select.bind(update.serial.rawValue)
            select.bind(shards)
            select.bind(limit - found.count)
            var isAny = false
            try select.forEachRow { columns in
                isAny = true
                found.append(
                    EndedCompletion(
                        completion: Completion(columns, from: 0),
                        device: DeviceSerial(columns.integer(CompletionTable.columnCount)),
                        app: update.app,
                        origin: update.origin, status: update.status, isContent: update.kind == .content))
                return true
            }
            if !isAny, shards == .all {
                try db.run("UPDATE audience_update SET is_left_over = FALSE WHERE serial = ?", [update.serial.rawValue])
            }
            if found.count >= limit { break }
        }
        return found
    }

    /// Clears the mark of some ended updates whose completions are all final.
    private func finishUpdates() throws {
        try db.run(
            """
            UPDATE audience_update SET is_left_over = FALSE WHERE serial IN (SELECT ended.serial FROM audience_update AS ended
                WHERE ended.is_left_over
                    AND NOT EXISTS (SELECT 1 FROM completion WHERE in_update = ended.serial AND state < 10) LIMIT 100)
            """)
    }

    /// Removes an old ended update with its completions, in parts. Returns whether nothing is left to remove.
    func forget(_ limits: UpdateLimits, by retention: RetentionTime?, limit: Int) throws -> Bool {
        let old = try retention.flatMap { retention in
            let cutoff = retention.cutoff(afterSeconds: limits.endedSeconds)
            return try Int64.first(
                db,
                """
                SELECT serial FROM audience_update
                WHERE status != 0 AND NOT is_left_over AND status_at <= ? AND status_served <= ? ORDER BY status_at LIMIT 1
                """, [cutoff.wall.milliseconds, cutoff.served])
        }
        guard let serial = try old ?? tooMany(limits) else { return true }
        // If content expired, devices that come back later must be notified that they missed it.
        try db.run(
            """
            UPDATE binding SET needs_resync = TRUE WHERE serial IN
                (SELECT binding FROM completion WHERE in_update = ?1 AND state = \(CompletionMachine.State.gone.rawValue)
                    AND NOT has_left AND EXISTS (SELECT 1 FROM audience_update WHERE serial = ?1 AND status = 3 AND kind = 'content')
                ORDER BY binding DESC, entry DESC LIMIT ?2)
            """, [serial, limit])
        try db.run(
            """
            DELETE FROM completion WHERE (binding, in_update, entry) IN
                (SELECT binding, in_update, entry FROM completion WHERE in_update = ?
                ORDER BY state DESC, binding DESC, entry DESC LIMIT ?)
            """, [serial, limit])
        if db.changesCount < limit {
            try db.run(
                """
                INSERT INTO forgotten_content SELECT app, serial FROM audience_update
                WHERE serial = ? AND status = 3 AND kind = 'content'
                ON CONFLICT (app) DO UPDATE SET up_to = excluded.up_to WHERE forgotten_content.up_to < excluded.up_to
                """, [serial])
            try remove("serial = ?", [serial])
        }
        return false
    }

    /// Removes updates, and releases their bodies.
    ///
    /// - Parameter condition: Selects rows of `audience_update`.
    private func remove(_ condition: String, _ arguments: StatementArguments) throws {
        try db.run(
            """
            UPDATE shared_content SET is_released = TRUE
            WHERE serial IN (SELECT content FROM audience_update WHERE \(condition))
            """, arguments)
        try db.run("DELETE FROM audience_update WHERE \(condition)", arguments)
    }

    /// Removes all updates of a deleted app.
    func remove(of app: AppSerial) throws { try remove("app = ?", [app.rawValue]) }

    /// Returns the oldest ended update of an app that has too many of them.
    private func tooMany(_ limits: UpdateLimits) throws -> Int64? {
        try Int64.first(
            db,
            """
            SELECT min(serial) FROM audience_update WHERE status != 0 AND NOT is_left_over GROUP BY app HAVING count(*) > ? LIMIT 1
            """, [limits.ended])
    }
}

extension Update {
    /// The number of ``UpdateTable/columns``.
    static let columnCount: Int32 = 17

    /// - Parameter place: The index of the first of ``UpdateTable/columns``.
    init(_ columns: StatementColumns, from place: Int32) throws {
        guard let kind = columns.text(place + 3).flatMap(UpdateKind.init),
            let status = Status(rawValue: Int(columns.integer(place + 10)))
        else { throw StoreFault(.unavailable, "an update's kind or status is unknown") }
        self.init(
            serial: UpdateSerial(columns.integer(place)), id: UpdateID(try columns.bytes16(place + 1)),
            app: AppSerial(columns.integer(place + 2)), kind: kind, audience: columns.text(place + 4),
            mode: columns.integer(place + 5) != 0 ? .standing : .once, orderKey: columns.text(place + 6),
            wakes: columns.integer(place + 14) != 0,
            supersedes: columns.bytes(place + 7).flatMap { Bytes16($0) }.map(UpdateID.init),
            isResync: columns.integer(place + 15) != 0, isPaused: columns.integer(place + 16) != 0,
            publishedAt: columns.timestamp(place + 8), expiresAt: columns.timestamp(place + 9), status: status,
            statusAt: columns.timestamp(place + 11), body: columns.bytes(place + 13) ?? [],
            content: SharedContentID(columns.integer(place + 12)))
    }
}
