import CarillonCore
import CarillonWire
import StoreConformance
import TestStores
import Testing

@testable import CarillonSQLite

/// The rows of wakes without information.
@Suite(.timeLimit(.minutes(5)))
struct IdleWakeTests {
    private let start = StoreFixture.start

    @Test func `the pace of a device that answered is forgotten when it limits nothing`() async throws {
        let fixture = try await StoreFixture(SQLiteStores.memory)
        let (store, device) = (fixture.sqlite, fixture.device)
        var profile = DeviceProfile()
        profile.address = .init(platform: .apple, token: try PushToken(hexadecimal: "aa01"), environment: .production)
        let request = RegistrationRequest.reports(profile, confirms: true)
        _ = try await store.changeRegistration(of: device.serial, at: start) { _ in request }
        let rules = AppendRules(wake: WakeRequest(.background, dueAt: start))
        _ = try await store.commit([.append(fixture.envelope(1), rules)])
        let queue = PushQueue(app: device.app, environment: .production)
        let leased = try await store.leasePushes(of: queue, limit: 9, at: start, until: start.adding(seconds: 60))
        _ = try await store.endPushes(leased.pushes.map { PushEnd($0, .handed, at: start) })
        _ = try await store.commit([fixture.acknowledge(1)])
        #expect(try await store.rowCount(of: "wake") == 1)
        #expect(try await store.sweepPushes(at: start.adding(seconds: WakePace.shortestSeconds - 1), limit: 9))
        #expect(try await store.rowCount(of: "wake") == 1, "another wake must wait still")
        #expect(try await store.sweepPushes(at: start.adding(seconds: WakePace.shortestSeconds), limit: 9))
        #expect(try await store.rowCount(of: "wake") == 0)
    }
}
