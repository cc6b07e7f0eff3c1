import Foundation
import NIOCore

/// Measures pushes to devices that are not connected, through the outbox, to a simulator of APNs on the same machine.
struct WakeMeasurement: Sendable {
    let scale: Scale
    let setup: CarillonSetup

    struct Result: Sendable {
        /// Pushes per second, from the first message until all pushes have a result.
        var settledPerSecond: Double
        var cpuMicroseconds: Double
        /// Pushes per second that waited for push credentials, after these were set.
        var drainedPerSecond: Double
        var drainCPU: Double
    }

    /// Sends one message to each of many devices.
    func measure() async throws -> Result {
        let simulator = try await SimulatedAPNs.start(setup.executable, setup.scratch)
        defer { setup.scratch.remove("simulator") }
        do {
            let result = try await measure(simulator)
            await simulator.process.stop()
            return result
        } catch {
            await simulator.process.stop()
            throw error
        }
    }

    private func measure(_ simulator: SimulatedAPNs) async throws -> Result {
        let count = scale.wakes
        let devices = try await setup.register(2 * count, data: "wakes", withPushTokens: true)
        defer { setup.scratch.remove("wakes") }
        // The pushes of the first half wait for push credentials.
        var waiting = try await setup.startPushing(data: "wakes", devices: Array(devices[..<count]), simulator)
        do {
            _ = try await send(count, waiting.server)
            let before = try waiting.server.usage()
            try await setup.setCredentials(waiting, simulator)
            let start = nanoseconds()
            try await waiting.awaitHanded(count)
            let seconds = Double(nanoseconds() - start) / 1e9
            let drainCPU = (try waiting.server.usage().cpuMicroseconds - before.cpuMicroseconds) / Double(count)
            await waiting.server.process.stop()
            waiting = try await setup.startPushing(data: "wakes", devices: Array(devices[count...]), simulator)
            let earlier = try waiting.server.usage()
            let began = nanoseconds()
            _ = try await send(count, waiting.server)
            try await waiting.awaitHanded(count)
            let all = Double(nanoseconds() - began) / 1e9
            let used = try waiting.server.usage().cpuMicroseconds - earlier.cpuMicroseconds
            await waiting.server.process.stop()
            return Result(
                settledPerSecond: Double(count) / all, cpuMicroseconds: used / Double(count),
                drainedPerSecond: Double(count) / seconds, drainCPU: drainCPU)
        } catch {
            await waiting.server.process.stop()
            throw error
        }
    }

    private func send(_ count: Int, _ server: CarillonUnderTest) async throws -> AcceptMeasurement.Result {
        try await AcceptMeasurement.send(
            count, of: ByteBuffer(repeating: UInt8(ascii: "b"), count: 256), to: server.devices.count,
            senders: scale.senders, server)
    }

    /// Measures many messages to few devices that are not connected, with and without push tokens. Returns the CPU time of
    /// each message.
    func measureSleepers() async throws -> (withTokens: Double, without: Double, wakes: Int) {
        let simulator = try await SimulatedAPNs.start(setup.executable, setup.scratch)
        defer {
            setup.scratch.remove("simulator")
            for name in ["sleepers", "tokenless"] { setup.scratch.remove(name) }
        }
        do {
            let devices = try await setup.register(scale.offlineDevices, data: "sleepers", withPushTokens: true)
            let pushing = try await setup.startPushing(data: "sleepers", devices: devices, simulator)
            try await setup.setCredentials(pushing, simulator)
            let with = try await send(scale.offlineMessages, pushing.server)
            let wakes = try await pushing.handed()
            await pushing.server.process.stop()
            let others = try await setup.register(scale.offlineDevices, data: "tokenless")
            let plain = try await setup.startPushing(data: "tokenless", devices: others, simulator)
            let without = try await send(scale.offlineMessages, plain.server)
            await plain.server.process.stop()
            await simulator.process.stop()
            return (with.cpuMicroseconds, without.cpuMicroseconds, wakes)
        } catch {
            await simulator.process.stop()
            throw error
        }
    }
}

/// A server that sends pushes, and the address of its metrics.
struct PushingCarillon: Sendable {
    let server: CarillonUnderTest
    let metrics: SocketAddress
    let admin: String

    /// Returns how many pushes APNs accepted, by the server's metrics.
    func handed() async throws -> Int {
        let answer = try await HTTPConnection.exchange(HTTPRequest.bytes("GET", "/metrics"), metrics)
        let name: StaticString = "carillon_pushes_total{result=\"handed\"} "
        guard let place = answer.body.offset(of: name) else { return 0 }
        return answer.body.number(at: place + name.utf8CodeUnitCount)
    }

    func awaitHanded(_ count: Int) async throws {
        let start = ContinuousClock.now
        while try await handed() < count {
            guard ContinuousClock.now - start < .seconds(120) else {
                throw NotMeasured("\(try await handed()) of \(count) pushes were handed over")
            }
            try await Task.sleep(for: .milliseconds(10))
        }
    }
}

extension CarillonSetup {
    func startPushing(data name: String, devices: [Device], _ simulator: SimulatedAPNs) async throws -> PushingCarillon {
        let keyFile = scratch.file("\(name)-key")
        let log = scratch.file("\(name)-command.log")
        let printed = try await ServerProcess.output(
            executable,
            ["keys", "create", "--role", "admin", "--data", scratch.file(name), "--key-file", keyFile, "--json"], log: log)
        guard let key = ByteBuffer(string: printed).text(after: "\"secret\":\"") else {
            throw NotMeasured("carillon keys create printed no secret")
        }
        let metrics = try freePort()
        let server = try launch(
            data: name, devices: devices, metricsPort: metrics,
            more: ["--key-file", keyFile],
            settings: [
                "apns-production": "localhost:\(simulator.port)", "apns-ca": simulator.data + "/authority.pem",
            ])
        try await waitUntilReady(server)
        return PushingCarillon(
            server: server, metrics: try SocketAddress(ipAddress: "127.0.0.1", port: metrics), admin: String(buffer: key))
    }

    func setCredentials(_ pushing: PushingCarillon, _ simulator: SimulatedAPNs) async throws {
        let port = pushing.server.address.port ?? 0
        _ = try await ServerProcess.output(
            executable,
            [
                "apps", "credentials", "set", Self.app, "--server", "http://127.0.0.1:\(port)", "--key", pushing.admin,
                "--p8", simulator.data + "/AuthKey_SIMULATED1.p8", "--team-id", "SIMTEAM001",
            ], log: scratch.file("credentials.log"))
    }
}
