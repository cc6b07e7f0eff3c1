import CarillonAPNs
import CarillonAPNsSimulator
import CarillonBasics
import CarillonCore
import CarillonWire
import Logging
import NIOPosix
import Synchronization
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

/// A server's domain, whose pushes go to a simulator of Apple's service, by a clock that the test moves.
final class GatewayWorld: Sendable {
    let simulator: APNsSimulator
    let domain: HomeDomain
    let app: AppID
    /// Has all lines of the log, and knows the push credentials.
    let watch = SecretWatch()
    private let clock: Mutex<Timestamp>

    static let token = "00ff00ff"

    init(
        timeout: Duration = .seconds(30), _ change: (inout APNsSimulator.Configuration) -> Void = { _ in }
    ) async throws {
        var configuration = APNsSimulator.Configuration(ports: [.init(.push), .init(.push, .production)])
        change(&configuration)
        simulator = try APNsSimulator(configuration)
        try await simulator.start()
        app = try #require(AppID("com.example.app"))
        var settings = GatewaySettings()
        settings.production = .custom(host: "localhost", port: simulator.port(.push, .production) ?? 0)
        settings.sandbox = .custom(host: "localhost", port: simulator.port(.push, .sandbox) ?? 0)
        settings.authorities = simulator.trustRoot
        settings.timeout = timeout
        let clock = Mutex(TimeSource.system.now())
        self.clock = clock.withLock { Mutex($0) }
        let box = Box()
        domain = try await HomeDomain(
            store: stores.open(), addresses: PublicURLs("https://push.example.com"),
            scheduler: .on(MultiThreadedEventLoopGroup.singleton),
            logger: watch.logger, gatewaySettings: settings,
            wrappedBy: WrappingKey(bytes: Array(repeating: 1, count: 32)), time: TimeSource { box.world?.now ?? .never })
        box.world = self
        _ = try await domain.apps.create(app)
    }

    /// So that the domain's clock is this one's, which is made with it.
    private final class Box: Sendable {
        private let value = Mutex<Weak?>(nil)

        private struct Weak: Sendable {
            weak var world: GatewayWorld?
        }

        var world: GatewayWorld? {
            get { value.withLock { $0?.world } }
            set { value.withLock { $0 = Weak(world: newValue) } }
        }
    }

    var now: Timestamp { clock.withLock { $0 } }

    func advance(seconds: Int64) { clock.withLock { $0 = $0.adding(seconds: seconds) } }

    // MARK: Parties

    func setCredentials(
        _ environment: PushEnvironment = .production, _ key: APNsSimulator.SigningKey? = nil, of app: AppID? = nil
    ) async throws {
        let key = key ?? simulator.signingKey
        watch.note(key.privateKey ?? "")
        let body = JSONValue.object([
            .init(name: "p8", value: .string(key.privateKey ?? "")), .init(name: "keyID", value: .string(key.id)),
            .init(name: "teamID", value: .string(key.teamID)),
        ])
        _ = try await domain.gateways.set(body, of: app ?? self.app, for: environment)
    }

    /// A device with a channel, and a token that the simulator knows.
    func device(
        _ token: String = token, _ environment: PushEnvironment = .production, knownIn known: PushEnvironment? = nil,
        of app: AppID? = nil, wake: WakeMode? = nil
    ) async throws -> Device {
        let (app, known) = (app ?? self.app, known ?? environment)
        var profile = DeviceProfile()
        profile.address = .init(platform: .apple, token: try PushToken(hexadecimal: token), environment: environment)
        let device = try await domain.devices.register(app: app, reporting: profile).device
        if known != .test { try book(token, known, app) }
        _ = try await channel(of: device, wake)
        return device
    }

    func book(_ token: String, _ environment: PushEnvironment = .production, _ app: AppID? = nil) throws {
        try simulator.add(
            APNsSimulator.Device(
                token: token, topic: (app ?? self.app).text, environment: environment == .sandbox ? .sandbox : .production))
    }

    @discardableResult func channel(of device: Device, _ wake: WakeMode? = nil) async throws -> PushChannel {
        let id = try #require(ChannelID("6f3f1e0e-1111-4222-8333-444455556666"))
        return try await domain.channels.register(id, device: device.serial, name: nil, vapidKey: nil, wake: wake).channel
    }

    func send(
        _ body: [UInt8] = Array("hello".utf8), to device: Device, urgency: Urgency = .normal,
        coding: ContentCoding.Name = .identity, topic: String? = nil, ttl: Int64 = 2_500_000
    ) async throws -> MessageID {
        try await domain.publisher.publish(
            PublishRequest(body: body, coding: ContentCoding(coding), ttl: ttl, urgency: urgency, topic: topic),
            to: try await channel(of: device)
        ).id
    }

    func acknowledge(_ id: MessageID, by device: Device) async throws {
        let inbox = domain.runtime.inbox
        inbox.finish(id, device: device.serial, .acknowledged, code: nil)
        await inbox.flush(device.serial)
    }

    // MARK: Results

    func pushes(for id: MessageID, of device: Device) async throws -> [PushRecord] {
        try await domain.pushes.pushes(for: id, of: device.serial, at: now)
    }

    func standings(_ id: MessageID, of device: Device) async throws -> [PushRecord.Standing] {
        try await pushes(for: id, of: device).map(\.standing)
    }

    func status(of device: Device) async throws -> DeviceStatus {
        try await domain.devices.registration(of: device).status
    }

    func shown(
        _ token: String = token, _ environment: APNsSimulator.Environment = .production
    ) -> [APNsSimulator.DeliveredNotification] {
        simulator.device(token, in: environment)?.shown ?? []
    }

    /// Runs the pushes, as long as the test does.
    static func run(
        timeout: Duration = .seconds(30), _ change: (inout APNsSimulator.Configuration) -> Void = { _ in },
        _ body: (GatewayWorld) async throws -> Void
    ) async throws {
        let world = try await GatewayWorld(timeout: timeout, change)
        let runner = PushRunner(
            outbox: world.domain.outbox, gateways: world.domain.gateways,
            logger: world.watch.logger)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await runner.run() }
            defer { group.cancelAll() }
            // Push credentials that are set before the runner opens the gateways are used later.
            try await world.domain.gateways.open()
            try await body(world)
        }
        await world.simulator.stop()
    }
}
