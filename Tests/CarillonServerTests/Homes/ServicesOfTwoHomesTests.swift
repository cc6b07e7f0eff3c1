import CarillonBasics
import CarillonCore
import CarillonWire
import TestSupport
import Testing

@testable import CarillonServer

/// Requests between two devices of one user that have different homes.
@Suite(.timeLimit(.minutes(5)))
struct ServicesOfTwoHomesTests {
    private struct World {
        let homes: TwoHomes
        /// A device of the first home.
        let consumer: Device
        /// A device of the second home.
        let provider: Device

        /// The services of the home of the consumer.
        var consuming: Services { homes.domains[0].services }
        /// The services of the home of the provider.
        var providing: Services { homes.domains[1].services }

        init(_ settings: StoreSettings = StoreSettings()) async throws {
            homes = try await TwoHomes(settings)
            (consumer, provider) = (try await homes.device(at: 0), try await homes.device(at: 1))
            for device in [consumer, provider] { try await signIn("ada", on: device) }
            try await offer()
        }

        func signIn(_ user: String, on device: Device) async throws {
            let claim = UserClaim.signedIn(try #require(UserID(user)))
            let call = RegistrationRequest.reports(DeviceProfile(), confirms: false, user: claim)
            _ = try await homes.store.changeRegistration(of: device.serial, at: homes.now) { _ in call }
        }

        func offer(_ name: String = "Files", by device: Device? = nil) async throws {
            let offer = ServiceOffer(
                try #require(ServiceID(ServiceWorld.service)), try #require(ServiceVersion("1.0.0.0")))
            try await providing.offer(
                ServiceProvider.Profile(name: name, version: "1", offers: [offer], keys: ServiceWorld.keys()),
                by: device ?? provider)
        }

        static func id(_ number: UInt64) -> ServiceRequestID { ServiceRequestID(Bytes16(high: 6, low: number)) }

        func call(_ number: UInt64, ofFront isOfFront: Bool = false, of device: Device? = nil) throws -> Services.Call {
            let service = isOfFront ? RequestHeader.frontService : ServiceWorld.service
            let method = isOfFront ? RequestHeader.frontMethod : "transferFile"
            let header = RequestHeader(
                id: Self.id(number), service: try #require(ServiceID(service)),
                version: try #require(ServiceVersion("1.0.0.0")), method: try #require(MethodName(method)))
            return Services.Call(
                header: header, app: homes.app.id, device: (device ?? provider).id, content: ServiceWorld.content,
                fingerprint: [1])
        }

        @discardableResult
        func ask(_ number: UInt64 = 1, of device: Device? = nil) async throws -> Timestamp {
            try await consuming.ask(call(number, of: device), by: consumer)
        }

        func reply(_ number: UInt64 = 1) async throws {
            try await providing.reply(ServiceWorld.content, hash: [7], to: Self.id(number), by: provider)
        }

        /// The names of the events that wait for a device.
        func events(of device: Device) async throws -> [String] {
            try await homes.waiting(for: device).compactMap { envelope in
                guard case .service(_, let body) = envelope.kind, let event = ServiceEvent(body) else { return nil }
                switch event {
                case .request: return "request"
                case .received: return "received"
                case .reply: return "reply"
                case .cancelled: return "cancelled"
                case .failed(_, let code): return code
                }
            }
        }

        /// Performs a call whose request or answer is lost on the way to a home, and then the same call again.
        func twice(
            losing loss: TestLink.Loss, of type: any HomeQuestion.Type, to place: Int, _ work: () async throws -> Void
        ) async throws {
            homes.links[place].lose(loss, of: type)
            await #expect(throws: StoreFault.self) { try await work() }
            try await work()
        }
    }

    private static let losses: [TestLink.Loss] = [.answer, .question]

    @Test func `a request, its receipt and its reply come from home to home`() async throws {
        let world = try await World()
        let expiresAt = try await world.ask()
        #expect(try await world.ask() == expiresAt, "it is the same request")
        #expect(try await world.events(of: world.provider) == ["request"])
        try await world.providing.received(World.id(1), by: world.provider)
        try await world.reply()
        #expect(try await world.events(of: world.consumer) == ["received", "reply"])
        let links = world.homes.links.map { $0.count(of: ServiceDelivery.self) }
        #expect(links == [2, 1])
    }

    @Test(arguments: losses)
    func `each step of a request is repeated if its answer is lost, and takes effect once`(loss: TestLink.Loss) async throws
    {
        let world = try await World()
        try await world.twice(losing: loss, of: ServiceDelivery.self, to: 1) { try await world.ask() }
        #expect(try await world.events(of: world.provider) == ["request"])
        try await world.twice(losing: loss, of: ServiceDelivery.self, to: 0) {
            try await world.providing.received(World.id(1), by: world.provider)
        }
        #expect(try await world.events(of: world.consumer) == ["received"])
        try await world.twice(losing: loss, of: ServiceDelivery.self, to: 0) { try await world.reply() }
        #expect(try await world.events(of: world.consumer) == ["received", "reply"])
    }

    @Test func `a request to a full inbox of another home is refused`() async throws {
        let world = try await World(StoreSettings(inbox: InboxLimits(envelopes: 1)))
        try await world.ask(1)
        let refusal = await #expect(throws: Refusal.self) { try await world.ask(2) }
        #expect(refusal?.code == .inboxFull)
        #expect(try await world.events(of: world.provider) == ["request"])
    }

    // MARK: Taking back

    @Test func `a request that was not delivered is taken out of the inbox at another home`() async throws {
        let world = try await World()
        let connection = NotingSession()
        world.homes.domains[1].runtime.sessions.join(connection, device: world.provider.serial)
        try await world.ask()
        let envelope = try #require(try await world.homes.waiting(for: world.provider).first)
        try await world.consuming.cancel(World.id(1), by: world.consumer)
        #expect(try await world.events(of: world.provider).isEmpty)
        #expect(connection.withdrawals == [.envelope(envelope.id.position)])
    }

    @Test(arguments: losses)
    func `a cancellation is repeated if its answer is lost`(loss: TestLink.Loss) async throws {
        let world = try await World()
        try await world.ask()
        world.homes.links[1].lose(loss, of: RequestWithdrawal.self)
        await #expect(throws: StoreFault.self) { try await world.consuming.cancel(World.id(1), by: world.consumer) }
        if loss == .answer {
            let refusal = await #expect(throws: Refusal.self) {
                try await world.consuming.cancel(World.id(1), by: world.consumer)
            }
            #expect(refusal?.code == .requestFinished)
        } else {
            try await world.consuming.cancel(World.id(1), by: world.consumer)
        }
        #expect(try await world.events(of: world.provider).isEmpty)
        #expect(try await world.homes.store.serviceRequest(World.id(1))?.state == .finished)
    }

    @Test(arguments: losses)
    func `a provider of another home is informed once that a request is unwanted`(loss: TestLink.Loss) async throws {
        let world = try await World()
        try await world.ask()
        try await world.homes.acknowledgeAll(by: world.provider)
        world.homes.links[1].lose(loss, of: ServiceDelivery.self)
        await #expect(throws: StoreFault.self) { try await world.consuming.cancel(World.id(1), by: world.consumer) }
        for _ in 0..<2 {
            let refusal = await #expect(throws: Refusal.self) {
                try await world.consuming.cancel(World.id(1), by: world.consumer)
            }
            #expect(refusal?.code == .alreadyDelivered)
        }
        #expect(try await world.events(of: world.provider) == ["cancelled"])
    }

    // MARK: Time

    @Test(arguments: losses)
    func `a due request is ended by the home of its provider, and its consumer is informed once`(
        loss: TestLink.Loss
    ) async throws {
        let world = try await World()
        try await world.ask()
        world.homes.advance(seconds: RequestHeader.defaultDeadlineSeconds)
        #expect(try await world.consuming.endDue() == 0)
        #expect(try await world.events(of: world.consumer).isEmpty)
        try await world.twice(losing: loss, of: ServiceDelivery.self, to: 0) { try await world.providing.endDue() }
        #expect(try await world.providing.endDue() == 0)
        #expect(try await world.events(of: world.consumer) == ["deadline_exceeded"])
        #expect(try await world.events(of: world.provider).isEmpty)
    }

    @Test func `a consumer whose home does not answer delays no other due request`() async throws {
        let world = try await World()
        let other = try await world.homes.device(at: 1)
        try await world.signIn("ada", on: other)
        try await world.ask(1)
        _ = try await world.providing.ask(try world.call(2), by: other)
        world.homes.advance(seconds: RequestHeader.defaultDeadlineSeconds)
        world.homes.links[0].cut()
        await #expect(throws: StoreFault.self) { try await world.providing.endDue() }
        #expect(try await world.events(of: other) == ["deadline_exceeded"])
    }

    @Test func `a provider that moves delays no other due request`() async throws {
        let world = try await World()
        let home = world.homes.domains[1].runtime
        var other = try await world.homes.device(at: 1)
        while Shard(of: other.serial) == Shard(of: world.provider.serial) { other = try await world.homes.device(at: 1) }
        try await world.signIn("ada", on: other)
        try await world.offer(by: other)
        for (number, provider) in [(1, world.provider), (2, other), (3, world.provider)] as [(UInt64, Device)] {
            try await world.ask(number, of: provider)
            world.homes.advance(seconds: 1)
        }
        world.homes.advance(seconds: RequestHeader.defaultDeadlineSeconds)
        let commits = CommitGate(world.homes.store)
        let ending = Task { try await world.providing.endDue() }
        // The due requests are read.
        try await commits.reached()
        let (gate, shard) = (try #require(home.gate), Shard(of: other.serial))
        #expect(await gate.close(shard, atMost: .seconds(10)))
        gate.remove(shard)
        commits.open()
        await #expect(throws: StoreFault.self) { try await ending.value }
        #expect(try await world.events(of: world.consumer) == ["deadline_exceeded", "deadline_exceeded"])
    }

    @Test func `a change of a device makes the other home end its due requests`() async throws {
        let world = try await World()
        try await world.ask()
        world.homes.advance(seconds: RequestHeader.defaultDeadlineSeconds)
        await world.consuming.endDueIfPossible()
        try await eventually { try await world.events(of: world.consumer) == ["deadline_exceeded"] }
    }

    // MARK: Connections

    @Test func `a front request is delivered to a connection at another home`() async throws {
        let world = try await World()
        let refusal = await #expect(throws: Refusal.self) {
            try await world.consuming.ask(world.call(1, ofFront: true), by: world.consumer)
        }
        #expect(refusal?.code == .providerSuspended)
        let connection = NotingSession()
        world.homes.domains[1].runtime.sessions.join(connection, device: world.provider.serial)
        _ = try await world.consuming.ask(try world.call(2, ofFront: true), by: world.consumer)
        #expect(connection.given.map(\.origin.id) == [World.id(2).value])
        world.homes.links[1].lose(.question, of: FrontRequest.self)
        await #expect(throws: StoreFault.self) {
            try await world.consuming.ask(world.call(3, ofFront: true), by: world.consumer)
        }
        #expect(connection.given.count == 1)
        #expect(try await world.events(of: world.provider).isEmpty)
    }

    @Test func `a provider that is connected to another home is live as long as the home answers`() async throws {
        let world = try await World()
        func isLive() async throws -> [Bool] {
            try await world.consuming.providers(for: world.consumer, ServiceQuery()).map(\.isLive)
        }
        #expect(try await isLive() == [false])
        world.homes.domains[1].runtime.sessions.join(NotingSession(), device: world.provider.serial)
        #expect(try await isLive() == [true])
        world.homes.links[1].cut()
        #expect(try await isLive() == [false])
    }

    @Test func `a connection at another home is notified that a provider changed`() async throws {
        let world = try await World()
        let connection = NotingSession()
        world.homes.domains[0].runtime.sessions.join(connection, device: world.consumer.serial)
        try await world.offer("Other files")
        try await eventually { connection.events.contains(.providersChanged) }
    }
}
