import CarillonCore
import CarillonWire
import Synchronization
import Testing

@testable import CarillonServer

@Suite(.timeLimit(.minutes(5)))
struct AnonymousQuotaTests {
    private struct World {
        let devices: DeviceRegistrar
        let app: AppID
        private let seconds = Seconds()

        private final class Seconds: Sendable {
            let value = Atomic<Int64>(0)
        }

        func advance(seconds count: Int64) { seconds.value.wrappingAdd(count, ordering: .relaxed) }

        init(limit: Int?) async throws {
            var settings = RateLimits.Settings()
            settings.anonymousDevices = limit
            let fixture = try await RouteFixture(
                settings, ticks: TickSource { [seconds] in 1_000_000_000 * seconds.value.load(ordering: .relaxed) })
            devices = fixture.domain.devices
            app = try AppID.checked("anonymous")
            _ = try await fixture.domain.apps.create(app)
        }

        func register(from address: String?) async throws -> Device {
            try await devices.registerAnonymous(
                UserAgentID(random: .system), app: app, from: address.flatMap { NetworkAddress($0) })
        }

        func code(from address: String) async -> ErrorCode? {
            do {
                _ = try await register(from: address)
                return nil
            } catch {
                return (error as? Refusal)?.code
            }
        }
    }

    @Test func `an address has a limited number of anonymous devices, and a removal makes space for another`() async throws {
        let world = try await World(limit: 2)
        let first = try await world.register(from: "192.0.2.1")
        _ = try await world.register(from: "192.0.2.1")
        #expect(await world.code(from: "192.0.2.1") == .rateLimited)
        #expect(await world.code(from: "192.0.2.2") == nil)
        try await world.devices.delete(first)
        // For a minute the store is not read.
        world.advance(seconds: 59)
        #expect(await world.code(from: "192.0.2.1") == .rateLimited)
        world.advance(seconds: 1)
        #expect(await world.code(from: "192.0.2.1") == nil)
        #expect(await world.code(from: "192.0.2.1") == .rateLimited)
    }

    @Test func `a network of IPv6 counts as one address, and this machine is not counted`() async throws {
        let world = try await World(limit: 1)
        _ = try await world.register(from: "2001:db8::1")
        #expect(await world.code(from: "2001:db8::ffff:2") == .rateLimited)
        #expect(await world.code(from: "2001:db8:0:1::1") == nil)
        for _ in 0..<3 {
            #expect(await world.code(from: "127.0.0.1") == nil)
            _ = try await world.register(from: nil)
        }
    }

    @Test func `a registered device uses nothing of the quota`() async throws {
        let world = try await World(limit: 1)
        _ = try await world.devices.register(app: world.app, from: NetworkAddress("192.0.2.1"))
        #expect(await world.code(from: "192.0.2.1") == nil)
        #expect(await world.code(from: "192.0.2.1") == .rateLimited)
    }
}
