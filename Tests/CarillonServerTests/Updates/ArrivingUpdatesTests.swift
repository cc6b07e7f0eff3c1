import CarillonCore
import CarillonWire
import Synchronization
import Testing

@testable import CarillonServer

/// Updates that end while a device connects.
@Suite(.timeLimit(.minutes(5)))
struct ArrivingUpdatesTests {
    /// Notes what it is asked to withdraw.
    private final class Connection: LiveSession {
        let withdrawn = Mutex<[DeliveryMachine.Withdrawal]>([])

        func offer(_ envelope: Envelope) {}
        func offerVolatile(_ envelope: Envelope, answer: @escaping @Sendable (Bool) -> Void) { answer(false) }
        func storedMore() {}
        func withdrew(_ withdrawal: DeliveryMachine.Withdrawal, done: @escaping @Sendable () -> Void) {
            withdrawn.withLock { $0.append(withdrawal) }
            done()
        }
        func settled(_ ids: [MessageID]) {}
        func end(because reason: SessionEnd) {}
    }

    private static let popup = #"{"style":"failure","title":"t"}"#
    private let load = InboxLoad(after: 0, limit: 9, bytes: 100_000)

    /// Puts an update into the inbox of a device that is not remembered to be there.
    private func waitingUpdate(in world: UpdateWorld) async throws -> (update: String, name: DeviceName) {
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
        return (update, name)
    }

    enum End: CaseIterable, Sendable { case withdrawn, superseded }

    @Test(arguments: End.allCases)
    func `an update that ends between the read of an inbox and the session is not given`(end: End) async throws {
        let world = try await UpdateWorld()
        let (update, name) = try await waitingUpdate(in: world)
        let store = PausedInboxStore(world.routes.store)
        let home = store.home(of: world.routes.domain)
        let connection = Connection()
        async let arrival = home.arrival(of: name, as: connection, load) { _ in true }
        await store.hasRead()
        switch end {
        case .withdrawn: try await world.withdraw(update)
        case .superseded: try await world.publish("popup", Self.popup, #","supersedes":"\#(update)""#)
        }
        store.goOn()
        let arrived = try await arrival
        #expect(arrived?.page == InboxPage(envelopes: [], isComplete: true))
    }

    @Test func `an update is withdrawn from a session that said nothing of updates yet`() async throws {
        let world = try await UpdateWorld()
        let (update, name) = try await waitingUpdate(in: world)
        let connection = Connection()
        let home = world.routes.domain.homes.here[0]
        let arrived = try await home.arrival(of: name, as: connection, load) { _ in true }
        let origin = try #require(arrived?.page.envelopes.first?.origin.key)
        try await world.withdraw(update)
        #expect(connection.withdrawn.withLock { $0 } == [.all(of: origin)])
    }
}
