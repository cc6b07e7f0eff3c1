import CarillonCore
import CarillonSQLite
import CarillonWire
import StoreConformance
import Synchronization
import TestStores
import TestSupport
import Testing

/// Whom the registrar informs of registrations.
@Suite(.timeLimit(.minutes(1)))
struct RegistrarTests {
    /// Notes the devices that changed.
    private final class Listener: DeviceListener {
        private let devices = Mutex<[DeviceSerial]>([])

        var changed: [DeviceSerial] { devices.withLock { $0 } }

        func deviceChanged(_ device: DeviceSerial) async throws { devices.withLock { $0.append(device) } }
        func userChanged(of device: DeviceSerial) async throws {}
    }

    private func registrar(_ world: DeliveryWorld, _ listener: Listener) -> DeviceRegistrar {
        let (store, homes, time) = (world.fixture.sqlite, world.homes, TimeSource { StoreFixture.start })
        let directory = ChannelDirectory(store: store)
        return DeviceRegistrar(
            devices: store, homes: homes, directory: directory,
            news: StatusNews(devices: store, homes: homes),
            formerChannels: FormerChannels(users: store, homes: homes, directory: directory, time: time),
            subscriptions: listener, allowances: Allowances(settings: .init(), ticks: TickSource { 0 }),
            vetoes: NoVetoes(), time: time, random: RandomSource { .random(in: .min ... .max) })
    }

    @Test func `a device that registers again with a profile changed, and a new one did not`() async throws {
        let listener = Listener()
        let registrar = registrar(try await DeliveryWorld.make(), listener)
        let (app, secret) = (try StoreFixture.appID, String(repeating: "s", count: 43))
        var profile = DeviceProfile()
        profile.locale = "de"
        let first = try await registrar.register(app: app, registration: secret, saying: profile).device
        #expect(listener.changed == [])
        profile.locale = "fr"
        let again = try await registrar.register(app: app, registration: secret, saying: profile).device
        #expect(again.serial == first.serial)
        #expect(listener.changed == [first.serial])
        _ = try await registrar.register(app: app, registration: secret)
        #expect(listener.changed == [first.serial], "a device that says nothing did not change")
    }
}
