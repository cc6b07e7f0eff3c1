import CarillonBasics
package import CarillonWire

/// Registers, authenticates and removes devices.
package struct DeviceRegistrar: Sendable {
    let devices: any DeviceStore
    let home: any LocalHome
    private let others: OtherHomes
    let removals: RemovalNotifier
    private let rateLimits: RateLimits
    private let notifier: StatusNotifier
    private let formerChannels: FormerChannels
    private let subscriptions: any DeviceListener
    private let approvalHooks: any RegistrationApproval
    package let seen: SeenDevices
    private let time: TimeSource
    private let random: RandomSource

    package init(
        devices: any DeviceStore, home: any LocalHome, others: OtherHomes = .none, directory: ChannelDirectory,
        notifier: StatusNotifier, formerChannels: FormerChannels, subscriptions: any DeviceListener, rateLimits: RateLimits,
        approvalHooks: any RegistrationApproval, time: TimeSource, random: RandomSource
    ) {
        self.devices = devices
        self.home = home
        self.others = others
        removals = RemovalNotifier(home: home, others: others, directory: directory)
        self.notifier = notifier
        self.formerChannels = formerChannels
        self.subscriptions = subscriptions
        self.rateLimits = rateLimits
        self.approvalHooks = approvalHooks
        seen = SeenDevices(time: time)
        self.time = time
        self.random = random
    }

    /// Registers a device, or finds the device that the same registration made before.
    ///
    /// A device that did not receive the answer repeats the request with the secret that it chose for its registration. It gets
    /// the same credential, because answers can arrive late and in any order. The server stores only the hash of that secret, and
    /// no key of the app replaces the secret. A credential of an earlier version of the server is replaced. After
    /// `PUT /v1/device/credential`, the secret makes another device.
    ///
    /// - Parameters:
    ///   - user: Returns the user that the device reports. Called after the rate limit was checked.
    ///   - key: The API key of the request.
    ///   - address: The device's network address, to which the rate limit applies; nil for no rate limit.
    ///   - shard: The shard of the request's pass; nil if no move waits for the request.
    /// - Throws: ``HomeFault/moved(to:)`` if the device is in another shard, or another home has the device;
    ///   ``HomeFault/unreachable`` if this home has no shard now. In both cases nothing was done.
    package func register(
        app: AppID, registration: String? = nil, reporting profile: DeviceProfile? = nil,
        of user: () async throws -> UserClaim? = { nil }, with key: KeyID? = nil, from address: NetworkAddress? = nil,
        in shard: Shard? = nil
    ) async throws -> (device: Device, credential: DeviceCredential) {
        try await checkHas(registration, of: app, in: shard)
        try rateLimits.takeDevice(from: address)
        let hash = try registration.map(Self.hash(ofRegistration:))
        let user = try await user()
        try await approvalHooks.ask(.registration(profile, user, isAnonymous: false), of: app, serial: nil)
        let proposed = try newID(in: hash.map { Shard(of: app, registration: $0) })
        let secret: DeviceCredential.Secret =
            registration.map { DeviceCredential.Secret.ofRegistration($0) }
            ?? .random(random.bytes(DeviceCredential.secretByteCount))
        let new = NewDevice(proposed, app: app, registration: hash, key: key, profile: profile, user: user)
        let inserted = try await devices.insertDevice(new, at: time.now(), credential: .made(of: secret))
        switch inserted {
        case .stored(let device, let changesStatus):
            // A new device has the proposed identifier, and no subscriptions yet.
            if profile != nil, device.id != proposed { try await subscriptions.deviceChanged(device.serial) }
            // The device that lost its token can belong to another home.
            if changesStatus { await notifier.notifyIfPossible(alsoElsewhere: true) }
            return (device, DeviceCredential(device: device.id, of: secret))
        case .handedOver(let device, let ended, let changesStatus):
            try await dropFormerUser(of: device.serial, ended)
            if profile != nil { try await subscriptions.deviceChanged(device.serial) }
            // The device that lost its token can belong to another home.
            if changesStatus { await notifier.notifyIfPossible(alsoElsewhere: true) }
            return (device, DeviceCredential(device: device.id, of: secret))
        case .refused(let refusal): throw refusal
        case .addressFull: throw rateLimits.refuseAnonymousDevice(from: address)
        case .notAllowed:
            guard key == nil else {
                throw Refusal(.credentialInvalid, "The client key was revoked; register the device with another client key.")
            }
            throw unknownApp(app)
        }
    }

    /// With several homes, reads the known device of a registration first: its shard can differ from the shard of a new device.
    private func checkHas(_ registration: String?, of app: AppID, in shard: Shard?) async throws {
        guard !others.isNone, let hash = try registration.map(Self.hash(ofRegistration:)) else { return }
        let known = try await devices.device(registeredBy: hash, in: app)
        let place = known.map { Shard(of: $0.serial) } ?? Shard(of: app, registration: hash)
        try home.checkHas(place)
        guard shard == nil || shard == place else { throw HomeFault.moved(to: place) }
    }

    /// Makes the id of a new device in a shard of this home.
    ///
    /// - Parameter shard: Nil for a random one.
    /// - Throws: ``HomeFault/unreachable`` if this home has no shard now.
    private func newID(in shard: Shard?) throws(HomeFault) -> DeviceID {
        if let shard { return DeviceID(random: random, in: shard) }
        let shards = home.shards
        let found = Shard.find(
            where: { shards.contains(Shard(of: $0)) }, making: { DeviceID(random: random, in: nil) })
        guard let found else { throw .unreachable }
        return found
    }

    private static func hash(ofRegistration secret: String) throws -> SecretHash {
        guard (32...128).contains(secret.utf8.count), Base64URL.decodeLeniently(secret) != nil else {
            throw Refusal(
                .fieldInvalid, "\"registration\" must be 32 to 128 random characters of base64url.")
        }
        return SecretHash(of: secret.utf8)
    }

    /// Stores a device that connected without registration, under the user agent identifier that the server sent after its
    /// `hello`.
    ///
    /// - Throws: ``HomeFault/moved(to:)`` if another home has the device. Nothing was done then.
    package func registerAnonymous(
        _ userAgent: UserAgentID, app: AppID, from address: NetworkAddress?
    ) async throws -> Device {
        let hash = userAgent.hash
        try home.checkHas(Shard(ofUserAgent: hash))
        try rateLimits.takeDevice(from: address)
        let quota = try rateLimits.anonymousQuota(of: address)
        try await approvalHooks.ask(.registration(nil, nil, isAnonymous: true), of: app, serial: nil)
        let proposed = DeviceID(random: random, in: Shard(ofUserAgent: hash))
        let new = NewDevice(proposed, app: app, isAnonymous: true, quota: quota)
        let inserted = try await devices.insertDevice(new, at: time.now(), credential: .fixed(hash))
        switch inserted {
        case .stored(let device, _), .handedOver(let device, _, _): return device
        case .refused(let refusal): throw refusal
        case .addressFull: throw rateLimits.refuseAnonymousDevice(from: address)
        case .notAllowed: throw unknownApp(app)
        }
    }

    // MARK: Reports of devices

    package func registration(of device: Device) async throws -> DeviceRegistration {
        guard let registration = try await devices.registration(of: device.serial) else { throw Self.deviceGone }
        return registration
    }

    /// Changes the profile of a device to the one that the device reports.
    ///
    /// - Parameters:
    ///   - address: The device's network address, to which the rate limit applies; nil for no rate limit.
    ///   - confirms: Whether the device reports its push token now, and not only other members of its profile.
    ///   - user: Returns the user that the device reports. Called after the rate limit was checked.
    ///   - change: Makes the new profile from the present one.
    package func update(
        _ device: Device, from address: NetworkAddress?, confirms: Bool,
        of user: () async throws -> UserClaim? = { nil },
        _ change: (DeviceProfile) throws(Refusal) -> DeviceProfile
    ) async throws -> DeviceRegistration {
        try rateLimits.takeRegistration(of: device.serial, from: address)
        let user = try await user()
        try await approveToken(of: device, user, change)
        return try await changeRegistration(of: device) { current throws(Refusal) in
            .reports(try change(current.profile), confirms: confirms, user: user)
        }
    }

    /// Requests approval of a token that the device did not have. A concurrent request is approved separately.
    private func approveToken(
        of device: Device, _ user: UserClaim?, _ change: (DeviceProfile) throws(Refusal) -> DeviceProfile
    ) async throws {
        guard try await approvalHooks.hasHook(device.app) else { return }
        let current = try await registration(of: device)
        let profile = try change(current.profile)
        guard profile.address != nil, !profile.hasToken(of: current.profile) else { return }
        let whose = if let user { user.user } else { current.user }
        try await approvalHooks.ask(.token(device.id, profile, whose), of: device.appID, serial: device.app)
    }

    /// Stops pushes to a device through its vendor, until an operator resumes the device.
    package func suspend(_ device: Device) async throws -> DeviceRegistration {
        let now = time.now()
        return try await changeRegistration(of: device) { current in
            RegistrationRules.suspend(current, because: .byOperator, at: now).map { .becomes($0) } ?? .nothing
        }
    }

    package func resume(_ device: Device) async throws -> DeviceRegistration {
        let now = time.now()
        return try await changeRegistration(of: device) { current in
            RegistrationRules.resume(current, at: now).map { .becomes($0) } ?? .nothing
        }
    }

    private func changeRegistration(
        of device: Device, _ change: RegistrationChange
    ) async throws -> DeviceRegistration {
        guard let result = try await devices.changeRegistration(of: device.serial, at: time.now(), change) else {
            throw Self.deviceGone
        }
        let decision = try result.get()
        if decision.changesUser { try await dropFormerUser(of: device.serial, decision.ended) }
        if decision.isStatusChanged || decision.displaced != nil {
            try await subscriptions.deviceChanged(device.serial)
            let isElsewhere = decision.displaced.map { !home.has($0.device) } ?? false
            await notifier.notifyIfPossible(alsoElsewhere: isElsewhere)
        }
        return decision.registration
    }

    /// Withdraws envelopes and channels of the former user, whose data has ended in the store, and notifies the subscriptions.
    private func dropFormerUser(of device: DeviceSerial, _ ended: [Int64]) async throws {
        await formerChannels.withdraw(ended, from: device)
        try await formerChannels.close(of: device)
        try await subscriptions.userChanged(of: device)
    }

    /// Resets the badge. The next alert that counts has the badge 1.
    package func resetBadge(of device: Device, from address: NetworkAddress?) async throws {
        try rateLimits.takeRegistration(of: device.serial, from: address)
        guard try await devices.resetBadge(of: device.serial) else { throw Self.deviceGone }
    }

    private static let deviceGone = Refusal(.deviceUnknown, "The device was deleted.")

    /// Returns the device of a credential, and notes that the device was seen.
    ///
    /// - Parameter shard: The shard of the request's pass; nil if no move waits for the request.
    /// - Throws: ``HomeFault/moved(to:)`` if the device is in another shard, or another home has the device. Then the device is
    ///   not noted.
    package func authenticate(bearer: String?, in shard: Shard? = nil) async throws -> Device {
        let device = try await device(bearer: bearer)
        try home.checkHas(device.serial, in: shard)
        sawRegistered(device)
        return device
    }

    /// Returns the device of a credential, which can be a device of any home. A device of this home is noted as seen.
    package func authenticateOfAnyHome(bearer: String?) async throws -> Device {
        let device = try await device(bearer: bearer)
        if home.has(device.serial) { sawRegistered(device) }
        return device
    }

    private func device(bearer: String?) async throws -> Device {
        let credential = try Self.credential(bearer)
        guard let device = try await devices.device(credential.device), device.credentialHash.matches(credential.hash)
        else { throw Self.credentialInvalid }
        return device
    }

    /// Replaces a device's credential by one with a secret that the device chose. The former credential becomes invalid, and
    /// sessions with it are disconnected. From then on, the secret of the registration makes another device. An installation that
    /// was restored from a backup on other hardware uses this to separate itself from the original installation.
    ///
    /// - Parameter secret: In base64url.
    package func renewCredential(of device: Device, secret: String, from address: NetworkAddress?) async throws {
        try rateLimits.takeRegistration(of: device.serial, from: address)
        guard secret.utf8.count == 32, let bytes = Base64URL.decode(secret) else {
            throw Refusal(.fieldInvalid, "\"secret\" must be 32 random characters of base64url.")
        }
        let credential = DeviceCredential(device: device.id, secret: bytes)
        guard try await devices.renewCredential(of: device.serial, to: credential.hash) else { throw Self.deviceGone }
        try await removals.notify(RemovedDevices(devices: [device.serial]))
    }

    package static func credential(_ text: String?) throws(Refusal) -> DeviceCredential {
        guard let text else {
            throw Refusal(.credentialMissing, "Send the device credential as \"Authorization: Bearer …\".")
        }
        guard let credential = DeviceCredential(parsing: text) else { throw credentialInvalid }
        return credential
    }

    /// Also the error for a device that was deleted while its request waited.
    package static let credentialInvalid = Refusal(
        .credentialInvalid, "The device credential is not valid; register the device again.")

    /// Returns the anonymous device of a user agent identifier, or nil if it is not stored.
    ///
    /// - Throws: ``HomeFault/moved(to:)`` if another home has the device.
    package func device(of userAgent: UserAgentID) async throws -> Device? {
        let device = try await devices.device(withCredential: userAgent.hash)
        if let device { try home.checkHas(device.serial) }
        return device
    }

    /// Returns nil if the device was deleted.
    package func find(_ serial: DeviceSerial) async throws -> Device? { try await devices.device(serial) }

    /// - Parameter isVisible: Whether a device is visible to the caller. Any other device is reported as unknown.
    package func find(
        _ id: DeviceID, where isVisible: (Device) async throws -> Bool = { _ in true }
    ) async throws -> Device {
        guard let device = try await devices.device(id), try await isVisible(device) else {
            throw Refusal(.deviceUnknown, "There is no device \"\(id)\".")
        }
        return device
    }

    /// - Parameter turn: Runs each read when its turn comes.
    package func list(
        app: AppID, _ filter: DeviceFilter = .all, after: DeviceID?, limit: Int,
        inTurn turn: (_ read: @Sendable () async throws -> DevicePart) async throws -> DevicePart = { try await $0() }
    ) async throws -> [(device: Device, registration: DeviceRegistration)] {
        var place: DeviceSerial?
        if let after { place = try await devices.device(after)?.serial }
        var found: [(device: Device, registration: DeviceRegistration)] = []
        while true {
            try Task.checkCancellation()
            let (start, left) = (place, limit - found.count)
            let part = try await turn { [devices] in
                try await devices.devices(app: app, filter, after: start, limit: left)
            }
            found += part.devices
            guard found.count < limit, let end = part.end else { return found }
            place = end
        }
    }

    /// Notes that a registered device proved its identity. The store marks the device at most once a day.
    package func sawRegistered(_ device: Device) { seen.sawRegistered(device) }

    /// Writes to the store which devices were seen. Devices that cannot be written are written the next time.
    ///
    /// - Parameter shard: The shard of the devices; nil for all.
    package func writeSeen(in shard: Shard? = nil) async throws {
        let (anonymous, registered) = seen.take(in: shard)
        var unwritten = [(anonymous[...], true), (registered[...], false)]
        var came = seen.takeConnected(in: shard)[...]
        defer {
            for (devices, areAnonymous) in unwritten {
                for device in devices { seen.saw(device, isAnonymous: areAnonymous) }
            }
            seen.putBack(cameAgain: came)
        }
        for place in unwritten.indices {
            while !unwritten[place].0.isEmpty {
                let some = Array(unwritten[place].0.prefix(Self.seenAtOnce))
                try await devices.markSeen(some, areAnonymous: unwritten[place].1, at: time.now())
                unwritten[place].0 = unwritten[place].0.dropFirst(some.count)
            }
        }
        while !came.isEmpty {
            try await devices.devicesCame(Array(came.prefix(Self.seenAtOnce)), at: time.now())
            came = came.dropFirst(Self.seenAtOnce)
        }
    }

    private static let seenAtOnce = 500

    /// Removes the device, its channels and its inbox, and ends its session.
    package func delete(_ device: Device) async throws {
        guard let removed = try await devices.deleteDevice(device.serial, at: time.now()) else {
            throw Refusal(.deviceUnknown, "The device was already deleted.")
        }
        try await removals.notify(removed)
    }

    /// Removes all devices that registered with a key, and ends their sessions. The key must be revoked, because devices that
    /// register with the key during the call can stay otherwise.
    ///
    /// - Parameter count: The number of the app's devices that are compared with the key in one read.
    /// - Throws: ``StoreFault``, also if another home did not answer, or if devices move to another home each time. Devices of
    ///   that home can remain. The caller can safely repeat the call.
    package func deleteAll(registeredWith key: AccessKey, comparing count: Int = 1000) async throws {
        guard let app = key.app else { return }
        for _ in 0..<Self.deletionAttempts {
            if try await deleteDevices(registeredWith: key.id, of: app, comparing: count) { return }
            try await others.inform(of: KeyDevicesEnded(key: key.id, app: app))
        }
        throw StoreFault(.outcomeUnknown, "devices of the API key are moving to other homes")
    }

    private static let deletionAttempts = 5

    /// Removes the devices of this home that registered with a key.
    ///
    /// - Returns: Whether every device that was found belongs to this home and does not move to another home.
    @discardableResult
    package func deleteDevices(
        registeredWith key: KeyID, of app: AppID, comparing count: Int = 1000
    ) async throws -> Bool {
        var (place, areElsewhere): (DeviceSerial?, Bool) = (nil, false)
        while true {
            try Task.checkCancellation()
            let part = try await devices.devices(registeredWith: key, of: app, after: place, limit: count)
            for device in part.serials {
                do {
                    // Without this, the device could move between its deletion and the end of its session.
                    try await home.inside(of: device) {
                        if let removed = try await devices.deleteDevice(device, at: time.now()) { removals.note(removed) }
                    }
                } catch let fault as StoreFault where fault.isOfHome {
                    areElsewhere = true
                }
            }
            guard let end = part.end else { return !areElsewhere }
            place = end
        }
    }

    private func unknownApp(_ app: AppID) -> Refusal {
        Refusal(.appUnknown, "There is no app \"\(app)\"; create it first.")
    }
}
