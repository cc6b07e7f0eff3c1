import CarillonCore
import CarillonWire
import GRDB

/// Reads the facts of a request to a named device by one statement.
extension ProviderTable {
    /// Returns the request of an id if it was made; otherwise whether a device finds the device that a query names.
    func requestBeginning(_ id: ServiceRequestID, by caller: DeviceSerial, _ query: ServiceQuery) throws -> RequestBeginning
    {
        let rows = try rows(id, caller, query)
        if let row = rows.first, !row.hasNull(atIndex: Column.request) {
            return .made(try ServiceRequest(row, from: Column.request))
        }
        return .new(try Self.reach(rows))
    }

    func reach(ofNamed query: ServiceQuery, by caller: DeviceSerial) throws -> ServiceReach? {
        try Self.reach(rows(nil, caller, query))
    }

    private static func reach(_ rows: [Row]) throws -> ServiceReach? {
        guard let row = rows.first, let caller = ServiceReach.Caller(row, from: Column.caller) else { return nil }
        guard !row.hasNull(atIndex: 0) else { return ServiceReach(caller: caller, providers: []) }
        let offers = rows.compactMap { ServiceOffer($0, from: Column.offer) }
        return ServiceReach(caller: caller, providers: [try ServiceProvider(row, offers: offers)])
    }

    /// The indices of the first columns of the parts after the provider.
    private enum Column {
        static let caller = 14
        static let offer = 16
        static let request = 18
    }

    /// Returns a row for each offer of the provider, and one row without offers.
    private func rows(_ id: ServiceRequestID?, _ caller: DeviceSerial, _ query: ServiceQuery) throws -> [Row] {
        try Row.fetchAll(
            db.cachedStatement(sql: Self.selectNamed),
            arguments: [
                "id": id?.value.data, "caller": caller.rawValue, "device": query.device?.value.data,
                "user": query.user?.text, "appName": query.app?.text, "service": query.service?.text,
                "version": query.version?.text,
            ])
    }

    private static let selectNamed = """
        SELECT \(columns), caller.is_server, caller.own_user, offer.service, offer.version, \(RequestReader.columns)
        FROM (SELECT 1 AS one) AS one LEFT JOIN service_request ON service_request.id = :id
            LEFT JOIN (\(selectCaller)) AS caller ON TRUE
            LEFT JOIN (device d JOIN app a ON a.serial = d.app JOIN service_provider s ON s.device = d.serial
                LEFT JOIN service_cluster c ON c.device = d.serial LEFT JOIN device_profile p ON p.device = d.serial)
                ON d.id = :device AND \(isFoundByCaller)
            LEFT JOIN service_offer offer ON offer.device = d.serial
        ORDER BY offer.service, offer.version
        """

    private static let isFoundByCaller = isFound(
        inAppsOf: "caller.app", "caller.realm",
        user: "CASE WHEN caller.is_server THEN :user ELSE caller.own_user END", isServer: "caller.is_server")
}
