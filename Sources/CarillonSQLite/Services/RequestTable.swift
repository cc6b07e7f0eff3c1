import CarillonCore
import CarillonWire
import GRDB

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Requests of services, inside a transaction.
struct RequestTable {
    private let db: Database

    init(_ db: Database) { self.db = db }

    // MARK: Steps

    /// Whether a request's state allows it.
    func counts(_ step: RequestStep) throws -> Bool {
        switch step {
        case .made(let request, let parties):
            // Whoever repeats a request has made it before.
            return try Int64.first(db, "SELECT 1 FROM service_request WHERE id = ?", [request.id.value.data]) == nil
                && ProviderTable(db).parties(request.consumer, request.provider) == parties
                && unfinishedCount(of: request.consumer) < ServiceRequest.mostOfConsumer
        case .received(let serial): return try isThere(serial, "state = 0 AND \(Self.goesOn)")
        case .unwanted(let serial): return try isThere(serial, "state < 2 AND \(Self.goesOn) AND NOT is_unwanted")
        case .finished(let serial, nil, _): return try isThere(serial, "state < 2")
        // What the server ends has no other result.
        case .finished(let serial, .some, _): return try isThere(serial, "state < 2 AND \(Self.goesOn)")
        }
    }

    /// Whether the server does not end it.
    private static let goesOn = "fault IS NULL AND NOT is_abandoned"

    /// Answers whether it counted.
    func apply(_ step: RequestStep) throws -> Bool {
        guard try counts(step) else { return false }
        switch step {
        case .made(let request, _): try insert(request)
        case .received(let serial): try db.run("UPDATE service_request SET state = 1 WHERE serial = ?", [serial.rawValue])
        case .unwanted(let serial):
            try db.run("UPDATE service_request SET is_unwanted = 1 WHERE serial = ?", [serial.rawValue])
        case .finished(let serial, let hash, let now): _ = try finish(serial, replyHash: hash, at: now)
        }
        return true
    }

    /// The device's user changes: what was asked of the device ends with a fault, and nobody waits for what the device asked.
    func userChanges(of device: DeviceSerial) throws {
        try db.run(
            "UPDATE service_request SET due_at = 0, is_abandoned = 1 WHERE state < 2 AND consumer = ?", [device.rawValue])
        try db.run(
            "UPDATE service_request SET due_at = 0, fault = ? WHERE state < 2 AND provider = ?",
            [ErrorCode.userMismatch.rawValue, device.rawValue])
    }

    private func isThere(_ serial: RequestSerial, _ condition: String) throws -> Bool {
        try Int64.first(db, "SELECT 1 FROM service_request WHERE serial = ? AND \(condition)", [serial.rawValue]) != nil
    }

    private func insert(_ request: ServiceRequest) throws {
        try db.run(
            """
            INSERT INTO service_request (serial, secret, id, consumer, consumer_app, provider, provider_app, fingerprint,
                expires_at, due_at)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?9, ?9)
            """,
            [
                request.serial.rawValue, request.envelope.secret.data, request.id.value.data, request.consumer.rawValue,
                request.consumerApp.rawValue, request.provider.rawValue, request.providerApp.rawValue,
                Data(request.fingerprint), request.expiresAt.milliseconds,
            ])
    }

    /// Answers false when it was finished before.
    func finish(_ serial: RequestSerial, replyHash: [UInt8]?, at now: Timestamp) throws -> Bool {
        let forgottenAt = now.adding(seconds: ServiceRequest.rememberedSeconds)
        try db.run(
            """
            UPDATE service_request SET state = 2, reply_hash = ?, due_at = max(expires_at, ?),
                finished_served = (SELECT seconds FROM served)
            WHERE serial = ? AND state < 2
            """,
            [replyHash.map { Data($0) }, forgottenAt.milliseconds, serial.rawValue])
        return db.changesCount == 1
    }

    /// Ends a request that was never delivered. Answers false when it was finished before.
    func cancel(_ serial: RequestSerial, at now: Timestamp) throws -> Bool {
        let forgottenAt = now.adding(seconds: ServiceRequest.undeliveredSeconds)
        let consumer = try Int64.first(
            db,
            """
            UPDATE service_request SET state = 2, is_undelivered = 1, due_at = ? WHERE serial = ? AND state < 2
            RETURNING consumer
            """, [forgottenAt.milliseconds, serial.rawValue])
        guard let consumer else { return false }
        try db.run(
            """
            DELETE FROM service_request WHERE serial IN (SELECT serial FROM service_request
                WHERE consumer = ? AND is_undelivered ORDER BY due_at DESC, serial DESC LIMIT -1 OFFSET ?)
            """, [consumer, ServiceRequest.undeliveredOfConsumer])
        db.count(db.changesCount, of: Self.forgotten)
        return true
    }

    private static let forgotten = ServerMetric.serviceRequests.counter("forgotten")

    // MARK: Looking

    /// How much waits in a provider's inbox of what a consumer asked.
    func waiting(_ share: ShareKey, at now: Timestamp) throws -> InboxUsage.Waiting {
        var select = try BoundStatement(
            db,
            """
            SELECT count(*), coalesce(sum(envelope.size), 0) FROM service_request AS request
                INDEXED BY service_request_of_consumer
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
        reply_hash, is_abandoned FROM service_request
        """

    func request(_ id: ServiceRequestID) throws -> ServiceRequest? {
        let select = try db.cachedStatement(sql: "SELECT \(Self.columns) WHERE id = ?")
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

    func due(at now: Timestamp, limit: Int) throws -> [ServiceRequest] {
        try requests("(state = 2) = 0 AND due_at <= ? ORDER BY due_at LIMIT ?", [now.milliseconds, limit])
    }

    private func requests(_ condition: String, _ arguments: StatementArguments) throws -> [ServiceRequest] {
        let select = try db.cachedStatement(sql: "SELECT \(Self.columns) WHERE \(condition)")
        return try Row.fetchAll(select, arguments: arguments).map(ServiceRequest.init)
    }

    func forget(by retention: RetentionTime, limit: Int) throws -> Int {
        try db.run(
            """
            DELETE FROM service_request WHERE serial IN
                (SELECT serial FROM service_request WHERE (state = 2) = 1 AND due_at <= ? AND finished_served <= ?
                ORDER BY due_at LIMIT ?)
            """,
            [
                retention.now.milliseconds,
                retention.cutoff(afterSeconds: ServiceRequest.rememberedSeconds).served, limit,
            ])
        return db.changesCount
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
