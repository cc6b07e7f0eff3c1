import CarillonCore
import CarillonWire
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

/// Changes by one of two homes that concern devices of both.
@Suite(.timeLimit(.minutes(5)))
struct TwoHomesRegistryTests {
    // MARK: Deletions

    @Test func `a deleted app is forgotten by both homes, and its sessions end`() async throws {
        let world = try await TwoHomes()
        let devices = try await world.devices()
        let connections = devices.map { world.connect($0) }
        var tokens: [String] = []
        for device in devices { tokens.append(try await world.channel(of: device).token) }
        for (domain, token) in zip(world.domains, tokens) {
            #expect(try domain.publisher.rememberedChannel(of: token) != nil)
        }
        try await world.domains[0].deleteApp(world.app.id)
        for (domain, token) in zip(world.domains, tokens) {
            #expect(try domain.publisher.rememberedChannel(of: token) == nil)
            await #expect(throws: Refusal.self) { try await domain.publisher.channel(of: token) }
        }
        for connection in connections { #expect(connection.ends == [.deviceGone]) }
    }

    @Test func `the deletion of an app fails if a home does not answer, and a sweep informs the home`() async throws {
        let world = try await TwoHomes()
        let devices = try await world.devices()
        let connections = devices.map { world.connect($0) }
        let (token, publisher) = (try await world.channel(of: devices[1]).token, world.domains[1].publisher)
        #expect(try publisher.rememberedChannel(of: token) != nil)
        world.links[1].cut()
        let fault = await #expect(throws: StoreFault.self) { try await world.domains[0].deleteApp(world.app.id) }
        #expect(fault?.kind == .outcomeUnknown)
        #expect(try await world.store.app(world.app.id) == nil)
        #expect(connections.map(\.ends.count) == [1, 0], "the first rows are removed")
        await #expect(throws: StoreFault.self) { try await world.domains[0].deletions.notifyAgain() }
        world.links[1].mend()
        let sweeping = Task { try await Sweepers(of: world.domains[0], store: world.store).run() }
        try await eventually { connections.allSatisfy { $0.ends.contains(.deviceGone) } }
        sweeping.cancel()
        _ = await sweeping.result
        #expect(try publisher.rememberedChannel(of: token) == nil)
        let asked = (world.links[1].count(of: AppDeleted.self), world.links[1].count(of: DevicesRemoved.self))
        while try await !world.domains[0].deletions.proceed() {}
        try await world.domains[0].deletions.notifyAgain()
        #expect(world.links[1].count(of: AppDeleted.self) == asked.0, "the home was informed")
        #expect(world.links[1].count(of: DevicesRemoved.self) == asked.1)
        #expect(try await stores.count(.devices, in: world.store) == 0)
    }

    @Test func `the devices of a key are deleted by their homes`() async throws {
        let world = try await TwoHomes()
        let key = try await world.domains[0].keys.createKey(role: .client, app: world.app.id, name: nil).key
        let devices = try await world.devices(with: key.id)
        let other = try await world.device(at: 1)
        let connections = (devices + [other]).map { world.connect($0) }
        world.links[1].cut()
        let revoked = try await world.domains[0].keys.ensureRevoked(key.id)
        await #expect(throws: StoreFault.self) { try await world.domains[0].devices.deleteAll(registeredWith: revoked) }
        #expect(connections.map(\.ends.count) == [1, 0, 0])
        world.links[1].mend()
        try await world.domains[0].devices.deleteAll(registeredWith: revoked)
        for device in devices { #expect(try await world.store.device(device.serial) == nil) }
        #expect(try await world.store.device(other.serial) != nil)
        #expect(connections.map(\.ends) == [[.deviceGone], [.deviceGone], []])
    }

    @Test func `the devices of a key are not reported as deleted while one of them moves`() async throws {
        let world = try await TwoHomes()
        let key = try await world.domains[0].keys.createKey(role: .client, app: world.app.id, name: nil).key
        let device = try await world.device(at: 1, with: key.id)
        let revoked = try await world.domains[0].keys.ensureRevoked(key.id)
        let (gate, shard) = (try #require(world.domains[1].runtime.gate), Shard(of: device.serial))
        #expect(await gate.close(shard, atMost: .seconds(10)))
        gate.remove(shard)
        await #expect(throws: StoreFault.self) { try await world.domains[0].devices.deleteAll(registeredWith: revoked) }
        gate.take(shard)
        try await world.domains[0].devices.deleteAll(registeredWith: revoked)
        #expect(try await world.store.device(device.serial) == nil)
    }

    // MARK: Registrations

    @Test func `a device that loses its token to a device of another home is notified at once`() async throws {
        let world = try await TwoHomes()
        let devices = try await world.devices()
        try await world.sayToken("aa01", by: devices[0])
        #expect(try await world.waiting(for: devices[0]).isEmpty)
        try await world.sayToken("aa01", by: devices[1])
        let first = devices[0]
        try await eventually { try await world.waiting(for: first).map(\.kind.number) == [.deviceStatus] }
        #expect(try await world.waiting(for: devices[1]).isEmpty)
    }

    @Test func `a device that loses its token to a new device is notified at once`() async throws {
        let world = try await TwoHomes()
        let holder = try await world.device(at: 1)
        try await world.sayToken("aa01", by: holder)
        var profile = DeviceProfile()
        profile.address = .init(
            platform: .apple, token: try PushToken(hexadecimal: "aa01"), environment: .production)
        _ = try await world.domains[0].devices.register(app: world.app.id, reporting: profile)
        try await eventually { try await world.waiting(for: holder).map(\.kind.number) == [.deviceStatus] }
    }

    @Test func `no question about a device of this home alone is sent`() async throws {
        let world = try await TwoHomes()
        let device = try await world.device(at: 0)
        try await world.sayToken("aa01", by: device)
        let connection = world.connect(device)
        _ = try await world.domains[0].devices.suspend(device)
        _ = try await world.domains[0].devices.resume(device)
        try await world.domains[0].devices.delete(device)
        #expect(connection.ends == [.deviceGone])
        for link in world.links {
            #expect(link.count(of: DevicesRemoved.self) == 0 && link.count(of: StatusChanged.self) == 0)
        }
    }

    // MARK: Users

    @Test func `channels of a former user are closed also if the shard of the device is closing`() async throws {
        let world = try await TwoHomes()
        let device = try await world.device(at: 0)
        let user = try #require(UserID("ada"))
        let signIn = RegistrationRequest.reports(DeviceProfile(), confirms: false, user: .signedIn(user))
        _ = try await world.store.changeRegistration(of: device.serial, at: world.now) { _ in signIn }
        _ = try await world.channel(of: device)
        let signOut = RegistrationRequest.reports(DeviceProfile(), confirms: false, user: .signedOut)
        _ = try await world.store.changeRegistration(of: device.serial, at: world.now) { _ in signOut }
        #expect(try await world.store.channelsOfFormerUsers(of: nil, in: .all, limit: 9).count == 1)
        let domain = world.domains[0]
        try await domain.runtime.whileClosing(Shard(of: device.serial)) {
            try await domain.formerChannels.close(of: device.serial)
        }
        #expect(try await world.store.channelsOfFormerUsers(of: nil, in: .all, limit: 9).isEmpty)
    }

    // MARK: Pushes

    @Test func `a home corrects pushes of the other home after the clock was set back`() async throws {
        let world = try await TwoHomes()
        let device = try await world.device(at: 1)
        try await world.sayToken("aa01", by: device)
        let channel = try await world.channel(of: device).channel
        _ = try await world.domains[1].publisher.publish(
            PublishRequest(body: [1], coding: ContentCoding(.identity), ttl: 1000), to: channel)
        let queue = PushQueue(app: world.app.serial, environment: .production)
        world.advance(seconds: -3600)
        #expect(try await world.store.dueQueues(in: .all, at: world.now).isEmpty)
        try await world.domains[0].outbox.begin()
        #expect(try await world.store.dueQueues(in: .all, at: world.now) == [queue])
    }

    @Test func `gateways stay open until no home sends pushes any more`() async throws {
        let world = try await TwoHomes()
        let (gateways, outboxes) = (world.domains[0].gateways, world.domains.map(\.outbox))
        let queue = PushQueue(app: world.app.serial, environment: .test)
        for outbox in outboxes { try await gateways.open(for: outbox) }
        let first = try #require(gateways.gateway(queue) as? TestGateway)
        await gateways.close(for: outboxes[0])
        let second = gateways.gateway(queue) as? TestGateway
        #expect(second === first)
        await gateways.close(for: outboxes[1])
        let third = gateways.gateway(queue) as? TestGateway
        #expect(third !== first)
    }
}
