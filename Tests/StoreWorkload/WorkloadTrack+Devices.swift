import CarillonCore
import CarillonWire

/// Devices, their channels and the watches of channels.
extension WorkloadTrack {
    func register(_ operation: WorkloadOperation) async throws -> String {
        // So few that a registration often finds its device, which has another credential then.
        let registration = SecretHash(of: [UInt8(number), UInt8(operation.slot)])
        let new = NewDevice(
            DeviceID(operation.id), app: app.id, registration: registration, profile: try profile(operation),
            user: try operation.other == 0 ? nil : .signedIn(user(operation)))
        let hash = SecretHash(of: operation.bytes)
        return text(try await store.insertDevice(new, at: now, credential: .fixed(hash)))
    }

    private func profile(_ operation: WorkloadOperation) throws -> DeviceProfile {
        var profile = DeviceProfile()
        profile.appVersion = "1.\(operation.value % 7)"
        guard operation.choice > 0 else { return profile }
        // Few enough that one device takes the token of another.
        let token = try PushToken(hexadecimal: "aa0\(number)0\(operation.value % 4)")
        profile.address = DeviceProfile.Address(platform: .apple, token: token, environment: .production)
        return profile
    }

    func renewCredential(_ operation: WorkloadOperation) async throws -> String {
        guard let device = try await device(operation.slot) else { return Self.nothing }
        return text(try await store.renewCredential(of: device.serial, to: SecretHash(of: operation.bytes)))
    }

    func changeProfile(_ operation: WorkloadOperation) async throws -> String {
        guard let device = try await device(operation.slot) else { return Self.nothing }
        let (profile, user) = (try profile(operation), try user(operation))
        let claim: UserClaim? = operation.other == 0 ? .signedOut : .signedIn(user)
        let changed = try await store.changeRegistration(of: device.serial, at: now) { _ in
            .reports(profile, confirms: true, user: claim)
        }
        switch changed {
        case .success?: return "changed"
        case .failure?: return "refused"
        case nil: return "gone"
        }
    }

    func deleteDevice(_ operation: WorkloadOperation) async throws -> String {
        guard let device = try await device(operation.slot) else { return Self.nothing }
        let removed = try await store.deleteDevice(device.serial, at: now)
        return "\(removed?.devices.count ?? 0) \(removed?.channels.count ?? 0)"
    }

    func openChannel(_ operation: WorkloadOperation) async throws -> String {
        guard let device = try await device(operation.slot) else { return Self.nothing }
        let modes: [WakeMode] = [.none, .background, .alert]
        let result = try await store.openChannel(
            channelID(operation), device: device.serial, name: "channel", vapidKey: nil,
            wake: modes[Int(operation.value % 3)], limit: 10, at: now)
        return text(result)
    }

    private func channelID(_ operation: WorkloadOperation) -> ChannelID {
        ChannelID(Bytes16(high: 7, low: UInt64(operation.choice)))
    }

    func closeChannel(_ operation: WorkloadOperation) async throws -> String {
        guard let device = try await device(operation.slot) else { return Self.nothing }
        return text(try await store.closeChannel(channelID(operation), device: device.serial, at: now))
    }

    // MARK: Watches and leased work

    func putWatch(_ operation: WorkloadOperation) async throws -> String {
        guard let device = try await device(operation.slot), let channel = try await channel(operation, of: device) else {
            return Self.nothing
        }
        let request = WatchRequest(
            channel: channel.serial,
            ping: Watch.Ping(
                address: try CallAddress("http://lane\(number).example/\(operation.choice)"), intervalSeconds: 60),
            firstDueAt: now, disconnectAddress: try CallAddress("https://lane\(number).example/gone"),
            sealed: Watch.Sealed(secret: operation.bytes, token: operation.bytes), callbackID: "msg_\(operation.number)",
            renewsSecret: operation.choice == 2)
        return text(try await store.putWatch(request, at: now))
    }

    func removeWatch(_ operation: WorkloadOperation) async throws -> String {
        guard let device = try await device(operation.slot), let channel = try await channel(operation, of: device) else {
            return Self.nothing
        }
        return text(try await store.removeWatch(of: channel.serial))
    }

    func dueWork() async throws -> [DueWork] {
        let due = try await store.dueWork(in: .all, at: now, besides: BusyPeerSets(), limit: 20)
        return due.filter { $0.app == app.serial }.sorted { $0.serial < $1.serial }
    }

    mutating func leaseWork() async throws -> String {
        let leased = try await store.leaseWork(dueWork(), at: now, until: now.adding(seconds: WorkLease.seconds))
        calls += leased.items.sorted { $0.lease.work < $1.lease.work }
        return "\(leased.items.count) \(leased.unreadable)"
    }

    mutating func endWork() async throws -> String {
        guard let call = calls.popLast() else { return Self.nothing }
        let end = WorkEnd(of: call, at: now, health: EndpointHealth(isOnTrial: false), peerRestsUntil: now)
        switch call.subject {
        case .callback(let callback):
            return text(try await store.record(.done, of: callback, end: end))
        case .ping(let watch):
            let record = PingRecord(
                end: end, watch: watch.serial, revision: watch.revision, machine: PingMachine(notified: nil),
                lastPing: Watch.LastPing(at: now, failure: nil, detail: nil), dueAt: now.adding(seconds: 60))
            return text(try await store.record(record))
        }
    }
}
