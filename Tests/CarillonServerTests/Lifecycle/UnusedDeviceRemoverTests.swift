import CarillonCore
import CarillonWire
import HTTPTypes
import Logging
import Synchronization
import Testing

@testable import CarillonServer

/// Unused devices are removed, by clocks that the test moves.
@Suite(.timeLimit(.minutes(5)))
struct UnusedDeviceRemoverTests {
    private struct Recorder: LogHandler {
        final class Lines: Sendable {
            let all = Mutex<[String]>([])
        }

        let lines: Lines
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.info

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let values = (event.metadata ?? [:]).sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
            lines.all.withLock { $0.append(([event.message.description] + values).joined(separator: " ")) }
        }
    }

    private final class Clocks: Sendable {
        private let moments = Mutex((wall: Timestamp(milliseconds: 1_700_000_000_000), ticks: Int64(9)))
        var time: TimeSource { TimeSource { self.moments.withLock { $0.wall } } }
        var ticks: TickSource { TickSource { self.moments.withLock { $0.ticks } } }

        func pass(_ seconds: Int64) {
            moments.withLock { $0 = ($0.wall.adding(seconds: seconds), $0.ticks + seconds * 1_000_000_000) }
        }

        func set(by seconds: Int64) { moments.withLock { $0.wall = $0.wall.adding(seconds: seconds) } }
    }

    private struct World {
        static let day: Int64 = 86_400

        let clocks: Clocks
        let routes: RouteFixture
        let remover: UnusedDeviceRemover
        let lines = Recorder.Lines()

        init(_ clocks: Clocks = Clocks(), store: (any Store)? = nil) async throws {
            self.clocks = clocks
            routes = try await RouteFixture(store: store, time: clocks.time, ticks: clocks.ticks)
            let lines = lines
            remover = UnusedDeviceRemover(
                domain: routes.domain, settings: ServerSettings(dataDirectory: ""),
                logger: Logger(label: "test", factory: { _ in Recorder(lines: lines) }))
        }

        /// As the sweeper does it.
        func run(_ seconds: Int64) async throws {
            clocks.pass(seconds)
            try await routes.domain.served.write()
            try await remover.remove()
        }

        func anonymous() async throws -> Device {
            let devices = routes.domain.devices
            return try await devices.registerAnonymous(
                UserAgentID(random: .system), app: try #require(AppID("com.example.app")), from: nil)
        }

        func knows(_ id: String) async throws -> Bool {
            try await routes.store.device(try #require(DeviceID(id))) != nil
        }
    }

    @Test
    func
        `a clock that is 300 days ahead for eight seconds removes no device, and a device is removed after 270 days of service`()
        async throws
    {
        let world = try await World()
        let (id, credential, _) = try await world.routes.device()
        let anonymous = try await world.anonymous().id.description
        try await world.run(7200)
        world.clocks.set(by: 300 * World.day)
        for _ in 0..<8 { try await world.run(1) }
        world.clocks.set(by: -300 * World.day)
        try await world.run(1)
        #expect(try await world.routes.request(.get, "/v1/device", key: credential).status == 200)
        #expect(try await world.knows(anonymous))
        #expect(world.lines.all.withLock { $0 }.isEmpty)

        for _ in 0..<3 { try await world.run(World.day) }
        #expect(try await !world.knows(anonymous))
        for _ in 0..<266 { try await world.run(World.day) }
        #expect(try await world.knows(id))
        for _ in 0..<2 { try await world.run(World.day) }
        #expect(try await !world.knows(id))
        #expect(
            world.lines.all.withLock { $0 } == [
                "device removed app=com.example.app device=\(anonymous) last_seen=2023-11-14T22:13:20.000Z reason=anonymous_unused",
                "device removed app=com.example.app device=\(id) last_seen=2023-11-14T22:13:20.000Z reason=inactive",
            ])
    }

    @Test func `after the server was off for 31 days its anonymous devices have their time to connect`() async throws {
        var world = try await World()
        _ = try await world.routes.device()
        let anonymous = try await world.anonymous()
        let id = anonymous.id.description
        _ = try await world.routes.domain.channels.register(
            ChannelID(Bytes16(high: 1, low: 1)), device: anonymous.serial, name: nil, vapidKey: nil)
        try await world.run(60)
        world.clocks.set(by: 31 * World.day)
        world = try await World(world.clocks, store: world.routes.store)
        for _ in 0..<29 { try await world.run(World.day) }
        #expect(try await world.knows(id))
        for _ in 0..<2 { try await world.run(World.day) }
        #expect(try await !world.knows(id))
        #expect(world.lines.all.withLock { $0.first }?.hasSuffix("reason=anonymous_idle") == true)
    }

    @Test func `nobody is removed in the first hour of a run, however long a device was away`() async throws {
        var world = try await World()
        _ = try await world.routes.device()
        let id = try await world.anonymous().id.description
        for _ in 0..<2 { try await world.run(World.day / 2) }
        world = try await World(world.clocks, store: world.routes.store)
        try await world.run(3599)
        #expect(try await world.knows(id))
        try await world.run(1)
        #expect(try await !world.knows(id))
    }

    @Test(arguments: [300 * 86_400, -300 * 86_400, 3600, -3600] as [Int64])
    func `nobody is removed in the hour after the wall clock was set`(step: Int64) async throws {
        let world = try await World()
        _ = try await world.routes.device()
        let id = try await world.anonymous().id.description
        for _ in 0..<24 { try await world.run(3600) }
        world.clocks.set(by: step)
        #expect(world.routes.domain.served.takeStep() == step)
        #expect(world.routes.domain.served.takeStep() == nil, "once")
        try await world.run(3599)
        #expect(try await world.knows(id))
        world.clocks.set(by: -step)
        #expect(world.routes.domain.served.takeStep() == -step)
        try await world.run(3599)
        #expect(try await world.knows(id), "another step begins another hour")
        try await world.run(1)
        #expect(try await !world.knows(id))
    }
}
