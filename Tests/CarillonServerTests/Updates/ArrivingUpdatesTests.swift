import CarillonCore
import CarillonWire
import Synchronization
import TestSupport
import Testing

@testable import CarillonServer

/// Updates that end while a device connects.
@Suite(.timeLimit(.minutes(5)))
struct ArrivingUpdatesTests {
    /// Stores the requested withdrawals.
    private final class Connection: LiveSession {
        let withdrawn = Mutex<[DeliveryMachine.Withdrawal]>([])

        func offer(_ envelope: Envelope) {}
        func offerVolatile(_ envelope: Envelope, answer: @escaping @Sendable (Bool) -> Void) { answer(false) }
        func storedMore() {}
        func withdrew(_ withdrawal: DeliveryMachine.Withdrawal, done: @escaping @Sendable () -> Void) {
            withdrawn.withLock { $0.append(withdrawal) }
            done()
        }
        func finished(_ ids: [MessageID]) {}
        func end(because reason: SessionEnd) {}
    }

    private static let popup = #"{"style":"failure","title":"t"}"#
    private let load = PageRequest(after: 0, limit: 9, bytes: 100_000)

    /// A device, and the proof of its connection.
    private struct Comer: Sendable {
        var name: DeviceName
        var proof: DeviceProof
    }

    /// Puts an update into the inbox of a device that is not remembered to be there.
    private func waitingUpdate(in world: UpdateWorld) async throws -> (update: String, comer: Comer) {
        try await world.ask()
        let update = try await world.publish("popup", Self.popup)
        try await world.ask(nil, #""max":0"#)
        world.advance(seconds: 60)
        try await world.sweep()
        #expect(world.routes.domain.updateDelivery.rememberedDevices == 0)
        let credential = try DeviceRegistrar.credential(world.first.credential)
        let name = DeviceName.id(credential.device, credential: credential.hash)
        let arrival = try await world.routes.store.arrival(of: name, load, at: world.now)
        #expect(arrival?.envelopes?.map(\.kind.number) == [.update])
        return (update, Comer(name: name, proof: .credential(credential.hash)))
    }

    enum End: CaseIterable, Sendable { case withdrawn, superseded }

    private func end(_ update: String, _ end: End, in world: UpdateWorld) async throws {
        switch end {
        case .withdrawn: try await world.withdraw(update)
        case .superseded: try await world.publish("popup", Self.popup, #","supersedes":"\#(update)""#)
        }
    }

    @Test(arguments: End.allCases)
    func `an update that ends between the read of an inbox and the session is not delivered`(end: End) async throws {
        let world = try await UpdateWorld()
        let (update, comer) = try await waitingUpdate(in: world)
        let store = PausedInboxStore(world.routes.store)
        let home = store.home(of: world.routes.domain)
        let connection = Connection()
        async let arrival = home.arrive(comer.name, comer.proof, load, speaking: 1, as: connection)
        await store.hasRead()
        try await self.end(update, end, in: world)
        store.goOn()
        let arrived = try await arrival
        #expect(arrived.device?.page == InboxPage(envelopes: [], isComplete: true))
    }

    @Test(arguments: End.allCases)
    func `an update that ends is withdrawn from a session that has not asked for updates yet`(end: End) async throws {
        let world = try await UpdateWorld()
        let (update, comer) = try await waitingUpdate(in: world)
        let connection = Connection()
        let home = world.routes.domain.runtime
        let arrived = try await home.arrive(comer.name, comer.proof, load, speaking: 1, as: connection).device
        let origin = try #require(arrived?.page.envelopes.first?.origin.key)
        try await self.end(update, end, in: world)
        #expect(connection.withdrawn.withLock { $0 } == [.all(of: origin)])
    }

    @Test(arguments: End.allCases) func `a feed of another app receives nothing of an update that ends`(end: End)
        async throws
    {
        let world = try await UpdateWorld()
        let (update, _) = try await waitingUpdate(in: world)
        let domain = world.routes.domain
        let home = domain.runtime
        let other = try await domain.apps.create(try AppID.checked("com.example.other"))
        let devices = [
            try await domain.devices.register(app: try AppID.checked("com.example.app")).device,
            try await domain.devices.register(app: other.id).device,
        ]
        let feeds = devices.map {
            InboxFeed(of: $0, homes: domain.homes, time: domain.time, limits: .init(), logger: domain.logger)
        }
        for feed in feeds { await feed.begin() }
        let moment = home.sessions.changes.now()
        try await self.end(update, end, in: world)
        #expect(devices.map { home.sessions.changes.mayHaveChanged($0.serial, since: moment) } == [true, false])
        for feed in feeds { feed.finish() }
    }

    /// Answers withdrawals when it is released.
    private final class SlowConnection: LiveSession {
        private struct State {
            var withdrawals = 0
            var isReleased = false
            var waiting: [@Sendable () -> Void] = []
        }

        private let state = Mutex(State())
        var withdrawals: Int { state.withLock { $0.withdrawals } }

        func release() {
            let waiting = state.withLock { state in
                state.isReleased = true
                defer { state.waiting = [] }
                return state.waiting
            }
            for done in waiting { done() }
        }

        func offer(_ envelope: Envelope) {}
        func offerVolatile(_ envelope: Envelope, answer: @escaping @Sendable (Bool) -> Void) { answer(false) }
        func storedMore() {}
        func withdrew(_ withdrawal: DeliveryMachine.Withdrawal, done: @escaping @Sendable () -> Void) {
            let isReleased = state.withLock { state in
                state.withdrawals += 1
                if !state.isReleased { state.waiting.append(done) }
                return state.isReleased
            }
            if isReleased { done() }
        }
        func finished(_ ids: [MessageID]) {}
        func end(because reason: SessionEnd) {}
    }

    @Test func `a withdrawal visits the next session while another one has not answered`() async throws {
        let world = try await UpdateWorld()
        let (update, _) = try await waitingUpdate(in: world)
        let sessions = world.routes.domain.runtime.sessions
        let app = try await world.routes.domain.serial(ofApp: "com.example.app")
        let connections = (0..<3).map { _ in SlowConnection() }
        for (place, connection) in connections.enumerated() {
            sessions.join(connection, device: DeviceSerial(Int64(1000 + place)), of: app)
        }
        async let withdrawal: Void = world.withdraw(update)
        // Releases them before the fault is thrown: the withdrawal ends with the test.
        defer { for connection in connections { connection.release() } }
        try await eventually { connections.allSatisfy { $0.withdrawals == 1 } }
        for connection in connections { connection.release() }
        try await withdrawal
    }
}
