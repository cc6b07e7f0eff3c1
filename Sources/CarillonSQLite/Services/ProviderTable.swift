import CarillonBasics
import CarillonCore
import CarillonWire
import GRDB

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The providers of services, and the rules by which callers find them, inside a transaction.
struct ProviderTable {
    let db: Database

    init(_ db: Database) { self.db = db }

    // MARK: Profiles

    func profile(of device: DeviceSerial) throws -> ServiceProvider.Profile? {
        let select = try db.cachedStatement(
            sql: "SELECT name, version, keys, icon_name FROM service_provider WHERE device = ?")
        let offers = try offers(of: device)
        return try Row.first(select, [device.rawValue]) { row in
            try ServiceProvider.Profile(row, from: 0, offers: offers)
        }
    }

    /// Stores a profile. Returns whether it has changed; nil if there is no such device.
    func put(_ profile: ServiceProvider.Profile, of device: DeviceSerial) throws -> Bool? {
        let select = """
            SELECT 1 FROM device JOIN app ON app.serial = device.app AND app.ended_at IS NULL WHERE device.serial = ?
            """
        guard try Int64.first(db, select, [device.rawValue]) != nil else { return nil }
        let earlier = try self.profile(of: device)
        try db.run(
            """
            INSERT INTO service_provider (device, name, version, keys, icon_name, icon, revision)
            VALUES (?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (device) DO UPDATE SET name = excluded.name, version = excluded.version, keys = excluded.keys,
                icon_name = excluded.icon_name, icon = excluded.icon, revision = excluded.revision
            """,
            [
                device.rawValue, profile.name, profile.version, String(decoding: profile.keys.json.bytes, as: UTF8.self),
                profile.icon?.name, profile.icon.map { Data($0.bytes) }, profile.revision,
            ])
        try db.run("DELETE FROM service_offer WHERE device = ?", [device.rawValue])
        for offer in profile.offers {
            try db.run(
                "INSERT INTO service_offer VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                [device.rawValue, offer.service.text, offer.version.text])
        }
        return try self.profile(of: device) != earlier
    }

    func remove(_ device: DeviceSerial) throws -> Bool {
        try db.run("DELETE FROM service_provider WHERE device = ?", [device.rawValue])
        return db.changesCount == 1
    }

    private func offers(of device: DeviceSerial) throws -> [ServiceOffer] {
        let select = try db.cachedStatement(
            sql: "SELECT service, version FROM service_offer WHERE device = ? ORDER BY service, version")
        return try Row.fetchAll(select, arguments: [device.rawValue]).compactMap { row in
            ServiceOffer(row, from: 0)
        }
    }

    func icon(of device: DeviceSerial) throws -> ServiceIcon? {
        let select = try db.cachedStatement(
            sql: "SELECT icon_name, icon FROM service_provider WHERE device = ? AND icon IS NOT NULL")
        return try Row.first(select, [device.rawValue]) { row in
            ServiceIcon(name: row[0], bytes: row.bytes(at: 1) ?? [])
        }
    }

    // MARK: Finding

    func reach(of caller: DeviceSerial, _ query: ServiceQuery, limit: Int) throws -> ServiceReach? {
        guard query.device == nil else { return try reach(ofNamed: query, by: caller) }
        guard let from = try origin(of: caller) else { return nil }
        let search = Search(from: from, caller: caller, query: query)
        var found: [ServiceProvider] = []
        if query.kind != .application { found = try providers(Self.ofClusters, search, limit: limit) }
        if query.kind != .server, search.user != nil {
            found += try providers(Self.ofUser, search, limit: limit - found.count)
        }
        return ServiceReach(caller: from.caller, providers: found)
    }

    private struct Place {
        var caller: ServiceReach.Caller
        var app: Int64
        /// The realm, as the bytes of its document.
        var realm: Data?
    }

    private func origin(of caller: DeviceSerial) throws -> Place? {
        let place = try Row.first(
            db.cachedStatement(sql: Self.selectCaller), ["caller": caller.rawValue]
        ) { row -> Place? in
            guard let caller = ServiceReach.Caller(row, from: 0) else { return nil }
            return Place(caller: caller, app: row[2], realm: row[3])
        }
        return place ?? nil
    }

    /// Selects whether a device is a server, its user, its app and the realm of its app. No row if its app was deleted.
    static let selectCaller = """
        SELECT EXISTS (SELECT 1 FROM service_cluster c WHERE c.device = d.serial) AS is_server, p.user AS own_user,
            d.app, r.bytes AS realm
        FROM device d JOIN app a ON a.serial = d.app LEFT JOIN device_profile p ON p.device = d.serial
            LEFT JOIN app_document r ON r.app = a.serial AND r.kind = 'realm' AND r.name = ''
        WHERE d.serial = :caller AND a.ended_at IS NULL
        """

    private struct Search {
        var from: Place
        var caller: DeviceSerial
        var query: ServiceQuery

        /// The user whose devices are found; nil for the devices of all users, if the query names a device.
        var user: String? {
            switch from.caller {
            case .user(let user): user.text
            case .server: query.user?.text
            }
        }
    }

    private static let ofClusters = select(
        "app a JOIN service_cluster x ON x.app = a.serial JOIN device d ON d.serial = x.device", "true")
    private static let ofUser = select(
        "app a JOIN device_profile x ON x.app = a.serial AND x.user = :user JOIN device d ON d.serial = x.device",
        "c.device IS NULL")

    private static func select(_ source: String, _ condition: String) -> String {
        """
        SELECT \(columns)
        FROM \(source) JOIN service_provider s ON s.device = d.serial LEFT JOIN service_cluster c ON c.device = d.serial
            LEFT JOIN device_profile p ON p.device = d.serial
        WHERE \(condition) AND \(isFound(inAppsOf: ":app", ":realm", user: ":user", isServer: ":isServer"))
        ORDER BY d.serial LIMIT :limit
        """
    }

    static let columns = """
        d.serial, d.id, d.app, a.id, d.seen_at, s.name, s.version, s.keys, s.icon_name, c.device IS NOT NULL, c.host, c.port,
        c.priority, p.user
        """

    /// Returns the condition that a caller finds a provider.
    ///
    /// - Parameters:
    ///   - app: The app of the caller. The realm of the app follows.
    ///   - user: The user whose devices are found. A server without a user finds the devices of all users.
    static func isFound(inAppsOf app: String, _ realm: String, user: String, isServer: String) -> String {
        """
        a.serial IN (SELECT \(app) UNION SELECT r.app FROM app_document r
                WHERE r.kind = 'realm' AND r.bytes = \(realm))
            AND a.ended_at IS NULL AND d.serial <> :caller
            AND (c.device IS NOT NULL OR p.user = \(user) OR (\(isServer) AND \(user) IS NULL AND p.user IS NOT NULL))
            AND (:appName IS NULL OR a.id = :appName)
            AND (:service IS NULL OR EXISTS (SELECT 1 FROM service_offer o WHERE o.device = d.serial AND o.service = :service
                AND (:version IS NULL OR o.version = :version)))
        """
    }

    private func providers(_ sql: String, _ search: Search, limit: Int) throws -> [ServiceProvider] {
        let (query, from) = (search.query, search.from)
        let rows = try Row.fetchAll(
            db.cachedStatement(sql: sql),
            arguments: [
                "app": from.app, "realm": from.realm, "caller": search.caller.rawValue, "user": search.user,
                "isServer": from.caller == .server, "appName": query.app?.text,
                "service": query.service?.text, "version": query.version?.text, "limit": limit,
            ])
        return try rows.map { try ServiceProvider($0, offers: try offers(of: DeviceSerial($0[0]))) }
    }

    /// - Parameter provider: A device that provides a service.
    func peers(of provider: DeviceSerial, limit: Int) throws -> [DeviceSerial] {
        let select = try db.cachedStatement(
            sql: """
                SELECT x.device FROM service_provider s JOIN device_profile p ON p.device = s.device
                    JOIN app a ON a.serial IN (SELECT p.app UNION SELECT other.app FROM app_document own
                        JOIN app_document other ON other.kind = 'realm' AND other.bytes = own.bytes
                        WHERE own.app = p.app AND own.kind = 'realm')
                    JOIN device_profile x ON x.app = a.serial AND x.user = p.user
                WHERE s.device = ? AND x.device <> s.device AND a.ended_at IS NULL LIMIT ?
                """)
        return try Int64.fetchAll(select, arguments: [provider.rawValue, limit]).map(DeviceSerial.init)
    }

    // MARK: Clusters

    func setPlace(_ place: ClusterPlace?, of id: DeviceID, app: AppSerial) throws -> Bool? {
        guard let place else {
            try db.run(
                "DELETE FROM service_cluster WHERE app = ? AND device = (SELECT serial FROM device WHERE id = ?)",
                [app.rawValue, id.value.data])
            return db.changesCount == 1
        }
        let device = try Int64.first(
            db,
            """
            SELECT device.serial FROM device JOIN app ON app.serial = device.app AND app.ended_at IS NULL
            WHERE device.id = ? AND device.app = ?
            """, [id.value.data, app.rawValue])
        guard let device else { return false }
        let others = try Int64.first(
            db, "SELECT count(*) FROM service_cluster WHERE app = ? AND device <> ?", [app.rawValue, device])
        guard (others ?? 0) < ClusterPlace.mostOfApp else { return nil }
        try db.run(
            """
            INSERT INTO service_cluster VALUES (?, ?, ?, ?, ?)
            ON CONFLICT (device) DO UPDATE SET host = excluded.host, port = excluded.port, priority = excluded.priority
            """, [device, app.rawValue, place.host, place.port, place.priority])
        return true
    }

    func cluster(of app: AppSerial) throws -> [(device: DeviceID, place: ClusterPlace)] {
        let select = try db.cachedStatement(
            sql: """
                SELECT d.id, c.host, c.port, c.priority FROM service_cluster c JOIN device d ON d.serial = c.device
                WHERE c.app = ? ORDER BY c.priority, d.id
                """)
        return try Row.fetchAll(select, arguments: [app.rawValue]).map { row in
            (DeviceID(try row.bytes16(at: 0)), ClusterPlace(host: row[1], port: row[2], priority: row[3]))
        }
    }
}

extension ServiceReach.Caller {
    /// Returns nil for a device that may not call any device.
    ///
    /// - Parameter place: The column with whether the device is a server, which is NULL without a device. The device's user
    ///   follows.
    init?(_ row: Row, from place: Int) {
        guard let isServer = row[place] as Bool? else { return nil }
        if isServer {
            self = .server
        } else {
            guard let user = (row[place + 1] as String?).flatMap(UserID.init) else { return nil }
            self = .user(user)
        }
    }
}

extension ServiceOffer {
    /// - Parameter place: The column of the service, which is NULL without an offer. The version follows.
    init?(_ row: Row, from place: Int) {
        guard let service = (row[place] as String?).flatMap(ServiceID.init),
            let version = (row[place + 1] as String?).flatMap(ServiceVersion.init)
        else { return nil }
        self.init(service, version)
    }
}

extension ServiceProvider {
    /// - Parameter row: A row that begins with ``ProviderTable/columns``.
    init(_ row: Row, offers: [ServiceOffer]) throws {
        guard let app = AppID(row[3] as String) else {
            throw StoreFault(.unavailable, "the stored app name of a provider is not valid")
        }
        self.init(
            device: DeviceSerial(row[0]), id: DeviceID(try row.bytes16(at: 1)), app: AppSerial(row[2]), appID: app,
            profile: try Profile(row, from: 5, offers: offers), seenAt: row.timestamp(at: 4),
            cluster: row[9] ? ClusterPlace(host: row[10], port: row[11], priority: row[12]) : nil,
            user: (row[13] as String?).flatMap(UserID.init))
    }
}

extension ServiceProvider.Profile {
    /// - Parameter place: The index of the first of the columns for name, version, keys and the icon's name.
    fileprivate init(_ row: Row, from place: Int, offers: [ServiceOffer]) throws {
        guard let keys = JSONValue(parsing: Array((row[place + 2] as String).utf8)).flatMap(KeyBundle.init) else {
            throw StoreFault(.unavailable, "the row of a provider cannot be read")
        }
        self.init(
            name: row[place], version: row[place + 1], offers: offers, keys: keys,
            icon: (row[place + 3] as String?).map { ServiceIcon(name: $0) })
    }
}
