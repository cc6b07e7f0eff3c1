import CarillonCore
import CarillonWire

/// Rows as a store has them, changed according to ``RegistrationRules``.
struct TableRegistrations {
    struct Token: Hashable {
        var app: AppSerial
        var bytes: [UInt8]
    }

    struct Channel {
        var channel: PushChannel
        var device: DeviceSerial
    }

    private(set) var devices: [DeviceSerial: RegistrationChanges.NewRow] = [:]
    private(set) var profiles: [DeviceSerial: DeviceRegistration] = [:]
    private(set) var released: [Token: RegistrationRules.TokenTransfers] = [:]
    private(set) var counts: [AppSerial: Int] = [:]
    private(set) var channels: [Channel] = []
    /// Changes of the status of each device.
    private(set) var news: [DeviceSerial: Int] = [:]
    private var lastSerial: Int64 = 0

    mutating func commit(_ operation: RegistrationOperation, at now: Timestamp) -> String {
        switch operation {
        case .register(let request): return register(request, at: now)
        case .say(let serial, let token, let confirms, let user):
            return change(serial, at: now) { current in
                var profile = current.profile
                profile.address = token.map(RegistrationSample.address)
                return .reports(profile, confirms: confirms, user: user)
            }
        case .stop(let serial):
            return change(serial, at: now) { current in
                RegistrationRules.suspend(current, because: .byOperator, at: now).map { .becomes($0) } ?? .nothing
            }
        case .die(let serial):
            return change(serial, at: now) { current in
                RegistrationRules.suspend(current, because: .tokenDead, at: now).map { .becomes($0) } ?? .nothing
            }
        case .resume(let serial):
            return change(serial, at: now) { current in
                RegistrationRules.resume(current, at: now).map { .becomes($0) } ?? .nothing
            }
        case .remove(let serial, let cutoff): return remove(DeviceSerial(serial), cutoff)
        case .open(let serial, let number): return open(DeviceSerial(serial), number, at: now)
        }
    }

    // MARK: Calls

    private mutating func register(_ request: RegistrationOperation.Request, at now: Timestamp) -> String {
        let new = NewDevice(
            DeviceID(Bytes16(high: 1, low: UInt64(lastSerial))), app: RegistrationSample.appID(request.app),
            registration: request.secret.map { SecretHash(of: [$0]) }, isAnonymous: request.address != nil,
            quota: request.address.map { .init(address: .v4($0), limit: NaiveRegistrations.devicesPerAddress) },
            profile: request.token.map { RegistrationSample.profile($0) }, user: request.user)
        let app = AppSerial(request.app)
        let known = devices.values.first {
            $0.device.app == app && $0.registration != nil && $0.registration == new.registration
        }
        var facts = NewDeviceFacts(
            app: .init(serial: app, devices: counts[app, default: 0], isKeyInForce: false), known: known?.device)
        if new.profile != nil || new.user != nil { facts.stored = known.flatMap { profiles[$0.device.serial] } }
        if let address = new.profile?.address { facts.token = token(address, app) }
        while true {
            let insertion = RegistrationRules.insert(
                new, limit: NaiveRegistrations.devicesPerApp, at: now, knowing: facts,
                credential: RegistrationSample.credential)
            switch insertion {
            case .needsDevices(let quota):
                facts.devicesOfAddress = devices.values.count { $0.address == quota.address }
            case .refused(.addressFull): return "address full"
            case .refused(.refused(let refusal)): return refusal.code == .devicesTooMany ? "app full" : "contested"
            case .refused: return "not allowed"
            case .decided(let device, let changes):
                write(changes)
                let isHandedOver = changes.profiles.contains { $0.userChange != nil }
                return isHandedOver && device.serial != DeviceSerial(0) ? "handed over" : "stored"
            }
        }
    }

    private mutating func change(
        _ serial: Int64, at now: Timestamp, _ change: (DeviceRegistration) -> RegistrationRequest
    ) -> String {
        let serial = DeviceSerial(serial)
        guard let row = devices[serial] else { return "none" }
        var facts = RegistrationFacts(
            device: serial, app: row.device.app, createdAt: row.device.createdAt, stored: profiles[serial])
        let request = change(facts.current)
        let unchanged = RegistrationRules.unchanged(by: request, over: facts.current, at: now)
        while true {
            switch RegistrationRules.change(request, at: now, knowing: facts) {
            case .needsToken(let address, let app): facts.token = token(address, app)
            case .decided(.failure): return "contested"
            case .decided(.success(let ruling)):
                precondition(unchanged == nil || ruling.changes.isEmpty, "a report without changes changes rows")
                write(ruling.changes)
                if case .reports = request { return "said" }
                return ruling.changes.isEmpty ? "same" : "changed"
            }
        }
    }

    private mutating func remove(_ serial: DeviceSerial, _ cutoff: Timestamp?) -> String {
        guard let row = devices[serial] else { return "none" }
        let profile = profiles[serial]
        let facts = DeviceEndFacts(
            device: serial, app: row.device.app, devicesOfApp: counts[row.device.app, default: 0],
            seenAt: row.device.seenAt, seenServed: 0,
            token: profile?.profile.address.map { PlatformToken(platform: $0.platform, token: $0.token) },
            tokenTransfers: .init(count: profile?.tokenTransfers ?? 0, day: profile?.takenOn ?? 0))
        let changes = RegistrationRules.end(
            unlessSeenAfter: cutoff.map { RetentionCutoff(wall: $0, served: 0) }, knowing: facts)
        guard let changes else { return "none" }
        write(changes)
        return "removed"
    }

    private mutating func open(_ serial: DeviceSerial, _ number: UInt64, at now: Timestamp) -> String {
        let id = ChannelID(Bytes16(high: 5, low: number))
        let request = ChannelRequest(id, device: serial, name: nil, vapidKey: nil, wake: nil)
        let own = channels.filter { $0.device == serial }
        let facts = devices[serial].map { row in
            OpenChannelFacts(
                app: row.device.app, channel: own.first { $0.channel.id == id }?.channel, isOfFormerUser: false,
                channels: own.count, hasUser: false)
        }
        switch RegistrationRules.open(request, limit: NaiveRegistrations.channelsPerDevice, at: now, knowing: facts) {
        case .refused(.tooMany): return "full"
        case .refused: return "none"
        case .found, .rewoken: return "open"
        case .opened(let channel, _):
            channels.append(Channel(channel: channel, device: serial))
            return "opened"
        }
    }

    private func token(_ address: DeviceProfile.Address, _ app: AppSerial) -> TokenFacts {
        let holder = profiles.values.first { profile in
            profile.profile.address?.token == address.token && devices[profile.device]?.device.app == app
        }
        return TokenFacts(holder: holder, released: released[Token(app: app, bytes: address.token.bytes)])
    }

    // MARK: Rows

    private mutating func write(_ changes: RegistrationChanges) {
        var serial: DeviceSerial?
        if var new = changes.new {
            lastSerial += 1
            new.device.serial = DeviceSerial(lastSerial)
            serial = new.device.serial
            devices[new.device.serial] = new
        }
        for profile in changes.profiles {
            var registration = profile.registration
            if profile.isOfNewDevice, let serial { registration.device = serial }
            if let address = registration.profile.address {
                let others = profiles.values.filter { other in
                    other.profile.address == address && other.device != registration.device
                        && devices[other.device]?.device.app == changes.app
                }
                precondition(others.isEmpty, "a token is written while another device has it")
            }
            precondition(profile.isFirst == (profiles[registration.device] == nil), "a first row is not the first")
            profiles[registration.device] = registration
            if profile.isStatusChanged { news[registration.device, default: 0] += 1 }
        }
        if let token = changes.released {
            released[Token(app: token.app, bytes: token.token.token.bytes)] = token.tokenTransfers
            let old = released.filter { $0.value.day < token.tokenTransfers.day }.keys.prefix(token.forgotten)
            for key in old { released[key] = nil }
        }
        if let removed = changes.removed {
            devices[removed] = nil
            profiles[removed] = nil
            channels.removeAll { $0.device == removed }
        }
        counts[changes.app, default: 0] += changes.devices
    }
}
