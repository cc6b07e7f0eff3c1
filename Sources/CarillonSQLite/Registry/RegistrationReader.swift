import CarillonBasics
import CarillonCore
import CarillonWire
import GRDB

/// Reads the facts that ``RegistrationRules`` needs, inside a transaction.
struct RegistrationReader {
    private let db: Database

    init(_ db: Database) { self.db = db }

    // MARK: Registrations

    /// Returns nil if the device has not reported anything yet.
    func registration(of device: DeviceSerial) throws -> DeviceRegistration? {
        var select = try BoundStatement(db, Self.selectRegistration)
        select.bind(device.rawValue)
        return try select.first { try DeviceRegistration($0) }
    }

    /// Returns nil if there is no such device.
    func facts(of device: DeviceSerial) throws -> RegistrationFacts? {
        var select = try BoundStatement(db, Self.selectFacts)
        select.bind(device.rawValue)
        return try select.first { columns in
            RegistrationFacts(
                device: device, app: AppSerial(columns.integer(0)), createdAt: columns.timestamp(1),
                stored: try DeviceRegistration(ifAny: columns, from: 2))
        }
    }

    func facts(of address: DeviceProfile.Address, in app: AppSerial) throws -> TokenFacts {
        var select = try BoundStatement(db, Self.selectToken)
        select.bind(app.rawValue)
        select.bind(address.platform.rawValue)
        select.bind(address.token.bytes)
        return try select.first { try TokenFacts($0) } ?? TokenFacts()
    }

    // MARK: Devices

    func facts(of new: NewDevice) throws -> NewDeviceFacts {
        var select = try BoundStatement(db, Self.selectNewDevice)
        select.bind(new.app.text)
        select.bind(new.key.map { Int64(bitPattern: $0.value) })
        select.bind(new.registration?.bytes)
        select.bind(new.profile?.address?.platform.rawValue)
        select.bind(new.profile?.address?.token.bytes)
        let saysAnything = new.profile != nil || new.user != nil
        return try select.first { columns in
            try NewDeviceFacts(
                app: .init(
                    serial: AppSerial(columns.integer(0)), devices: Int(columns.integer(1)),
                    isKeyInForce: columns.integerIfAny(2) != nil),
                known: columns.integerIfAny(3).map { _ in try Device(columns, from: 3) },
                stored: saysAnything ? DeviceRegistration(ifAny: columns, from: 11) : nil,
                token: TokenFacts(columns, from: 11 + DeviceRegistration.columnCount))
        } ?? NewDeviceFacts(app: nil)
    }

    /// The number of devices of an address, or the limit if there are more.
    func devices(of quota: AddressQuota) throws -> Int {
        var select = try BoundStatement(
            db, "SELECT count(*) FROM (SELECT 1 FROM anonymous_address WHERE address = ? LIMIT ?) AS found")
        select.bind(quota.address.storedOwner)
        select.bind(quota.limit)
        return try select.first { Int($0.integer(0)) } ?? 0
    }

    /// Reads the facts that the removal of a device needs, and its channels. Returns nil if there is no such device.
    func endFacts(of device: DeviceSerial) throws -> (facts: DeviceEndFacts, channels: [ChannelSerial])? {
        var select = try BoundStatement(db, Self.selectEnd)
        select.bind(device.rawValue)
        var facts: DeviceEndFacts?
        var channels: [ChannelSerial] = []
        try select.forEachRow { columns in
            if facts == nil { facts = DeviceEndFacts(columns, of: device) }
            if let channel = columns.integerIfAny(8) { channels.append(ChannelSerial(channel)) }
            return true
        }
        guard let facts else { return nil }
        return (facts, channels)
    }

    // MARK: Channels

    /// Returns nil if there is no such device.
    func facts(of request: ChannelRequest) throws -> OpenChannelFacts? {
        var select = try BoundStatement(db, Self.selectChannel)
        select.bind(request.id.value)
        select.bind(request.device.rawValue)
        return try select.first { columns in
            let app = AppSerial(columns.integer(0))
            let channel = columns.integerIfAny(3).map { serial in
                PushChannel(
                    serial: ChannelSerial(serial), device: request.device, app: app, id: request.id, name: columns.text(5),
                    vapidKey: columns.bytes(6), wake: columns.text(8).flatMap(WakeMode.init) ?? .background,
                    createdAt: columns.timestamp(7))
            }
            return OpenChannelFacts(
                app: app, channel: channel, isOfFormerUser: columns.integer(4) == 2, channels: Int(columns.integer(1)),
                hasUser: columns.integer(2) != 0)
        }
    }

    // MARK: Statements

    private static let selectRegistration =
        "SELECT \(DeviceRegistration.columns(of: "profile")) FROM device_profile AS profile WHERE profile.device = ?"

    private static let selectFacts = """
        SELECT device.app, device.created_at, \(DeviceRegistration.columns(of: "profile"))
        FROM device JOIN app ON app.serial = device.app AND app.ended_at IS NULL
        LEFT JOIN device_profile AS profile ON profile.device = device.serial
        WHERE device.serial = ?
        """

    private static let selectToken = """
        SELECT \(TokenFacts.columns)
        FROM (SELECT 1 AS one) AS asked
        LEFT JOIN device_profile AS holder
            ON holder.app = ?1 AND holder.platform = ?2 AND holder.token = ?3 AND holder.token IS NOT NULL
        LEFT JOIN released_token AS released
            ON released.app = ?1 AND released.platform = ?2 AND released.token = ?3
        """

    private static let selectNewDevice = """
        SELECT app.serial, \(CounterTable.sum(.devices, of: "app.serial")), opening.id, device.serial, device.id,
            device.app, app.id, device.credential_hash, device.created_at, device.is_anonymous, device.seen_at,
            \(DeviceRegistration.columns(of: "profile")), \(TokenFacts.columns)
        FROM app
        LEFT JOIN access_key AS opening ON opening.id = ?2 AND opening.revoked_at IS NULL
        LEFT JOIN registration ON registration.app = app.serial AND registration.secret_hash = ?3
        LEFT JOIN device ON device.serial = registration.device
        LEFT JOIN device_profile AS profile ON profile.device = device.serial
        LEFT JOIN device_profile AS holder
            ON holder.app = app.serial AND holder.platform = ?4 AND holder.token = ?5 AND holder.token IS NOT NULL
        LEFT JOIN released_token AS released
            ON released.app = app.serial AND released.platform = ?4 AND released.token = ?5
        WHERE app.id = ?1
        """

    private static let selectEnd = """
        SELECT device.app, \(CounterTable.sum(.devices, of: "device.app")), device.seen_at, device.seen_served,
            profile.platform, profile.token, profile.takings, profile.taken_on, channel.serial
        FROM device JOIN app ON app.serial = device.app
        LEFT JOIN device_profile AS profile ON profile.device = device.serial
        LEFT JOIN channel ON channel.device = device.serial
        WHERE device.serial = ?
        """

    /// Counts the channels of the device only if the channel is not open yet.
    private static let selectChannel = """
        SELECT device.app,
            CASE WHEN channel.serial IS NULL
                THEN (SELECT count(*) FROM channel AS counted WHERE counted.device = device.serial) END,
            CASE WHEN channel.serial IS NULL THEN EXISTS (SELECT 1 FROM device_profile AS profile
                WHERE profile.device = device.serial AND profile.user IS NOT NULL) END,
            channel.serial, channel.of_user, channel.name, channel.vapid_key, channel.created_at, channel.wake
        FROM device JOIN app ON app.serial = device.app AND app.ended_at IS NULL
        LEFT JOIN channel ON channel.device = device.serial AND channel.id = ?
        WHERE device.serial = ?
        """
}

extension DeviceEndFacts {
    fileprivate init(_ columns: StatementColumns, of device: DeviceSerial) {
        var token: PlatformToken?
        // A device cannot present a token that cannot be read. The environment is not read, because it can be damaged.
        if let platform = columns.text(4).flatMap(PushPlatform.init),
            let bytes = columns.bytes(5).flatMap(PushToken.init(stored:))
        {
            token = PlatformToken(platform: platform, token: bytes)
        }
        self.init(
            device: device, app: AppSerial(columns.integer(0)), devicesOfApp: Int(columns.integer(1)),
            seenAt: columns.timestamp(2), seenServed: columns.integer(3), token: token,
            tokenTransfers: .init(count: Int(columns.integer(6)), day: columns.integer(7)))
    }
}

extension TokenFacts {
    /// The columns that ``init(_:from:)`` reads.
    fileprivate static let columns = "released.takings, released.taken_on, \(DeviceRegistration.columns(of: "holder"))"

    /// - Parameter place: The index of the first of the columns.
    fileprivate init(_ columns: StatementColumns, from place: Int32 = 0) throws {
        self.init(
            holder: try DeviceRegistration(ifAny: columns, from: place + 2),
            released: columns.integerIfAny(place).map { .init(count: Int($0), day: columns.integer(place + 1)) })
    }
}

extension DeviceRegistration {
    private static let columnNames = [
        "device", "platform", "token", "environment", "revision", "confirmed_at", "takings", "taken_on", "reason",
        "status_at", "app_version", "locale", "time_zone", "parameters", "user", "said_environment", "said_revision",
        "former_platform", "former_environment",
    ]

    /// The columns that ``init(_:from:)`` reads.
    ///
    /// - Parameter table: The name of `device_profile` in the statement.
    static func columns(of table: String) -> String { columnNames.map { "\(table).\($0)" }.joined(separator: ", ") }

    fileprivate static var columnCount: Int32 { Int32(columnNames.count) }

    /// Returns nil if the statement found no registration.
    fileprivate init?(ifAny columns: StatementColumns, from place: Int32) throws {
        guard columns.integerIfAny(place) != nil else { return nil }
        try self.init(columns, from: place)
    }

    /// - Parameter place: The index of the first of the columns.
    fileprivate init(_ columns: StatementColumns, from place: Int32 = 0) throws {
        self.init(device: DeviceSerial(columns.integer(place)), at: columns.timestamp(place + 9))
        let unreadable = StoreFault(.unavailable, "a device's registration cannot be read")
        if let bytes = columns.bytes(place + 2) {
            guard let platform = columns.text(place + 1).flatMap(PushPlatform.init), let token = PushToken(stored: bytes),
                let environment = columns.text(place + 3).flatMap(PushEnvironment.init)
            else { throw unreadable }
            profile.address = .init(platform: platform, token: token, environment: environment)
        }
        if let platform = columns.text(place + 17), let environment = columns.text(place + 18) {
            guard let platform = PushPlatform(rawValue: platform), let environment = PushEnvironment(rawValue: environment)
            else { throw unreadable }
            profile.formerService = .init(platform: platform, environment: environment)
        }
        addressRevision = columns.integer(place + 4)
        confirmedAt = columns.timestamp(place + 5)
        tokenTransfers = Int(columns.integer(place + 6))
        takenOn = columns.integer(place + 7)
        if let reason = columns.text(place + 8) {
            guard let reason = SuspensionReason(rawValue: reason) else { throw unreadable }
            status = .suspended(reason)
        }
        profile.appVersion = columns.text(place + 10)
        profile.locale = columns.text(place + 11)
        profile.timeZone = columns.text(place + 12)
        if let parameters = columns.bytes(place + 13) {
            guard let value = JSONValue(parsing: parameters) else { throw unreadable }
            profile.parameters = try DeviceParameters(value)
        }
        user = columns.text(place + 14).flatMap(UserID.init)
        reportedEnvironment = columns.text(place + 15).flatMap(PushEnvironment.init)
        profile.revision = columns.text(place + 16)
    }
}
