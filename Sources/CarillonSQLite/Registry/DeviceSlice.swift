import CarillonCore
import CarillonWire
import GRDB

/// Reads a list of devices with a filter, a limited number of the app's devices at a time.
struct DeviceSlice {
    private let db: Database
    private let memory: InboxMemory

    /// The number of devices that are compared with a filter in one read.
    static let size = 1000

    init(_ db: Database, memory: InboxMemory) {
        self.db = db
        self.memory = memory
    }

    func read(_ app: AppID, _ filter: DeviceFilter, after place: Int64, limit: Int) throws -> DevicePart {
        var arguments: StatementArguments = [
            "app": app.text, "after": place, "suspended": filter.isSuspended,
            "platform": filter.platform.map(Self.column), "limit": limit,
        ]
        var (range, end) = ("", Int64?.none)
        if let user = filter.user {
            // An index finds the devices of a user, which are few.
            range = """
                AND device.serial IN (SELECT owned.device FROM device_profile AS owned
                    WHERE owned.app = (SELECT serial FROM app WHERE id = :app) AND owned.user = :user)
                """
            arguments += ["user": user.text]
        } else {
            end = try Int64.first(
                db,
                """
                SELECT serial FROM device WHERE app = (SELECT serial FROM app WHERE id = ?) AND serial > ?
                ORDER BY serial LIMIT 1 OFFSET ?
                """, [app.text, place, Self.size - 1])
            range = "AND device.serial <= :end"
            arguments += ["end": end ?? .max]
        }
        let serials = try Int64.fetchAll(
            db,
            sql: """
                SELECT device.serial FROM device JOIN app ON app.serial = device.app AND app.ended_at IS NULL
                    LEFT JOIN device_profile AS profile ON profile.device = device.serial
                WHERE app.id = :app AND device.serial > :after
                    AND (:suspended IS NULL OR :suspended = (profile.reason IS NOT NULL))
                    AND (:platform IS NULL OR :platform = coalesce(profile.platform, ''))
                    \(range)
                ORDER BY device.serial LIMIT :limit
                """,
            arguments: arguments)
        let table = RegistrationTable(db, memory: memory)
        let found = try serials.compactMap { serial -> (device: Device, registration: DeviceRegistration)? in
            guard let device = try SQLiteStore.device(DeviceSerial(serial), in: db) else { return nil }
            let registration = try table.registration(of: device.serial)
            return (device, registration ?? DeviceRegistration(device: device.serial, at: device.createdAt))
        }
        return DevicePart(found, end: end.map { DeviceSerial($0) })
    }

    private static func column(_ platform: DeviceFilter.Platform) -> String {
        switch platform {
        case .of(let platform): platform.rawValue
        case .none: ""
        }
    }
}
