import CarillonWire
import TestStores
import Testing

@testable import CarillonCore

/// Deletions of devices while a shard moves.
@Suite(.timeLimit(.minutes(5)))
struct MovedDeletionTests {
    private struct NoListener: DeviceListener {
        func deviceChanged(_ device: DeviceSerial) async throws {}
        func userChanged(of device: DeviceSerial) async throws {}
    }

    /// Ends the wait for a shard that is closing at once.
    private static let impatient = Scheduler { _, work in work() }

    /// The registrar of the first home.
    private func registrar(_ homes: GatedHomes) -> DeviceRegistrar {
        let (home, store, time) = (homes.first, homes.first.store, TimeSource { GatedHomes.now })
        let directory = ChannelDirectory(store: store)
        return DeviceRegistrar(
            devices: store, home: home, directory: directory, notifier: StatusNotifier(devices: store, home: home),
            formerChannels: FormerChannels(store: store, home: home, directory: directory, time: time),
            subscriptions: NoListener(), rateLimits: RateLimits(settings: .init(), ticks: TickSource { 0 }),
            approvalHooks: NoApprovalHooks(), time: time, random: Sample.random)
    }

    /// Makes a further device of the first home.
    private func device(of homes: GatedHomes, in shard: UInt64, with key: KeyID? = nil) async throws -> Device {
        let new = NewDevice(DeviceID(Bytes16(high: 2, low: shard)), app: homes.device.appID, key: key)
        let inserted = try await homes.store.insertDevice(
            new, at: GatedHomes.now, credential: .fixed(SecretHash(of: [2])))
        guard case .stored(let device, _) = inserted else { throw GatedHomes.Missing() }
        return device
    }

    /// Removes the devices of all shards that were not seen for a day.
    private func removeUnused(_ registrar: DeviceRegistrar) async throws -> [DeviceSerial] {
        let time = RetentionTime.uninterrupted(at: GatedHomes.now.adding(seconds: 10 * 86_400))
        return try await registrar.removeUnused(.inactive, in: .all, afterSeconds: 86_400, by: time, atOnce: 9).map(\.serial)
    }

    @Test func `a device that moved since it was found is not removed, and others are`() async throws {
        let homes = try await GatedHomes()
        let other = try await device(of: homes, in: 8)
        let gate = try #require(homes.first.gate)
        #expect(await gate.close(homes.shard, atMost: .seconds(10)))
        try homes.give()
        _ = try await homes.arrive(at: homes.second, as: RecordingSession())
        #expect(try await removeUnused(registrar(homes)) == [other.serial])
        #expect(try await homes.store.device(homes.device.serial) != nil)
    }

    @Test func `a device that moves is not removed, and is removed later if the shard stays`() async throws {
        let homes = try await GatedHomes(waits: Self.impatient)
        let registrar = registrar(homes)
        let gate = try #require(homes.first.gate)
        #expect(await gate.close(homes.shard, atMost: .seconds(10)))
        #expect(try await removeUnused(registrar) == [])
        gate.reopen(homes.shard)
        #expect(try await removeUnused(registrar) == [homes.device.serial])
        #expect(try await homes.store.device(homes.device.serial) == nil)
    }

    @Test func `a device of a revoked key that moves is not deleted, and counts as one of another home`() async throws {
        let homes = try await GatedHomes(waits: Self.impatient)
        let (registrar, app) = (registrar(homes), homes.device.appID)
        let key = AccessKey(
            id: KeyID(1), role: .client, app: app, name: nil, secretHash: SecretHash(of: [1]), createdAt: GatedHomes.now)
        #expect(try await homes.store.insertKey(key))
        let device = try await device(of: homes, in: 7, with: key.id)
        let session = RecordingSession()
        homes.first.sessions.join(session, device: device.serial, of: device.app)
        let gate = try #require(homes.first.gate)
        #expect(await gate.close(homes.shard, atMost: .seconds(10)))
        #expect(try await registrar.deleteDevices(registeredWith: key.id, of: app) == false)
        #expect(try await homes.store.device(device.serial) != nil)
        #expect(session.events.isEmpty)
        gate.reopen(homes.shard)
        #expect(try await registrar.deleteDevices(registeredWith: key.id, of: app))
        #expect(try await homes.store.device(device.serial) == nil)
        #expect(session.events == [.ended(.deviceGone)])
    }
}
