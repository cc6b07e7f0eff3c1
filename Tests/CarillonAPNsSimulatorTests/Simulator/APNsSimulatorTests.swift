import Foundation
import NIOCore
import NIOHPACK
import NIOPosix
import Testing

@testable import CarillonAPNsSimulator

/// The product as another project's test uses it.
@Suite(.timeLimit(.minutes(5)))
struct APNsSimulatorTests {
    private static func plain() -> APNsSimulator.Configuration {
        APNsSimulator.Configuration(ports: [Port(.push, isSecure: false), Port(.management, .production, isSecure: false)])
    }

    /// Sends pushes over prior knowledge, without waiting for anything.
    private func push(_ count: Int, to simulator: APNsSimulator) async throws -> any Channel {
        let channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .connect(host: "127.0.0.1", port: try #require(simulator.port())).get()
        var client = FrameClient()
        let token = try simulator.signingKey.makeProviderToken(issuedAt: simulator.now / 1000)
        var headers = FrameClient.push
        headers.add(name: "authorization", value: "bearer \(token)")
        for index in 0..<UInt32(count) {
            client.frame(0x1, 0x4, index * 2 + 1, try client.block(headers))
            client.frame(0x0, 0x1, index * 2 + 1, Array(#"{"aps":{"alert":"hello"}}"#.utf8))
        }
        try await channel.writeAndFlush(client.take())
        return channel
    }

    @Test func `a sent push can be awaited and inspected`() async throws {
        try await APNsSimulator.withSimulator(Self.plain()) { simulator in
            try simulator.add(Device(token: "AA", topic: "a.b"))
            let channel = try await push(1, to: simulator)
            try await simulator.waitForRequests(1)
            #expect(simulator.device("aa")?.shown.first?.body == "hello")
            #expect(simulator.totals.accepted == 1)
            #expect(simulator.requests.first?.keyID == simulator.signingKey.id)
            #expect(simulator.requests.first?.headers["authorization"] == nil)
            try await channel.close()
        }
    }

    @Test func `streams that arrived before the first push was accepted are refused and counted`() async throws {
        var configuration = Self.plain()
        configuration.faults = [FaultRule(.silence)]
        try await APNsSimulator.withSimulator(configuration) { simulator in
            let channel = try await push(5, to: simulator)
            try await simulator.waitForFaults(1)
            try await channel.close()
            try await simulator.hub.wait { $0.connections[1]?.closedAt != nil }
            let report = try #require(simulator.connections.first)
            #expect(report.requests == 1)
            #expect(report.refusedStreams == 4)
            #expect(report.mostStreamsAtFirst == 2)
            #expect(report.accepted == 0)
        }
    }

    @Test func `a simulator starts once, and stops twice`() async throws {
        let simulator = try APNsSimulator(Self.plain())
        #expect(simulator.port() == nil)
        try await simulator.start()
        #expect(simulator.port() != nil)
        #expect(simulator.port(.management, .production) != nil)
        #expect(simulator.port(.management, .sandbox) == nil)
        await #expect(throws: SimulatorError.self) { try await simulator.start() }
        await simulator.stop()
        await simulator.stop()
        #expect(simulator.port() == nil)
    }

    @Test func `an address that is in use is reported, and nothing is left open`() async throws {
        try await APNsSimulator.withSimulator(Self.plain()) { simulator in
            let taken = try #require(simulator.port())
            let second = try APNsSimulator(
                APNsSimulator.Configuration(ports: [Port(.push, isSecure: false), Port(.push, port: taken, isSecure: false)])
            )
            do throws(SimulatorError) {
                try await second.start()
                Issue.record("it started")
            } catch {
                #expect(error.code == .addressUnavailable)
                #expect(error.message.contains("127.0.0.1:\(taken) cannot be listened on: another process listens there"))
            }
        }
    }

    @Test(arguments: [
        (EADDRINUSE, "another process listens there"), (EADDRNOTAVAIL, "no such address"), (EACCES, "permission denied"),
        (EMFILE, "cannot be used"),
    ])
    func `an address that cannot be listened on is reported with a sentence`(number: Int32, words: String) {
        let error = SimulatorError(IOError(errnoCode: number, reason: "bind(descriptor:ptr:bytes:)"), listeningOn: "::1", 80)
        #expect(error.message.hasPrefix("[::1]:80 cannot be listened on: "))
        #expect(error.message.contains(words))
        #expect(!error.message.contains("bind("))
    }

    @Test func `waiting ends with the task that waits`() async throws {
        let simulator = try APNsSimulator(Self.plain())
        let task = Task { try await simulator.waitForRequests(1) }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test func `settings that cannot be are refused`() throws {
        let simulator = try APNsSimulator(Self.plain())
        #expect(throws: SimulatorError.self) { try simulator.setFaults([FaultRule(.silence, rate: -0.1)]) }
        #expect(throws: SimulatorError.self) { try simulator.add(FaultRule(.answer(status: 99, .empty))) }
        #expect(throws: SimulatorError.self) { try simulator.add(Device(token: "x", topic: "a.b")) }
        #expect(throws: SimulatorError.self) { try simulator.add(Device(token: "aa", topic: "a b")) }
        var conditions = Conditions()
        conditions.connectionWindow = 70_000
        #expect(throws: SimulatorError.self) { try simulator.setConditions(conditions) }
        #expect(simulator.conditions == Conditions())
        #expect(simulator.faults.isEmpty)
    }
}
