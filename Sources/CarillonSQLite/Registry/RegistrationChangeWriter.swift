import CarillonCore
import CarillonWire
import GRDB

/// Writes the decisions of ``RegistrationRules`` about rows of devices and channels, inside a transaction.
struct RegistrationChangeWriter {
    private let db: Database

    init(_ db: Database) { self.db = db }

    // MARK: Devices

    /// Inserts a device. Returns its serial number, which has the shard in the id of the device.
    func insert(_ new: RegistrationChanges.NewRow) throws -> DeviceSerial {
        let device = new.device
        var insert = try BoundStatement(db, Self.insertDevice)
        insert.bind(Int64(Shard(of: device.id).number))
        insert.bind(device.id.value)
        insert.bind(device.app.rawValue)
        insert.bind(device.credentialHash.bytes)
        insert.bind(device.createdAt.milliseconds)
        insert.bind(device.isAnonymous ? 1 : 0)
        insert.bind(device.seenAt.milliseconds)
        insert.bind(new.key.map { Int64(bitPattern: $0.value) })
        let serial = DeviceSerial(try insert.inserted())
        if let address = new.address {
            var insert = try BoundStatement(db, "INSERT INTO anonymous_address (device, address) VALUES (?, ?)")
            insert.bind(serial.rawValue)
            insert.bind(address.storedOwner)
            try insert.run()
        }
        if let registration = new.registration {
            var insert = try BoundStatement(
                db, "INSERT INTO registration (device, app, secret_hash) VALUES (?, ?, ?)")
            insert.bind(serial.rawValue)
            insert.bind(device.app.rawValue)
            insert.bind(registration.bytes)
            try insert.run()
        }
        return serial
    }

    private static let insertDevice = """
        INSERT INTO device (serial, id, app, credential_hash, created_at, is_anonymous, seen_at, access_key, seen_served)
        VALUES (\(SQLDialect.nextSerialOfFirstShard(in: "device")) + ?, ?, ?, ?, ?, ?, ?, ?, (SELECT seconds FROM served))
        RETURNING serial
        """

    func renewCredential(of device: Device) throws {
        var update = try BoundStatement(db, "UPDATE device SET credential_hash = ? WHERE serial = ?")
        update.bind(device.credentialHash.bytes)
        update.bind(device.serial.rawValue)
        try update.run()
    }

    /// Writes the end of a device.
    func writeEnd(_ changes: RegistrationChanges) throws {
        if let device = changes.removed { try db.run("DELETE FROM device WHERE serial = ?", [device.rawValue]) }
        if let released = changes.released { try write(released) }
        try addDevices(changes.devices, to: changes.app)
    }

    func addDevices(_ count: Int, to app: AppSerial) throws {
        guard count != 0 else { return }
        try CounterTable(db).add([(.devices, count)], to: app)
    }

    // MARK: Registrations

    func write(_ profile: RegistrationChanges.Profile, in app: AppSerial) throws {
        var insert = try BoundStatement(db, Self.putProfile)
        let (registration, said) = (profile.registration, profile.registration.profile)
        insert.bind(registration.device.rawValue)
        insert.bind(said.address?.platform.rawValue)
        insert.bind(said.address?.token.bytes)
        insert.bind(said.address?.environment.rawValue)
        insert.bind(registration.addressRevision)
        insert.bind(registration.confirmedAt.milliseconds)
        insert.bind(registration.tokenTransfers)
        insert.bind(registration.takenOn)
        insert.bind(registration.status.reason?.rawValue)
        insert.bind(registration.statusAt.milliseconds)
        insert.bind(said.appVersion)
        insert.bind(said.locale)
        insert.bind(said.timeZone)
        insert.bind(said.parameters == .none ? nil : said.parameters.json)
        insert.bind(registration.user?.text)
        insert.bind(registration.reportedEnvironment?.rawValue)
        insert.bind(said.revision)
        insert.bind(said.formerService?.platform.rawValue)
        insert.bind(said.formerService?.environment.rawValue)
        insert.bind(app.rawValue)
        insert.bind(profile.isStatusChanged ? 0 : 1)
        try insert.run()
    }

    /// A new row with `is_told` of false begins a status. A row with `is_told` of true does not change the status.
    private static let putProfile = """
        INSERT INTO device_profile (device, platform, token, environment, revision, confirmed_at, takings, taken_on, reason,
            status_at, app_version, locale, time_zone, parameters, "user", said_environment, said_revision, former_platform,
            former_environment, app, is_told, status_served)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, (SELECT seconds FROM served))
        ON CONFLICT (device) DO UPDATE SET platform = excluded.platform, token = excluded.token,
            environment = excluded.environment, revision = excluded.revision, confirmed_at = excluded.confirmed_at,
            takings = excluded.takings, taken_on = excluded.taken_on, reason = excluded.reason,
            status_at = excluded.status_at, app_version = excluded.app_version, locale = excluded.locale,
            time_zone = excluded.time_zone, parameters = excluded.parameters, "user" = excluded.user,
            said_environment = excluded.said_environment, said_revision = excluded.said_revision,
            former_platform = excluded.former_platform, former_environment = excluded.former_environment,
            is_told = CASE WHEN excluded.is_told THEN device_profile.is_told ELSE FALSE END,
            status_served =
                CASE WHEN excluded.is_told THEN device_profile.status_served ELSE excluded.status_served END
        """

    func write(_ released: RegistrationChanges.ReleasedToken) throws {
        var insert = try BoundStatement(
            db,
            """
            INSERT INTO released_token (app, platform, token, takings, taken_on) VALUES (?, ?, ?, ?, ?)
            ON CONFLICT (app, platform, token) DO UPDATE SET takings = excluded.takings, taken_on = excluded.taken_on
            """)
        insert.bind(released.app.rawValue)
        insert.bind(released.token.platform.rawValue)
        insert.bind(released.token.token.bytes)
        insert.bind(released.tokenTransfers.count)
        insert.bind(released.tokenTransfers.day)
        try insert.run()
        try db.run(
            """
            DELETE FROM released_token WHERE (app, platform, token) IN
                (SELECT app, platform, token FROM released_token WHERE taken_on < ? LIMIT ?)
            """, [released.tokenTransfers.day, released.forgotten])
    }

    // MARK: Channels

    /// Inserts a channel. Returns its serial number.
    func insert(_ channel: PushChannel, isOfUser: Bool) throws -> ChannelSerial {
        var insert = try BoundStatement(
            db,
            """
            INSERT INTO channel (device, id, name, vapid_key, created_at, wake, of_user) VALUES (?, ?, ?, ?, ?, ?, ?)
            RETURNING serial
            """)
        insert.bind(channel.device.rawValue)
        insert.bind(channel.id.value)
        insert.bind(channel.name)
        insert.bind(channel.vapidKey)
        insert.bind(channel.createdAt.milliseconds)
        insert.bind(channel.wake.rawValue)
        insert.bind(isOfUser ? 1 : 0)
        return ChannelSerial(try insert.inserted())
    }

    func writeWake(of channel: PushChannel) throws {
        try db.run("UPDATE channel SET wake = ? WHERE serial = ?", [channel.wake.rawValue, channel.serial.rawValue])
    }
}

extension NetworkAddress {
    /// The stored form of the owner of an address: 4 bytes of IPv4, or the first 8 bytes of IPv6.
    var storedOwner: [UInt8] { Array(owner.bytes.prefix(8)) }
}
