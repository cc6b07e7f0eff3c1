import CarillonCore
import CarillonWire
import Synchronization
import Testing

@testable import CarillonServer

/// Devices that arrive while messages are sent to them, over a real store.
@Suite(.timeLimit(.minutes(10)))
struct ArrivalStressTests {
    private static let queues = 20
    private static let rounds = 250
    private static let arrivalsOfRound = 20
    private static let sendsOfRound = 7

    private struct Tally: Sendable {
        var arrivals = 0
        var sends = 0
        /// Pages that had everything.
        var completePages = 0
        var faults: [String] = []

        mutating func add(_ other: Tally) {
            arrivals += other.arrivals
            sends += other.sends
            completePages += other.completePages
            faults += other.faults
        }
    }

    /// Stores the calls of its home.
    private final class ToldSession: LiveSession {
        private struct State {
            var offered: Set<Int64> = []
            var isNotifiedOfMore = false
        }

        private let state = Mutex(State())

        func knows(_ position: Int64) -> Bool { state.withLock { $0.isNotifiedOfMore || $0.offered.contains(position) } }

        func offer(_ envelope: Envelope) { state.withLock { _ = $0.offered.insert(envelope.position) } }
        func storedMore() { state.withLock { $0.isNotifiedOfMore = true } }
        func offerVolatile(_ envelope: Envelope, answer: @escaping @Sendable (Bool) -> Void) { answer(false) }
        func withdrew(_ withdrawal: DeliveryMachine.Withdrawal, done: @escaping @Sendable () -> Void) { done() }
        func finished(_ ids: [MessageID]) {}
        func end(because reason: SessionEnd) {}
    }

    /// One device with its sender.
    private final class Queue: Sendable {
        private let home: any Home
        private let runtime: HomeRuntime
        private let device: Device
        private let channel: PushChannel
        private let time: TimeSource
        /// Messages whose sender was answered.
        private let stored = Mutex<[MessageID]>([])

        init(_ domain: HomeDomain, app: AppID) async throws {
            runtime = domain.runtime
            time = domain.time
            device = try await domain.devices.register(app: app).device
            home = domain.homes.home(of: device.serial)
            var random = SystemRandomNumberGenerator()
            channel = try await domain.channels.register(
                .random(using: &random), device: device.serial, name: nil, vapidKey: nil
            ).channel
        }

        func run() async throws -> Tally {
            var tally = Tally()
            for round in 0..<ArrivalStressTests.rounds {
                // Every other message is offered to the session before it is stored.
                let mode: DeliveryMode = round % 2 == 0 ? .kept : .keptAndOffered
                for number in 1..<ArrivalStressTests.arrivalsOfRound {
                    switch number % 6 {
                    case 1:
                        send(mode)
                        try await arrive(&tally)
                    case 4:
                        async let sent: Void = sendBeside(mode)
                        try await arrive(&tally)
                        await sent
                    default:
                        try await arrive(&tally)
                    }
                }
                await runtime.inbox.flush(device.serial)
                try await arrive(&tally)
                let answered = stored.withLock { $0 }
                tally.sends += answered.count
                try await runtime.inbox.finish(answered.map { .init($0, .acknowledged) }, device: device.serial)
                stored.withLock { $0 = [] }
            }
            return tally
        }

        private func sendBeside(_ mode: DeliveryMode) async { send(mode) }

        private func send(_ mode: DeliveryMode) {
            let now = time.now()
            runtime.inbox.deliver(to: device.serial, mode) { [device, channel] id in
                Envelope(
                    id: id, device: device.serial, app: device.app, origin: channel.origin,
                    kind: .message(.init(body: [1], coding: nil)), acceptedAt: now, expiresAt: now.adding(seconds: 3600))
            } then: { [self] id, delivered in
                if delivered.isStored { stored.withLock { $0.append(id) } }
            }
        }

        /// Every message whose sender was answered must be in the page or be known to the session, unless the page must be loaded.
        private func arrive(_ tally: inout Tally) async throws {
            let session = ToldSession()
            let load = PageRequest(after: 0, limit: 100, bytes: 1 << 20)
            let hash = device.credentialHash
            let arrived = try await home.arrive(
                .id(device.id, credential: hash), .credential(hash), load, speaking: 1, as: session)
            let answered = stored.withLock { $0.map(\.position) }
            tally.arrivals += 1
            guard let page = arrived.device?.page else { return tally.faults.append("a device was not let in") }
            guard page.isComplete else { return }
            tally.completePages += 1
            let read = Set(page.envelopes.map(\.position))
            for position in answered where !read.contains(position) && !session.knows(position) {
                tally.faults.append("message \(position) is lost")
            }
        }
    }

    @Test func `a message that is stored between the read of an arriving device and its session is not lost`() async throws {
        let fixture = try await RouteFixture()
        let app = try AppID.checked("com.example.app")
        _ = try await fixture.domain.apps.create(app)
        var queues: [Queue] = []
        for _ in 0..<Self.queues { queues.append(try await Queue(fixture.domain, app: app)) }
        let tally = try await withThrowingTaskGroup(of: Tally.self) { group in
            for queue in queues { group.addTask { try await queue.run() } }
            var sum = Tally()
            for try await tally in group { sum.add(tally) }
            return sum
        }
        #expect(tally.faults.isEmpty, "\(tally.faults.count) of \(tally.sends): \(tally.faults.prefix(3))")
        #expect(tally.arrivals == 100_000)
        #expect(tally.sends == Self.queues * Self.rounds * Self.sendsOfRound)
        // The last page of each round has everything. Others must be loaded, as a message is on its way.
        let pages = tally.completePages
        #expect(pages > Self.queues * Self.rounds && pages < tally.arrivals, "\(pages) pages were complete")
    }
}
