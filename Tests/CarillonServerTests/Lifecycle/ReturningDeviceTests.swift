import CarillonCore
import CarillonWire
import TestStores
import Testing

@testable import CarillonServer

/// A device that connects again while unused devices are removed.
@Suite(.timeLimit(.minutes(5)))
struct ReturningDeviceTests {
    @Test(arguments: UnusedDevice.Reason.allCases)
    func `a device that comes back after it was found unused is not removed`(reason: UnusedDevice.Reason) async throws {
        let world = try await ServiceWorld()
        let (store, devices) = (world.routes.store, world.routes.domain.devices)
        let app = try #require(AppID("com.example.app"))
        _ = try await world.routes.domain.apps.create(app)
        for _ in 0..<2 {
            if reason.isOfAnonymous {
                _ = try await devices.registerAnonymous(UserAgentID(random: .system), app: app, from: nil)
            } else {
                let device = try await devices.register(app: app).device
                if reason == .suspended { _ = try await devices.suspend(device) }
            }
        }
        try await stores.ageStatuses(in: store)
        world.clock.pass(1000)
        let now = world.clock.now
        func removeUnused() async throws -> Int {
            try await devices.removeUnused(
                reason, in: .all, afterSeconds: 1000, by: .uninterrupted(at: now), atOnce: 10
            ).count
        }
        // Both are found. The other one connects when the first is removed.
        try await stores.seeDevices(at: now, whenOneIsRemovedFrom: store)
        #expect(try await removeUnused() == 1)
        #expect(try await stores.count(.devices, in: store) == 1)
        #expect(try await removeUnused() == 0)
        try await stores.stopSeeingDevices(in: store)
        #expect(try await removeUnused() == 1, "no device connected")
    }
}
