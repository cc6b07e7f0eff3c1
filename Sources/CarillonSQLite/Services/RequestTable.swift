import CarillonCore
import CarillonWire
import GRDB

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Reads the facts of ``RequestRules`` and writes their decisions, inside a transaction.
struct RequestTable {
    private let db: Database
    private let memory: RequestMemory
    private let reader: RequestReader

    init(_ db: Database, memory: RequestMemory) {
        self.db = db
        self.memory = memory
        reader = RequestReader(db)
    }

    // MARK: Facts

    func answer(_ questions: RequestQuestions, into facts: inout RequestFacts) throws {
        for serial in questions.requests { facts.requests[serial] = try request(serial) }
        for candidate in questions.candidates { try answer(candidate, into: &facts) }
    }

    private func request(_ serial: RequestSerial) throws -> ServiceRequest? {
        if let known = memory.request(serial) { return known }
        let request = try reader.request(serial)
        if let request, request.state != .finished { memory.note(request, in: db) }
        return request
    }

    private func answer(_ candidate: RequestQuestions.Candidate, into facts: inout RequestFacts) throws {
        let (pair, isCounted) = (candidate.pair, facts.unfinished[candidate.pair.consumer] != nil)
        // The requests of a consumer are counted once for the whole batch.
        let counted = isCounted ? nil : pair.consumer.rawValue
        let rows = try Row.fetchAll(
            db.cachedStatement(sql: Self.selectCandidate),
            arguments: [
                "id": candidate.id.value.data, "counted": counted, "caller": pair.consumer.rawValue,
                "provider": pair.provider.rawValue,
            ])
        for row in rows {
            if row[0] { facts.usedIDs.insert(candidate.id) }
            if !isCounted { facts.unfinished[pair.consumer] = row[1] }
            guard let caller = ServiceReach.Caller(row, from: 2), !row.hasNull(atIndex: 4) else { continue }
            let user = (row[5] as String?).flatMap(UserID.init)
            facts.users[pair] = RequestUsers(consumer: caller, provider: user)
        }
    }

    /// Selects one row: whether an id was used, the number of unfinished requests, and the present users of two devices.
    private static let selectCandidate = """
        SELECT EXISTS (SELECT 1 FROM service_request WHERE id = :id),
            (SELECT count(*) FROM service_request WHERE state < 2 AND consumer = :counted AND NOT is_abandoned),
            caller.is_server, caller.own_user, provider.device, provider.own_user
        FROM (SELECT 1 AS one) AS one LEFT JOIN (\(ProviderTable.selectCaller)) AS caller ON TRUE
            LEFT JOIN (SELECT s.device, p.user AS own_user FROM service_provider s JOIN device d ON d.serial = s.device
                JOIN app a ON a.serial = d.app AND a.ended_at IS NULL LEFT JOIN device_profile p ON p.device = s.device
                WHERE s.device = :provider) AS provider ON TRUE
        """

    /// Reads a request, and the number of undelivered requests of its consumer.
    func facts(toCancel serial: RequestSerial) throws -> RequestFacts {
        let select = try db.cachedStatement(
            sql: """
                SELECT \(RequestReader.columns), (SELECT count(*) FROM service_request AS undelivered
                    WHERE undelivered.consumer = service_request.consumer AND undelivered.is_undelivered)
                FROM service_request WHERE serial = ?
                """)
        let found = try Row.first(select, [serial.rawValue]) { row in
            (request: try ServiceRequest(row), undelivered: row[14] as Int)
        }
        var facts = RequestFacts()
        if let found {
            facts.requests[serial] = found.request
            facts.undelivered[found.request.consumer] = found.undelivered
        }
        return facts
    }

    // MARK: Changes

    /// - Throws: ``StoreFault`` if a changed request was removed or finished since its facts were read.
    func write(_ changes: RequestChanges) throws {
        for request in changes.made {
            try insert(request)
            memory.note(request, in: db)
        }
        // The rows are written in one order, so that transactions of several writers do not deadlock.
        let changed = changes.changed.sorted { $0.key.rawValue < $1.key.rawValue }
        for (serial, change) in changed {
            try write(change, of: serial)
            memory.note(change, of: serial, in: db)
        }
        for ending in changes.endings { try write(ending) }
        for (consumer, count) in changes.forgotten { try forgetUndelivered(count, of: consumer) }
    }

    private func insert(_ request: ServiceRequest) throws {
        try db.run(
            """
            INSERT INTO service_request (serial, secret, id, consumer, consumer_app, provider, provider_app, fingerprint,
                expires_at, due_at)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            [
                request.serial.rawValue, request.envelope.secret.data, request.id.value.data, request.consumer.rawValue,
                request.consumerApp.rawValue, request.provider.rawValue, request.providerApp.rawValue,
                Data(request.fingerprint), request.expiresAt.milliseconds, request.expiresAt.milliseconds,
            ])
    }

    private func write(_ change: RequestChanges.Change, of serial: RequestSerial) throws {
        if let finish = change.finish {
            try db.run(
                """
                UPDATE service_request SET state = ?, is_unwanted = ?, reply_hash = ?, is_undelivered = ?, due_at = ?,
                    finished_served = CASE WHEN ? THEN (SELECT seconds FROM served) ELSE finished_served END
                WHERE serial = ? AND state < 2
                """,
                [
                    change.state.rawValue, change.isUnwanted, finish.replyHash.map { Data($0) }, finish.isUndelivered,
                    finish.forgottenAt.milliseconds, finish.notesServedTime, serial.rawValue,
                ])
        } else {
            try db.run(
                "UPDATE service_request SET state = ?, is_unwanted = ? WHERE serial = ? AND state < 2",
                [change.state.rawValue, change.isUnwanted, serial.rawValue])
        }
        guard db.changesCount == 1 else {
            throw StoreFault(.unavailable, "a request was finished by another change at the same time")
        }
    }

    private func write(_ ending: RequestChanges.Ending) throws {
        switch ending {
        case .remove(let consumer):
            try end(
                "DELETE FROM service_request WHERE state < 2 AND consumer = ? RETURNING serial", [consumer.rawValue])
        case .abandon(let consumer, let dueAt):
            try end(
                """
                UPDATE service_request SET due_at = ?, is_abandoned = ? WHERE state < 2 AND consumer = ?
                RETURNING serial
                """, [dueAt.milliseconds, true, consumer.rawValue])
        case .fail(let provider, let fault, let dueAt):
            try end(
                "UPDATE service_request SET due_at = ?, fault = ? WHERE state < 2 AND provider = ? RETURNING serial",
                [dueAt.milliseconds, fault.rawValue, provider.rawValue])
        }
    }

    /// - Parameter change: A statement that returns the serial numbers of the requests that it changes.
    private func end(_ change: String, _ arguments: StatementArguments) throws {
        let changed = try Int64.fetchAll(db.cachedStatement(sql: change), arguments: arguments)
        for serial in changed { memory.forget(RequestSerial(serial)) }
    }

    private func forgetUndelivered(_ count: Int, of consumer: DeviceSerial) throws {
        try db.run(
            """
            DELETE FROM service_request WHERE serial IN (SELECT serial FROM service_request
                WHERE consumer = ? AND is_undelivered ORDER BY due_at, serial LIMIT ?)
            """, [consumer.rawValue, count])
        db.count(db.changesCount, of: Self.forgotten)
    }

    private static let forgotten = ServerMetric.serviceRequests.counter("forgotten")

    /// Removes finished requests that are due and were finished by a value of the counter of served seconds.
    func forget(in shards: ShardSet, by cutoff: RetentionCutoff, limit: Int) throws -> Int {
        try db.run(
            """
            DELETE FROM service_request WHERE serial IN
                (SELECT serial FROM service_request WHERE (state = 2) = TRUE AND due_at <= ? AND finished_served <= ?
                \(shards.condition(on: "provider")) ORDER BY due_at LIMIT ?)
            """,
            shards.arguments(with: [cutoff.wall.milliseconds, cutoff.served, limit]))
        return db.changesCount
    }
}
