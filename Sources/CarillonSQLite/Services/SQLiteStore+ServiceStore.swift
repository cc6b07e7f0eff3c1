import CarillonBasics
package import CarillonCore
package import CarillonWire
import GRDB

extension SQLiteStore: ServiceStore {
    // MARK: Providers

    package func putServiceProfile(_ profile: ServiceProvider.Profile, of device: DeviceSerial) async throws -> Bool {
        try await group.run { db in
            try db.run(
                """
                INSERT INTO service_provider (device, name, version, keys) SELECT serial, ?, ?, ? FROM device WHERE serial = ?
                ON CONFLICT (device) DO UPDATE SET name = excluded.name, version = excluded.version, keys = excluded.keys
                """,
                [
                    profile.name, profile.version, String(decoding: profile.keys.json.bytes, as: UTF8.self), device.rawValue,
                ])
            guard db.changesCount == 1 else { return false }
            try db.run("DELETE FROM service_offer WHERE device = ?", [device.rawValue])
            for offer in profile.offers {
                try db.run(
                    "INSERT OR IGNORE INTO service_offer VALUES (?, ?, ?)",
                    [device.rawValue, offer.service.text, offer.version.text])
            }
            return true
        }
    }

    package func removeServiceProfile(of device: DeviceSerial) async throws -> Bool {
        try await group.run { db in
            try db.run("DELETE FROM service_provider WHERE device = ?", [device.rawValue])
            return db.changesCount == 1
        }
    }

    package func serviceProviders(
        for caller: DeviceSerial, _ query: ServiceQuery, limit: Int
    ) async throws -> [ServiceProvider]? {
        try await read { db in
            let whose = try db.cachedStatement(
                sql: """
                    SELECT p.user, p.app, a.realm FROM device_profile p JOIN app a ON a.serial = p.app
                    WHERE p.device = ? AND p.user IS NOT NULL
                    """)
            guard
                let whose = try Row.first(whose, [caller.rawValue], { ($0[0] as String, $0[1] as Int64, $0[2] as String?) })
            else { return nil }
            let select = try db.cachedStatement(sql: Self.selectProviders)
            let found = try Row.fetchAll(
                select,
                arguments: [
                    "user": whose.0, "app": whose.1, "realm": whose.2, "self": caller.rawValue,
                    "service": query.service?.text, "version": query.version?.text, "appName": query.app?.text,
                    "device": query.device?.value.data, "limit": limit,
                ])
            return try found.map { row in try ServiceProvider(row, offers: Self.offers(of: row[0], in: db)) }
        }
    }

    /// Its app's and its realm's devices of one user.
    private static let selectProviders = """
        SELECT s.device, d.id, d.app, a.id, s.name, s.version, s.keys, d.seen_at
        FROM app a JOIN device_profile p ON p.app = a.serial AND p.user = :user
            JOIN service_provider s ON s.device = p.device JOIN device d ON d.serial = p.device
        WHERE (a.serial = :app OR a.realm = :realm) AND a.ended_at IS NULL AND p.device <> :self
            AND (:device IS NULL OR d.id = :device) AND (:appName IS NULL OR a.id = :appName)
            AND (:service IS NULL OR EXISTS (SELECT 1 FROM service_offer o WHERE o.device = p.device AND o.service = :service
                AND (:version IS NULL OR o.version = :version)))
        ORDER BY s.device LIMIT :limit
        """

    private static func offers(of device: Int64, in db: Database) throws -> [ServiceOffer] {
        let select = try db.cachedStatement(
            sql: "SELECT service, version FROM service_offer WHERE device = ? ORDER BY service, version")
        return try Row.fetchAll(select, arguments: [device]).compactMap { row in
            guard let service = ServiceID(row[0] as String), let version = ServiceVersion(row[1] as String) else {
                return nil
            }
            return ServiceOffer(service, version)
        }
    }

    package func setRealm(_ realm: String?, of app: AppSerial) async throws -> Bool {
        try await group.run { db in
            try db.run("UPDATE app SET realm = ? WHERE serial = ? AND ended_at IS NULL", [realm, app.rawValue])
            return db.changesCount == 1
        }
    }

    package func realm(of app: AppSerial) async throws -> String? {
        try await read { db in
            try String.fetchOne(db, sql: "SELECT realm FROM app WHERE serial = ?", arguments: [app.rawValue])
        }
    }

    // MARK: Requests

    package func serviceRequest(_ id: ServiceRequestID) async throws -> ServiceRequest? {
        try await read { db in try RequestTable(db).request(id) }
    }

    package func unfinishedRequestCount(of consumer: DeviceSerial) async throws -> Int {
        try await read { db in try RequestTable(db).unfinishedCount(of: consumer) }
    }

    package func unfinishedRequests(
        of consumer: DeviceSerial, to provider: DeviceSerial, limit: Int
    ) async throws -> [ServiceRequest] {
        try await read { db in try RequestTable(db).unfinished(of: consumer, to: provider, limit: limit) }
    }

    package func cancelRequest(_ request: RequestSerial, at now: Timestamp) async throws -> Bool {
        try await group.run { db in try RequestTable(db).finish(request, replyHash: nil, at: now) }
    }

    package func dueRequests(at now: Timestamp, limit: Int) async throws -> [ServiceRequest] {
        try await read { db in try RequestTable(db).due(at: now, limit: limit) }
    }

    package func forgetRequests(at now: Timestamp, limit: Int) async throws -> Int {
        try await group.run { db in try RequestTable(db).forget(at: now, limit: limit) }
    }
}

extension ServiceProvider {
    fileprivate init(_ row: Row, offers: [ServiceOffer]) throws {
        guard let app = AppID(row[3] as String),
            let keys = JSONValue(parsing: Array((row[6] as String).utf8)).flatMap(KeyBundle.init)
        else { throw StoreFault(.unavailable, "the row of a provider cannot be read") }
        self.init(
            device: DeviceSerial(row[0]), id: DeviceID(try row.bytes16(at: 1)), app: AppSerial(row[2]), appID: app,
            profile: Profile(name: row[4], version: row[5], offers: offers, keys: keys), seenAt: row.timestamp(at: 7))
    }
}
