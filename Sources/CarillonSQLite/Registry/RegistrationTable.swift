import CarillonBasics
import CarillonCore
import CarillonWire
import GRDB

/// What devices say of themselves, inside a transaction.
struct RegistrationTable {
    private let db: Database
    private let memory: InboxMemory

    init(_ db: Database, memory: InboxMemory) {
        self.db = db
        self.memory = memory
    }

    /// Nil of a device that said nothing yet.
    func registration(of device: DeviceSerial) throws -> DeviceRegistration? {
        var select = try BoundStatement(db, "SELECT \(Self.columns) FROM device_profile WHERE device = ?")
        select.bind(device.rawValue)
        return try select.first(DeviceRegistration.init)
    }

    /// The names of what a device said last.
    func saidRevisions(of device: DeviceSerial) throws -> SaidRevisions {
        var select = try BoundStatement(
            db,
            """
            SELECT (SELECT said_revision FROM device_profile WHERE device = ?1),
                (SELECT revision FROM service_provider WHERE device = ?1)
            """)
        select.bind(device.rawValue)
        return try select.first { SaidRevisions(device: $0.text(0), services: $0.text(1)) } ?? .none
    }

    /// The device of an app that has a token.
    func holder(of address: DeviceProfile.Address, in app: AppSerial) throws -> DeviceRegistration? {
        var select = try BoundStatement(
            db,
            """
            SELECT \(Self.columns) FROM device_profile
            WHERE app = ? AND platform = ? AND token = ? AND token IS NOT NULL
            """)
        select.bind(app.rawValue)
        select.bind(address.platform.rawValue)
        select.bind(address.token.bytes)
        return try select.first(DeviceRegistration.init)
    }

    /// How often a token was taken that nobody has now.
    private func released(
        _ address: DeviceProfile.Address, in app: AppSerial
    ) throws -> RegistrationRules.Takings? {
        var select = try BoundStatement(
            db, "SELECT takings, taken_on FROM released_token WHERE app = ? AND platform = ? AND token = ?")
        select.bind(app.rawValue)
        select.bind(address.platform.rawValue)
        select.bind(address.token.bytes)
        return try select.first { .init(count: Int($0.integer(0)), day: $0.integer(1)) }
    }

    func decide(
        _ profile: DeviceProfile, confirms: Bool, of user: UserWord?, over current: DeviceRegistration, app: AppSerial,
        at now: Timestamp
    ) throws -> Result<RegistrationRules.Decision, Refusal> {
        let isNew = profile.address != current.profile.address
        let rival = try isNew ? profile.address.flatMap { try holder(of: $0, in: app) } : nil
        let takings = try isNew && rival == nil ? profile.address.flatMap { try released($0, in: app) } : nil
        do throws(Refusal) {
            return .success(
                try RegistrationRules.register(
                    profile, confirms: confirms, over: current, heldBy: rival, released: takings, user: user, at: now))
        } catch {
            return .failure(error)
        }
    }

    /// Stores what was decided: first who loses a token, then who has it.
    ///
    /// - Parameters:
    ///   - isNew: Nothing waits for the device yet.
    ///   - inboxes: Ends what was for the former user.
    /// - Returns: The positions of envelopes that ended with the former user.
    @discardableResult
    func store(
        _ decision: RegistrationRules.Decision, app: AppSerial, isNew: Bool = false, _ inboxes: InboxTransaction,
        at now: Timestamp
    ) throws -> [Int64] {
        if let displaced = decision.displaced { try store(displaced, app: app, at: now) }
        guard decision.isChanged else { return [] }
        try write(decision.registration, app: app)
        guard !isNew else { return [] }
        var ended: [Int64] = []
        if decision.changesUser {
            ended = try inboxes.changeUser(of: decision.registration, in: app, hadUser: decision.losesUser, at: now)
        }
        try WakeTable(db, memory: memory).changed(
            decision.registration, app: app, hasOtherAddress: decision.isAddressChanged, at: now)
        return ended
    }

    func store(_ registration: DeviceRegistration, app: AppSerial, at now: Timestamp) throws {
        try write(registration, app: app)
        try WakeTable(db, memory: memory).changed(registration, app: app, at: now)
    }

    private func write(_ registration: DeviceRegistration, app: AppSerial) throws {
        if registration.status != .registered, try self.registration(of: registration.device) == nil {
            // Subscriptions follow a change of the status, not a first row.
            var before = registration
            before.status = .registered
            try write(before, app: app)
        }
        var insert = try BoundStatement(
            db,
            """
            INSERT INTO device_profile (\(Self.columns), app, is_told, status_served)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, (SELECT seconds FROM served))
            ON CONFLICT (device) DO UPDATE SET platform = excluded.platform, token = excluded.token,
                environment = excluded.environment, revision = excluded.revision, confirmed_at = excluded.confirmed_at,
                takings = excluded.takings, taken_on = excluded.taken_on, reason = excluded.reason,
                status_at = excluded.status_at, app_version = excluded.app_version, locale = excluded.locale,
                time_zone = excluded.time_zone, parameters = excluded.parameters, user = excluded.user,
                said_environment = excluded.said_environment, said_revision = excluded.said_revision,
                former_platform = excluded.former_platform, former_environment = excluded.former_environment,
                is_told = iif(reason IS excluded.reason, is_told, 0),
                status_served = iif(status_at = excluded.status_at, status_served, excluded.status_served)
            """)
        let profile = registration.profile
        insert.bind(registration.device.rawValue)
        insert.bind(profile.address?.platform.rawValue)
        insert.bind(profile.address?.token.bytes)
        insert.bind(profile.address?.environment.rawValue)
        insert.bind(registration.addressRevision)
        insert.bind(registration.confirmedAt.milliseconds)
        insert.bind(registration.takings)
        insert.bind(registration.takenOn)
        insert.bind(registration.status.reason?.rawValue)
        insert.bind(registration.statusAt.milliseconds)
        insert.bind(profile.appVersion)
        insert.bind(profile.locale)
        insert.bind(profile.timeZone)
        insert.bind(profile.parameters == .none ? nil : profile.parameters.json)
        insert.bind(registration.user?.text)
        insert.bind(registration.saidEnvironment?.rawValue)
        insert.bind(profile.revision)
        insert.bind(profile.formerService?.platform.rawValue)
        insert.bind(profile.formerService?.environment.rawValue)
        insert.bind(app.rawValue)
        insert.bind(registration.status == .registered ? 1 : 0)
        try insert.run()
    }

    private static let columns = """
        device, platform, token, environment, revision, confirmed_at, takings, taken_on, reason, status_at, app_version, locale,
        time_zone, parameters, user, said_environment, said_revision, former_platform, former_environment
        """
}

extension DeviceRegistration {
    /// - Parameter columns: As ``RegistrationTable`` asks for them.
    fileprivate init(_ columns: StatementColumns) throws {
        self.init(device: DeviceSerial(columns.integer(0)), at: columns.timestamp(9))
        let unreadable = StoreFault(.unavailable, "a device's registration cannot be read")
        if let bytes = columns.bytes(2) {
            guard let platform = columns.text(1).flatMap(PushPlatform.init), let token = PushToken(stored: bytes),
                let environment = columns.text(3).flatMap(PushEnvironment.init)
            else { throw unreadable }
            profile.address = .init(platform: platform, token: token, environment: environment)
        }
        if let platform = columns.text(17), let environment = columns.text(18) {
            guard let platform = PushPlatform(rawValue: platform), let environment = PushEnvironment(rawValue: environment)
            else { throw unreadable }
            profile.formerService = .init(platform: platform, environment: environment)
        }
        addressRevision = columns.integer(4)
        confirmedAt = columns.timestamp(5)
        takings = Int(columns.integer(6))
        takenOn = columns.integer(7)
        if let reason = columns.text(8) {
            guard let reason = SuspensionReason(rawValue: reason) else { throw unreadable }
            status = .suspended(reason)
        }
        profile.appVersion = columns.text(10)
        profile.locale = columns.text(11)
        profile.timeZone = columns.text(12)
        if let parameters = columns.bytes(13) {
            guard let value = JSONValue(parsing: parameters) else { throw unreadable }
            profile.parameters = try DeviceParameters(value)
        }
        user = columns.text(14).flatMap(UserID.init)
        saidEnvironment = columns.text(15).flatMap(PushEnvironment.init)
        profile.revision = columns.text(16)
    }
}
