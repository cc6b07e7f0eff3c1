import CarillonCore
import CarillonServer
import CarillonWire
import Logging
import ServiceLifecycle
import TestStores
import TestSupport
import Testing

/// The log of a server that stops.
@Suite(.timeLimit(.minutes(5)))
struct StopTests {
    private struct NotStored: Error {}

    /// Makes a data directory with a device that was seen two days ago, and that was not notified of its suspension.
    private func makeDirectory() async throws -> (path: String, device: Device) {
        let path = try TemporaryDirectory.make()
        let store = try await stores.open(at: path, StoreSettings())
        let moment = TimeSource.system.now().adding(seconds: -2 * 86_400)
        let app = try #require(AppID("com.example.app"))
        _ = try await store.createApp(app, at: moment)
        let new = NewDevice(DeviceID(Bytes16(high: 1, low: 1)), app: app)
        let inserted = try await store.insertDevice(new, at: moment, credential: .fixed(SecretHash(of: [1])))
        guard case .stored(let device, _) = inserted else { throw NotStored() }
        let changed = try await store.changeRegistration(of: device.serial, at: moment) { current in
            RegistrationRules.suspend(current, because: .byOperator, at: moment).map { .becomes($0) } ?? .nothing
        }
        _ = try #require(changed).get()
        try await stores.close(store)
        return (path, device)
    }

    @Test func `a server that stops writes which devices were seen, and its served time`() async throws {
        let (path, device) = try await makeDirectory()
        var settings = ServerSettings(port: 0, dataDirectory: path)
        // Each sweeper works once, after the start.
        settings.sweepSeconds = 1_000_000
        let logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        let (running, began) = AsyncStream.makeStream(of: HomeDomain.self)
        let server = CarillonServer(settings: settings, stores: stores.factory, logger: logger) {
            began.yield($0.domain)
        }
        let group = ServiceGroup(services: [server], logger: logger)
        // Ends when the group is shut down, or with the test.
        let run = Task {
            defer { began.finish() }
            try await group.run()
        }
        defer { run.cancel() }
        var isStopped = false
        for await domain in running {
            // The sweeper writes which devices were seen before it notifies devices of their statuses.
            let store = domain.runtime.store
            try await eventually { try await store.pendingStatuses(in: .all, limit: 1).isEmpty }
            domain.devices.sawRegistered(device)
            try await eventually { domain.served.seconds >= 1 }
            let seenAt = try #require(try await store.device(device.serial)).seenAt
            #expect(seenAt == device.seenAt, "the sweeper wrote it")
            await group.triggerGracefulShutdown()
            try await run.value
            isStopped = true
            break
        }
        #expect(isStopped)
        let store = try await stores.open(at: path, StoreSettings())
        let stored = try #require(try await store.device(device.serial))
        #expect(stored.seenAt > device.seenAt)
        #expect(try await store.servedSeconds() >= 1)
        try await stores.close(store)
    }
}
