import CarillonCore
import CarillonSQLite
import CarillonWire
import StoreConformance
import Synchronization
import TestStores
import TestSupport
import Testing

/// The registrations that the registrar reports to its listener, and the removal of the devices of a key.
@Suite(.timeLimit(.minutes(5)))
struct RegistrarTests {
    /// Notes the devices that changed.
    private final class Listener: DeviceListener {
        private let devices = Mutex<[DeviceSerial]>([])

        var changed: [DeviceSerial] { devices.withLock { $0 } }

        func deviceChanged(_ device: DeviceSerial) async throws { devices.withLock { $0.append(device) } }
        func userChanged(of device: DeviceSerial) async throws {}
    }

    private func registrar(_ world: DeliveryWorld, _ listener: Listener) -> DeviceRegistrar {
        let (store, home, time) = (world.fixture.sqlite, world.home, TimeSource { StoreFixture.start })
        let directory = ChannelDirectory(store: store)
        return DeviceRegistrar(
            devices: store, home: home, directory: directory,
            notifier: StatusNotifier(devices: store, home: home),
            formerChannels: FormerChannels(store: store, home: home, directory: directory, time: time),
            subscriptions: listener, rateLimits: RateLimits(settings: .init(), ticks: TickSource { 0 }),
            approvalHooks: NoApprovalHooks(), time: time, random: RandomSource { .random(in: .min ... .max) })
    }

    @Test func `a device that registers again with a profile changed, and a new one did not`() async throws {
        let listener = Listener()
        let registrar = registrar(try await DeliveryWorld.make(), listener)
        let (app, secret) = (try StoreFixture.appID, String(repeating: "s", count: 43))
        var profile = DeviceProfile()
        profile.locale = "de"
        let first = try await registrar.register(app: app, registration: secret, reporting: profile).device
        #expect(listener.changed == [])
        profile.locale = "fr"
        let again = try await registrar.register(app: app, registration: secret, reporting: profile).device
        #expect(again.serial == first.serial)
        #expect(listener.changed == [first.serial])
        _ = try await registrar.register(app: app, registration: secret)
        #expect(listener.changed == [first.serial], "a device without a report did not change")
    }

    @Test func `a device is in the shard of its registration or of its user agent, by its id and its number`() async throws {
        let registrar = registrar(try await DeliveryWorld.make(), Listener())
        let app = try StoreFixture.appID
        func expect(_ device: Device, in shard: Shard) {
            #expect(Shard(of: device.id) == shard)
            #expect(Shard(of: device.serial) == shard)
        }
        for number in 0..<8 {
            let secret = "\(number)" + String(repeating: "s", count: 42)
            let shard = Shard(of: app, registration: SecretHash(of: secret.utf8))
            let device = try await registrar.register(app: app, registration: secret).device
            expect(device, in: shard)
            #expect(try await registrar.register(app: app, registration: secret).device.serial == device.serial)
            let userAgent = UserAgentID(random: RandomSource { .random(in: .min ... .max) })
            let anonymous = try await registrar.registerAnonymous(userAgent, app: app, from: nil)
            expect(anonymous, in: Shard(ofUserAgent: userAgent.hash))
            let other = try await registrar.register(app: app).device
            expect(other, in: Shard(of: other.id))
        }
    }

    @Test func `a device that loses its token to a device that registers is notified at once`() async throws {
        let world = try await DeliveryWorld.make()
        let registrar = registrar(world, Listener())
        let (app, secret) = (try StoreFixture.appID, String(repeating: "s", count: 43))
        var profile = DeviceProfile()
        profile.address = .init(
            platform: .apple, token: try PushToken(hexadecimal: "aa01"), environment: .production)
        func waiting(_ device: Device) async throws -> [Envelope.Kind] {
            try await world.fixture.store.waiting(
                device: device.serial, after: 0, limit: 9, bytes: 1 << 20, at: StoreFixture.start
            )?.map(\.kind) ?? []
        }
        let first = try await registrar.register(app: app, registration: secret, reporting: profile).device
        #expect(try await waiting(first) == [])
        let second = try await registrar.register(app: app, reporting: profile).device
        #expect(try await waiting(first) == [.deviceStatus(.suspended(.tokenTaken))])
        #expect(try await waiting(second) == [])
        _ = try await registrar.register(app: app, registration: secret, reporting: profile)
        #expect(try await waiting(first) == [.deviceStatus(.registered)])
        #expect(try await waiting(second) == [.deviceStatus(.suspended(.tokenTaken))])
    }

    @Test func `a change that is stored succeeds if a device that loses its token cannot be notified`() async throws {
        let world = try await DeliveryWorld.make()
        let registrar = registrar(world, Listener())
        let (store, app) = (world.fixture.sqlite, try StoreFixture.appID)
        let user = UserClaim.signedIn(try #require(UserID("ada")))
        func profile(_ token: String) throws -> DeviceProfile {
            var profile = DeviceProfile()
            profile.address = .init(
                platform: .apple, token: try PushToken(hexadecimal: token), environment: .production)
            return profile
        }
        var losers: Set<DeviceSerial> = []
        for token in ["aa01", "aa02", "aa03"] {
            losers.insert(try await registrar.register(app: app, reporting: try profile(token)).device.serial)
        }
        let changing = try await registrar.register(app: app).device

        // From now on, no envelope can be written. Registrations can.
        world.store.kill()
        let secret = String(repeating: "s", count: 43)
        let first = try await registrar.register(app: app, registration: secret, reporting: try profile("aa01"))
        #expect(try await registrar.authenticate(bearer: first.credential.text).serial == first.device.serial)
        let handedOver = try await registrar.register(
            app: app, registration: secret, reporting: try profile("aa02"), of: { user })
        #expect(handedOver.device.serial == first.device.serial)
        #expect(handedOver.credential.text == first.credential.text)
        let taken = try profile("aa03")
        _ = try await registrar.update(changing, from: nil, confirms: true) { _ in taken }
        #expect(Set(try await store.pendingStatuses(in: .all, limit: 9).map(\.device)) == losers)

        let next = try await DeliveryWorld(world.fixture)
        #expect(try await StatusNotifier(devices: store, home: next.home).notify() == 3)
        for loser in losers {
            let waiting = try await store.waiting(
                device: loser, after: 0, limit: 9, bytes: 1 << 20, at: StoreFixture.start)
            #expect(waiting?.map(\.kind) == [.deviceStatus(.suspended(.tokenTaken))])
        }
    }

    @Test func `the devices of a key are removed with their sessions, and other devices stay`() async throws {
        let world = try await DeliveryWorld.make()
        let registrar = registrar(world, Listener())
        let (store, app) = (world.fixture.store, try StoreFixture.appID)
        func insert(_ number: UInt64) async throws -> AccessKey {
            let key = AccessKey(
                id: KeyID(number), role: .client, app: app, name: nil, secretHash: SecretHash(of: [1]),
                createdAt: StoreFixture.start)
            #expect(try await store.insertKey(key))
            return key
        }
        let revoked = try await insert(1)
        let other = try await insert(2)
        var removed: [DeviceSerial] = []
        var kept = [world.fixture.device.serial]
        for number in 0..<10 {
            let isKept = number % 3 == 0
            let device = try await registrar.register(app: app, with: isKept ? other.id : revoked.id).device
            if isKept { kept.append(device.serial) } else { removed.append(device.serial) }
        }
        let sessions = (removed + kept).map { WindowedSession(device: $0, inbox: world.inbox, clock: world.clock) }
        for session in sessions { world.sessions.join(session, device: session.device) }
        try await registrar.deleteAll(registeredWith: revoked, comparing: 2)
        for serial in removed { #expect(try await store.device(serial) == nil) }
        for serial in kept { #expect(try await store.device(serial) != nil) }
        #expect(sessions.filter(\.isOpen).map(\.device) == kept)
    }
}
