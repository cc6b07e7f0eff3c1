import CarillonCore
import CarillonWire
import GRDB

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Reads and writes the rows of requests of services, inside a transaction. ``RequestRules`` decides.
struct RequestTable {
    private let db: Database

    init(_ db: Database) { self.db = db }

    // MARK: Facts

    func answer(_ questions: RequestQuestions, into facts: inout RequestFacts) throws {
        for serial in questions.requests { facts.requests[serial] = try request(serial) }
        for id in questions.ids where try isUsed(id) { facts.usedIDs.insert(id) }
        for pair in questions.pairs {
            facts.parties[pair] = try ProviderTable(db).parties(pair.consumer, pair.provider)
        }
        for consumer in questions.unfinished { facts.unfinished[consumer] = try unfinishedCount(of: consumer) }
    }

    /// Reads a request, and the number of undelivered requests of its consumer.
    func facts(toCancel serial: RequestSerial) throws -> RequestFacts {
        let select = try db.cachedStatement(
            sql: """
                SELECT \(Self.columns), (SELECT count(*) FROM service_request AS undelivered
                    WHERE undelivered.consumer = service_request.consumer AND undelivered.is_undelivered)
                FROM service_request WHERE serial = ?
                """)
        let found = try Row.first(select, [serial.rawValue]) { row in
            (request: try ServiceRequest(row: row), undelivered: row[14] as Int)
        }
        var facts = RequestFacts()
        if let found {
            facts.requests[serial] = found.request
            facts.undelivered[found.request.consumer] = found.undelivered
        }
        return facts
    }

    private func request(_ serial: RequestSerial) throws -> ServiceRequest? {
        let select = try db.cachedStatement(sql: "SELECT \(Self.columns) FROM service_request WHERE serial = ?")
        return try Row.first(select, [serial.rawValue], ServiceRequest.init)
    }

    private func isUsed(_ id: ServiceRequestID) throws -> Bool {
        try Int64.first(db, "SELECT 1 FROM service_request WHERE id = ?", [id.value.data]) != nil
    }

    // MARK: Changes

    /// - Throws: ``StoreFault`` if a changed request was removed or finished since its facts were read.
    func write(_ changes: RequestChanges) throws {
        for request in changes.made { try insert(request) }
        // In one order, so that transactions of several writers do not wait for each other in a circle.
        let changed = changes.changed.sorted { $0.key.rawValue < $1.key.rawValue }
        for (serial, change) in changed { try write(change, of: serial) }
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
            try db.run("DELETE FROM service_request WHERE state < 2 AND consumer = ?", [consumer.rawValue])
        case .abandon(let consumer, let dueAt):
            try db.run(
                "UPDATE service_request SET due_at = ?, is_abandoned = ? WHERE state < 2 AND consumer = ?",
                [dueAt.milliseconds, true, consumer.rawValue])
        case .fail(let provider, let fault, let dueAt):
            try db.run(
                "UPDATE service_request SET due_at = ?, fault = ? WHERE state < 2 AND provider = ?",
                [dueAt.milliseconds, fault.rawValue, provider.rawValue])
        }
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

    // MARK: Reading

    /// How much waits in a provider's inbox of what a consumer asked.
    func waiting(_ share: ShareKey, at now: Timestamp) throws -> InboxUsage.Waiting {
        var select = try BoundStatement(
            db,
            """
            SELECT count(*), coalesce(sum(envelope.size), 0) FROM service_request AS request
                \(IndexHint.sql("service_request_of_consumer"))
            JOIN envelope ON envelope.position = request.serial AND envelope.expires_at > ?
            WHERE request.state < 2 AND request.consumer = ? AND request.provider = ?
            """)
        select.bind(now.milliseconds)
        select.bind(share.consumer.rawValue)
        select.bind(share.device.rawValue)
        return try select.first { .init(envelopes: Int($0.integer(0)), bytes: Int($0.integer(1))) } ?? .init()
    }

    private static let columns = """
        serial, secret, id, consumer, consumer_app, provider, provider_app, fingerprint, expires_at, state, is_unwanted, fault,
        reply_hash, is_abandoned
        """

    func request(_ id: ServiceRequestID) throws -> ServiceRequest? {
        let select = try db.cachedStatement(sql: "SELECT \(Self.columns) FROM service_request WHERE id = ?")
        return try Row.first(select, [id.value.data], ServiceRequest.init)
    }

    func unfinishedCount(of consumer: DeviceSerial) throws -> Int {
        let count = try Int64.first(
            db, "SELECT count(*) FROM service_request WHERE state < 2 AND consumer = ? AND NOT is_abandoned",
            [consumer.rawValue])
        return Int(count ?? 0)
    }

    func unfinished(of consumer: DeviceSerial, to provider: DeviceSerial, limit: Int) throws -> [ServiceRequest] {
        try requests(
            "state < 2 AND consumer = ? AND provider = ? AND NOT is_abandoned LIMIT ?",
            [consumer.rawValue, provider.rawValue, limit])
    }

    func due(in shards: ShardSet, at now: Timestamp, limit: Int) throws -> [ServiceRequest] {
        try requests(
            "(state = 2) = FALSE AND due_at <= ? \(shards.condition(on: "provider")) ORDER BY due_at LIMIT ?",
            shards.arguments(with: [now.milliseconds, limit]))
    }

    private func requests(_ condition: String, _ arguments: StatementArguments) throws -> [ServiceRequest] {
        let select = try db.cachedStatement(sql: "SELECT \(Self.columns) FROM service_request WHERE \(condition)")
        return try Row.fetchAll(select, arguments: arguments).map(ServiceRequest.init)
    }
}

extension ServiceRequest {
    fileprivate init(row: Row) throws {
        self.init(
            id: ServiceRequestID(try row.bytes16(at: 2)),
            envelope: MessageID(position: row[0], secret: try row.bytes16(at: 1)), consumer: DeviceSerial(row[3]),
            consumerApp: AppSerial(row[4]), provider: DeviceSerial(row[5]), providerApp: AppSerial(row[6]),
            fingerprint: row.bytes(at: 7) ?? [], expiresAt: row.timestamp(at: 8))
        guard let state = State(rawValue: row[9]) else {
            throw StoreFault(.unavailable, "the state of a request is unknown")
        }
        self.state = state
        isUnwanted = row[10]
        fault = (row[11] as String?).flatMap(ErrorCode.init(rawValue:))
        replyHash = row.bytes(at: 12)
        isAbandoned = row[13]
    }
}
