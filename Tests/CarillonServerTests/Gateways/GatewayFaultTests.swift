import CarillonAPNsSimulator
import CarillonBasics
import CarillonCore
import CarillonWire
import TestSupport
import Testing

@testable import CarillonServer

/// A push with a fault of the token, the credentials or the service.
@Suite(.timeLimit(.minutes(5)))
struct GatewayFaultTests {
    private func handed(_ id: MessageID, _ device: Device, _ world: GatewayWorld) async throws {
        try await eventually { try await world.standings(id, of: device).contains(.state(.handed)) }
    }

    private func register(_ token: String, _ device: Device, _ world: GatewayWorld) async throws {
        var profile = DeviceProfile()
        profile.address = .init(platform: .apple, token: try PushToken(hexadecimal: token), environment: .production)
        _ = try await world.domain.devices.update(device, from: nil, confirms: true) { [profile] _ in profile }
    }

    // MARK: Tokens

    @Test func `410 suspends the device, and waiting pushes are sent when it registers again`() async throws {
        try await GatewayWorld.run { world in
            try await world.setCredentials()
            let device = try await world.device()
            world.advance(seconds: 60)
            world.simulator.changeDevice(GatewayWorld.token, in: .production) {
                $0.state = .unregistered(since: world.now.milliseconds)
            }
            let id = try await world.send(to: device)
            try await eventually { try await world.status(of: device) == .suspended(.tokenDead) }
            #expect(try await world.standings(id, of: device) == [.state(.rejected), .suspended])
            try world.book("00ff00aa")
            try await register("00ff00aa", device, world)
            try await handed(id, device, world)
            #expect(world.shown("00ff00aa").count == 1)
        }
    }

    @Test(arguments: [
        APNsSimulator.Fault.reject(.unregistered), .reject(.expiredToken), .reject(.badDeviceToken),
        .reject(.deviceTokenNotForTopic),
    ])
    func `an alert that the service refuses because of its token is shown at the next one`(
        _ fault: APNsSimulator.Fault
    ) async throws {
        try await GatewayWorld.run { world in
            try await world.setCredentials()
            let text = JSONValue.object([.init(name: "title", value: .string("News"))])
            try await world.domain.gateways.setAlert(try AlertText(text), of: world.app)
            let device = try await world.device()
            world.advance(seconds: 60)
            try world.simulator.add(APNsSimulator.FaultRule(fault, pathSuffix: GatewayWorld.token))
            let id = try await world.send(to: device, urgency: .high)
            try await eventually {
                let standing = try await world.standings(id, of: device).first
                return standing == .state(.rejected) || standing == .state(.parked)
            }
            try world.book("00ff00aa")
            world.advance(seconds: 5)
            try await register("00ff00aa", device, world)
            try await handed(id, device, world)
            let shown = try #require(world.shown("00ff00aa").first)
            let payload = JSONValue(parsing: shown.payload)
            #expect(payload?["aps"]?["alert"]?["title"] == .string("News"))
            #expect(world.shown("00ff00aa").count == 1)
        }
    }

    @Test func `410 with a time before the registration does not suspend`() async throws {
        try await GatewayWorld.run { world in
            try await world.setCredentials()
            let device = try await world.device()
            world.simulator.changeDevice(GatewayWorld.token, in: .production) {
                $0.state = .unregistered(since: world.now.adding(seconds: -60).milliseconds)
            }
            let id = try await world.send(to: device)
            try await eventually { try await world.pushes(for: id, of: device).first?.reason == "Unregistered" }
            #expect(try await world.status(of: device) == .registered)
            world.simulator.changeDevice(GatewayWorld.token, in: .production) { $0.state = .active }
            world.advance(seconds: 900)
            try await handed(id, device, world)
        }
    }

    @Test func `a token of the sandbox is found there, and stays there`() async throws {
        try await GatewayWorld.run { world in
            try await world.setCredentials(.production)
            try await world.setCredentials(.sandbox)
            let device = try await world.device(GatewayWorld.token, .production, knownIn: .sandbox)
            let id = try await world.send(to: device)
            try await handed(id, device, world)
            #expect(world.shown(GatewayWorld.token, .sandbox).count == 1)
            #expect(try await world.domain.devices.registration(of: device).profile.address?.environment == .sandbox)
            #expect(try await world.pushes(for: id, of: device).count { $0.standing == .state(.handed) } == 1)
        }
    }

    @Test func `a token that is unknown in both environments suspends the device`() async throws {
        try await GatewayWorld.run { world in
            try await world.setCredentials(.production)
            try await world.setCredentials(.sandbox)
            let device = try await world.device()
            world.simulator.removeDevice(GatewayWorld.token, in: .production)
            _ = try await world.send(to: device)
            try await eventually { try await world.status(of: device) == .suspended(.tokenDead) }
            #expect(world.simulator.totals.requests == 2)
        }
    }

    // MARK: Credentials

    @Test func `a revoked key delays the app's pushes and costs no attempt, and a new one releases them`() async throws {
        try await GatewayWorld.run { world in
            try await world.setCredentials()
            let device = try await world.device()
            world.simulator.revokeKey(world.simulator.signingKey.id)
            let id = try await world.send(to: device)
            try await eventually { world.domain.gateways.pausedQueues.map(\.reason) == ["InvalidProviderToken"] }
            #expect(world.domain.gateways.pausedQueues.map(\.app) == ["com.example.app"])
            let others = try await withThrowingTaskGroup(of: (Device, MessageID).self) { group in
                for number in 0..<50 {
                    group.addTask {
                        let other = try await world.device("00ff\(1000 + number)")
                        return (other, try await world.send(to: other))
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            let requests = world.simulator.totals.requests
            // Each minute one push checks whether the key is valid again.
            for minute in 1...3 {
                world.advance(seconds: 60)
                try await eventually { world.simulator.totals.requests == requests + minute }
                try await eventually { world.domain.outbox.underWay == 0 }
            }
            #expect(try await world.status(of: device) == .registered)
            let key = try APNsSimulator.SigningKey(id: "ROTATED001", teamID: world.simulator.signingKey.teamID)
            try world.simulator.add(key)
            try await world.setCredentials(.production, key)
            try await handed(id, device, world)
            for (other, id) in others { try await handed(id, other, world) }
            #expect(world.domain.gateways.pausedQueues.isEmpty)
        }
    }

    @Test func `one app's broken key does not slow another's pushes`() async throws {
        try await GatewayWorld.run { world in
            let other = try #require(AppID("com.example.other"))
            _ = try await world.domain.apps.create(other)
            world.simulator.add(.init(bundleID: other.text, teamID: world.simulator.signingKey.teamID))
            let stranger = try APNsSimulator.SigningKey(id: "STRANGER01", teamID: "OTHERTEAM1")
            try await world.setCredentials(.production, stranger, of: other)
            try await world.setCredentials()
            var broken: [Device] = []
            for number in 0..<30 {
                let device = try await world.device("bb\(1000 + number)", of: other)
                _ = try await world.send(to: device)
                broken.append(device)
            }
            let device = try await world.device()
            let id = try await world.send(to: device)
            try await handed(id, device, world)
            try await eventually { world.domain.gateways.pausedQueues.map(\.app) == [other.text] }
        }
    }

    // MARK: The service

    @Test func `a timeout does not count as an answer, and the push is repeated under its name`() async throws {
        try await GatewayWorld.run(timeout: .seconds(12)) { world in
            try await world.setCredentials()
            try world.simulator.add(APNsSimulator.FaultRule(.silence, times: 2))
            let device = try await world.device()
            let id = try await world.send(to: device)
            try await eventually { world.simulator.totals.faults == 1 }
            try await eventually { try await world.pushes(for: id, of: device).first?.reason == "timedOut" }
            world.advance(seconds: 29)
            #expect(try await world.pushes(for: id, of: device).first?.standing == .state(.scheduled))
            world.advance(seconds: 9)
            try await eventually { world.simulator.totals.faults == 2 }
            try await eventually { world.domain.outbox.underWay == 0 }
            world.advance(seconds: 75)
            try await handed(id, device, world)
            #expect(try await world.status(of: device) == .registered)
        }
    }

    @Test func `while the service is away pushes wait, and are sent when it is back`() async throws {
        // It connects again where it was.
        var configuration = APNsSimulator.Configuration(
            ports: [.init(.push, .production, port: try FreePort.next())])
        configuration.dataDirectory = try TemporaryDirectory.make()
        let same = configuration
        try await GatewayWorld.run(timeout: .seconds(2)) {
            $0 = same
        } _: { world in
            try await world.setCredentials()
            let device = try await world.device()
            await world.simulator.stop()
            let id = try await world.send(to: device)
            // An hour, minute by minute.
            for _ in 0..<60 {
                world.advance(seconds: 60)
                try await eventually { world.domain.outbox.underWay == 0 }
            }
            try await eventually { !world.domain.gateways.pausedQueues.isEmpty }
            #expect(try await world.status(of: device) == .registered)
            #expect(try await world.pushes(for: id, of: device).allSatisfy { $0.standing != .state(.handed) })
            let again = try await Self.started(same)
            try again.add(
                APNsSimulator.Device(token: GatewayWorld.token, topic: world.app.text, environment: .production))
            try await eventually {
                world.advance(seconds: 60)
                return try await world.standings(id, of: device).contains(.state(.handed))
            }
            #expect(world.domain.gateways.pausedQueues.isEmpty)
            #expect(again.device(GatewayWorld.token, in: .production)?.shown.count == 1)
            await again.stop()
        }
    }

    /// The port may belong to another process for a moment.
    private static func started(_ configuration: APNsSimulator.Configuration) async throws -> APNsSimulator {
        for _ in 0..<200 {
            let simulator = try APNsSimulator(configuration)
            if (try? await simulator.start()) != nil { return simulator }
            try await Task.sleep(for: .milliseconds(50))
        }
        throw NeverHappened()
    }

    @Test(arguments: [
        APNsSimulator.FaultRule(.reject(.internalServerError), times: 1),
        APNsSimulator.FaultRule(.reject(.tooManyRequests), times: 1),
        APNsSimulator.FaultRule(.close, at: .processed, times: 1),
        APNsSimulator.FaultRule(.reset(.internalError), at: .processed, times: 1),
        APNsSimulator.FaultRule(.breakOff(.internalError), at: .processed, times: 1),
        APNsSimulator.FaultRule(.goAway(reason: "Shutdown", last: .before), times: 1),
    ])
    func `a fault of the service never suspends, and the push is sent once more under its name`(
        _ rule: APNsSimulator.FaultRule
    ) async throws {
        try await GatewayWorld.run { world in
            try await world.setCredentials()
            try world.simulator.add(rule)
            let device = try await world.device()
            let id = try await world.send(to: device)
            try await eventually {
                world.advance(seconds: 60)
                return try await world.standings(id, of: device).contains(.state(.handed))
            }
            #expect(try await world.status(of: device) == .registered)
            let names = Set(world.simulator.requests.compactMap { $0.headers["apns-id"] })
            #expect(names.count == 1)
        }
    }

    @Test func `a push that the service calls wrong is parked, and is sent when it was repaired`() async throws {
        try await GatewayWorld.run { world in
            try await world.setCredentials()
            try world.simulator.add(APNsSimulator.FaultRule(.reject(.badTopic), times: 1))
            let device = try await world.device()
            let id = try await world.send(to: device)
            try await eventually { try await world.standings(id, of: device).contains(.state(.parked)) }
            let app = try #require(try await world.domain.apps.serial(of: world.app))
            #expect(try await world.domain.pushes.parkedPushes(of: app, in: .all, limit: 10).map(\.reason) == ["BadTopic"])
            #expect(try await world.domain.pushes.requeueParkedPushes(of: app, in: .all, at: world.now) == 1)
            try await handed(id, device, world)
        }
    }
}
