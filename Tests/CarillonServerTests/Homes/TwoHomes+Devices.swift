import CarillonCore
import CarillonWire
import TestStores
import Testing

@testable import CarillonServer

extension TwoHomes {
    /// Registers a device of a home.
    func device(at place: Int, with key: KeyID? = nil) async throws -> Device {
        let device = try await domains[place].devices.register(app: app.id, with: key).device
        try #require(domains[place].home.has(device.serial))
        return device
    }

    /// Registers a device of each home, in the order of the homes.
    func devices(with key: KeyID? = nil) async throws -> [Device] {
        [try await device(at: 0, with: key), try await device(at: 1, with: key)]
    }

    /// Connects a device to its home.
    func connect(_ device: Device) -> NotingSession {
        let session = NotingSession()
        domain(of: device).runtime.sessions.join(session, device: device.serial, of: device.app)
        return session
    }

    /// Sets the push token of a device.
    func sayToken(_ token: String, by device: Device) async throws {
        var profile = DeviceProfile()
        profile.address = .init(
            platform: .apple, token: try PushToken(hexadecimal: token), environment: .production)
        let said = profile
        _ = try await domain(of: device).devices.update(device, from: nil, confirms: true) {
            (_: DeviceProfile) throws(Refusal) -> DeviceProfile in said
        }
    }

    /// Opens a channel of a device, and returns it with its token.
    func channel(of device: Device) async throws -> ChannelRegistrar.Registration {
        let id = try #require(ChannelID("6f3f1e0e-1111-4222-8333-444455556666"))
        return try await domain(of: device).channels.register(id, device: device.serial, name: nil, vapidKey: nil)
    }

    // MARK: Inboxes

    /// Returns the waiting entries of a device when the homes have no more work.
    func waiting(for device: Device) async throws -> [Envelope] {
        for domain in domains {
            while await !domain.itemEngine.isIdle { try await Task.sleep(for: .milliseconds(2)) }
            await domain.runtime.flush()
        }
        return try await store.waiting(device: device.serial, after: 0, limit: 100, bytes: 1 << 30, at: now) ?? []
    }

    /// Acknowledges the waiting entries of a device.
    func acknowledgeAll(by device: Device) async throws {
        let answers = try await waiting(for: device).map { EnvelopeAnswer($0.id, .acknowledged) }
        try await domain(of: device).home.finish(answers, device: device.serial)
    }

    func handOverCount() async throws -> Int { try await stores.count(.handOvers, in: store) }
}
