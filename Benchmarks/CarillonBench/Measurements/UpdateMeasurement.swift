import Foundation
import NIOCore

/// Measures audience updates over the HTTP API: published with few and with many devices, polled, and processed.
struct UpdateMeasurement: Sendable {
    let scale: Scale
    let setup: CarillonSetup

    struct Result: Sendable {
        var name: String
        var value: Double
    }

    private static let data = "updates"
    private static let regions = 1000
    /// The number of live updates at the end, one for each region. Half of them are published with few devices.
    private static let updates = 1000
    private static let few = 1000
    /// The time without a poll after which a device counts as absent.
    private static let absence = Duration.seconds(8)

    private struct World: Sendable {
        var server: CarillonUnderTest
        var client: String
        var sender: String
        var devices: [Device] = []
    }

    /// `@unchecked Sendable`: it is used only on ``LoadLoop`` until the pumps are done.
    private final class Phones: @unchecked Sendable {
        var positions: [String] = []
        var updates: [String] = []
    }

    func measure() async throws -> [Result] {
        defer { setup.scratch.remove(Self.data) }
        var world = try await start()
        do {
            let results = try await measure(&world)
            await world.server.process.stop()
            return results
        } catch {
            await world.server.process.stop()
            throw error
        }
    }

    private func start() async throws -> World {
        _ = try await setup.register(0, data: Self.data)
        func run(_ arguments: [String]) async throws -> String {
            try await ServerProcess.output(
                setup.executable, arguments + ["--data", setup.scratch.file(Self.data)],
                log: setup.scratch.file("updates-command.log"))
        }
        func key(_ role: String) async throws -> String {
            let printed = try await run(["keys", "create", "--json", "--role", role, "--app", CarillonSetup.app])
            guard let secret = ByteBuffer(string: printed).text(after: "\"secret\":\"") else {
                throw NotMeasured("carillon keys create printed no secret")
            }
            return String(buffer: secret)
        }
        let (client, sender) = (try await key("client"), try await key("sender"))
        _ = try await run(["apps", "parameters", "set", CarillonSetup.app, "region=string"])
        // The connections of the waiting devices, and of the measurement.
        let server = try setup.launch(
            data: Self.data, devices: [], settings: ["max-connections": String(scale.connections + 100)])
        try await setup.waitUntilReady(server)
        return World(server: server, client: client, sender: sender)
    }

    private func measure(_ world: inout World) async throws -> [Result] {
        let phones = Phones()
        var results: [Result] = []
        for (count, name) in [(Self.few, "1,000"), (scale.updateDevices, Figure.text(Double(scale.updateDevices)))] {
            let registrar = DeviceRegistrar(
                address: world.server.address, key: world.client, app: CarillonSetup.app, withChannels: false)
            let before = world.devices.count
            world.devices += try await registrar.register(count - before, from: before)
            _ = try await poll(
                world, before..<count, phones, #","parameters":{"revision":"1","values":{"region":"REGION"}}"#)
            try await Task.sleep(for: Self.absence)
            let half = Self.updates / 2
            let latencies = try await publish(world, count == Self.few ? 0..<half : half..<Self.updates)
            results += [
                Result(
                    name: "update published among \(name) devices: 50th percentile, ms",
                    value: latencies[latencies.count / 2]),
                Result(name: "the same, 99th percentile, ms", value: latencies[latencies.count * 99 / 100]),
            ]
        }
        let probe = 0..<min(scale.updateProbe, scale.updateDevices)
        func rate(_ seconds: Double) -> Double { Double(probe.count) / seconds }
        let given = try await poll(world, probe, phones, #","max":1"#)
        let said = try await poll(world, probe, phones, #","max":0"#, withResults: true)
        results.append(
            Result(
                name: "updates matched, given, received and done per second, in two polls each", value: rate(given + said)))
        let empty = try await poll(world, probe, phones, "")
        results.append(
            Result(
                name: "empty polls per second, with \(Figure.text(Double(Self.updates))) live updates", value: rate(empty)))
        let changed = try await poll(
            world, probe, phones, #","max":0,"parameters":{"revision":"2","values":{"region":"elsewhere"}}"#)
        results.append(Result(name: "changed parameters per second", value: rate(changed)))
        results.append(try await notifyAll(world, phones))
        return results
    }

    /// Polls for devices, 64 at a time. Returns the seconds that it took.
    private func poll(
        _ world: World, _ range: Range<Int>, _ phones: Phones, _ members: String, withResults: Bool = false,
        connections count: Int = 64
    ) async throws -> Double {
        let (address, devices) = (world.server.address, world.devices)
        let start = nanoseconds()
        try await LoadLoop.run {
            while phones.positions.count < devices.count {
                phones.positions.append("")
                phones.updates.append("")
            }
            return HTTPConnection.open(count, address).flatMap { connections in
                RequestPump.run(range.count, over: connections) { index in
                    let device = range.lowerBound + index
                    var body = #"{"protocol":1,"kinds":["content"]"#
                    body += members.replacing("REGION", with: "r\(device % Self.regions)")
                    if !phones.positions[device].isEmpty { body += #","position":"\#(phones.positions[device])""# }
                    if withResults {
                        body += #","results":[{"update":"\#(phones.updates[device])","entry":1,"result":"done"}]"#
                    }
                    return HTTPRequest.bytes(
                        "POST", "/v1/inbox", headers: ["Authorization: Bearer \(devices[device].credential)"],
                        body: ByteBuffer(string: body + "}"))
                } check: { index, answer in
                    let device = range.lowerBound + index
                    guard answer.status == 200, let position = answer.body.text(after: "\"position\":\""),
                        answer.body.offset(of: "\"ignored\"") == nil
                    else { return false }
                    phones.positions[device] = String(buffer: position)
                    if let update = answer.body.text(after: "\"update\":{\"id\":\"") {
                        phones.updates[device] = String(buffer: update)
                    }
                    return true
                }.always { _ in for connection in connections { connection.close() } }
            }
        }
        return Double(nanoseconds() - start) / 1e9
    }

    /// Publishes one update after the other, each for another region. Returns the durations in milliseconds, ascending.
    private func publish(_ world: World, _ regions: Range<Int>) async throws -> [Double] {
        let (address, sender) = (world.server.address, world.sender)
        final class Times: @unchecked Sendable {
            var began: UInt64 = 0
            var milliseconds: [Double] = []
        }
        let times = Times()
        try await LoadLoop.run {
            HTTPConnection.open(1, address).flatMap { connections in
                RequestPump.run(regions.count, over: connections) { index in
                    times.began = nanoseconds()
                    let region = regions.lowerBound + index
                    return Self.update("region == 'r\(region)'", object: region, sender)
                } check: { _, answer in
                    times.milliseconds.append(Double(nanoseconds() - times.began) / 1e6)
                    return answer.status == 201
                }.always { _ in for connection in connections { connection.close() } }
            }
        }
        return times.milliseconds.sorted()
    }

    private static func update(_ audience: String?, object: Int, _ sender: String) -> ByteBuffer {
        let audience = audience.map { #","audience":"\#($0)""# } ?? ""
        return HTTPRequest.bytes(
            "POST", "/v1/updates", headers: ["Authorization: Bearer \(sender)"],
            body: ByteBuffer(
                string: #"{"kind":"content","payload":{"action":"refresh","object":"o\#(object)"}\#(audience)}"#))
    }

    /// Measures the time until all waiting devices have received an update for all devices.
    private func notifyAll(_ world: World, _ phones: Phones) async throws -> Result {
        let count = min(scale.connections, scale.updateDevices)
        _ = try await poll(world, 0..<count, phones, "")
        async let waiting = poll(world, 0..<count, phones, #","wait":60"#, connections: count)
        try await Task.sleep(for: Self.absence)
        let began = nanoseconds()
        let answer = try await HTTPConnection.exchange(Self.update(nil, object: -1, world.sender), world.server.address)
        guard answer.status == 201 else { throw NotMeasured("the update was answered with \(answer.description)") }
        _ = try await waiting
        return Result(
            name: "seconds until the last of \(Figure.text(Double(count))) devices that wait has what is for all",
            value: Double(nanoseconds() - began) / 1e9)
    }
}
