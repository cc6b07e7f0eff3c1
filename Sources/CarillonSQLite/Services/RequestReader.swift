import CarillonCore
import CarillonWire
import GRDB

/// Reads the rows of service requests.
struct RequestReader {
    private let db: Database

    init(_ db: Database) { self.db = db }

    /// Returns the amount of waiting envelopes in a provider's inbox for requests of a consumer.
    func waiting(_ quotaKey: ConsumerQuotaKey, at now: Timestamp) throws -> InboxUsage.Waiting {
        var select = try BoundStatement(
            db,
            """
            SELECT count(*), coalesce(sum(envelope.size), 0) FROM service_request AS request
                \(IndexHint.sql("service_request_of_consumer"))
            JOIN envelope ON envelope.position = request.serial AND envelope.expires_at > ?
            WHERE request.state < 2 AND request.consumer = ? AND request.provider = ?
            """)
        select.bind(now.milliseconds)
        select.bind(quotaKey.consumer.rawValue)
        select.bind(quotaKey.device.rawValue)
        return try select.first { .init(envelopes: Int($0.integer(0)), bytes: Int($0.integer(1))) } ?? .init()
    }

    static let columns = """
        service_request.serial, service_request.secret, service_request.id, service_request.consumer,
        service_request.consumer_app, service_request.provider, service_request.provider_app, service_request.fingerprint,
        service_request.expires_at, service_request.state, service_request.is_unwanted, service_request.fault,
        service_request.reply_hash, service_request.is_abandoned
        """

    func request(_ id: ServiceRequestID) throws -> ServiceRequest? {
        try requests("id = ?", [id.value.data]).first
    }

    func request(_ serial: RequestSerial) throws -> ServiceRequest? {
        try requests("serial = ?", [serial.rawValue]).first
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
        return try Row.fetchAll(select, arguments: arguments).map { try ServiceRequest($0) }
    }
}

extension ServiceRequest {
    /// - Parameter place: The index of the first of ``RequestReader/columns``.
    init(_ row: Row, from place: Int = 0) throws {
        self.init(
            id: ServiceRequestID(try row.bytes16(at: place + 2)),
            envelope: MessageID(position: row[place], secret: try row.bytes16(at: place + 1)),
            consumer: DeviceSerial(row[place + 3]), consumerApp: AppSerial(row[place + 4]),
            provider: DeviceSerial(row[place + 5]), providerApp: AppSerial(row[place + 6]),
            fingerprint: row.bytes(at: place + 7) ?? [], expiresAt: row.timestamp(at: place + 8))
        guard let state = State(rawValue: row[place + 9]) else {
            throw StoreFault(.unavailable, "the state of a request is unknown")
        }
        self.state = state
        isUnwanted = row[place + 10]
        fault = (row[place + 11] as String?).flatMap(ErrorCode.init(rawValue:))
        replyHash = row.bytes(at: place + 12)
        isAbandoned = row[place + 13]
    }
}
