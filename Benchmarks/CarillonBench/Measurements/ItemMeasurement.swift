import Foundation
import NIOCore
import Synchronization

/// Measures items and item subscriptions: in the engine alone, in the process of `ItemBench`, and over the HTTP API.
struct ItemMeasurement: Sendable {
    let scale: Scale
    let setup: CarillonSetup

    struct Result: Sendable {
        var name: String
        var value: Double
    }

    func measure() async throws -> [Result] {
        try await engine() + door()
    }

    // MARK: The engine

    private func engine() async throws -> [Result] {
        let path = URL(fileURLWithPath: setup.executable).deletingLastPathComponent().appending(path: "ItemBench").path
        let arguments = scale.isQuick ? ["--quick"] : []
        let printed = try await ServerProcess.output(path, arguments, log: setup.scratch.file("item-bench.log"))
        return try printed.split(separator: "\n").map { line in
            let parts = line.split(separator: "\t")
            guard parts.count == 2, let value = Double(parts[1]) else { throw NotMeasured("ItemBench printed \(line)") }
            return Result(name: String(parts[0]), value: value)
        }
    }

    // MARK: The HTTP API

    private static let data = "items"
    private static let items = 10_000
    private static let each = 100

    private func door() async throws -> [Result] {
        defer { setup.scratch.remove(Self.data) }
        let devices = try await setup.register(scale.firings / Self.each, data: Self.data, withPushTokens: true)
        var world = try await start(devices)
        do {
            var results = try await publish(world)
            results += try await subscribe(world)
            await world.server.process.stop()
            world = try await start(devices)
            results += try await fire(world)
            results += try await burden(world)
            await world.server.process.stop()
            return results
        } catch {
            await world.server.process.stop()
            throw error
        }
    }

    private final class Firing: Sendable {
        let isOver = Mutex(false)
    }

    private struct World: Sendable {
        var server: CarillonUnderTest
        var metrics: SocketAddress
        var sender: String

        func post(_ path: String, _ body: String) -> ByteBuffer {
            HTTPRequest.bytes("POST", path, headers: ["Authorization: Bearer \(sender)"], body: ByteBuffer(string: body))
        }

        func notified() async throws -> Int {
            let answer = try await HTTPConnection.exchange(HTTPRequest.bytes("GET", "/metrics"), metrics)
            let name: StaticString = "carillon_firings_total{result=\"told\"} "
            guard let place = answer.body.offset(of: name) else { return 0 }
            return answer.body.number(at: place + name.utf8CodeUnitCount)
        }
    }

    private func start(_ devices: [Device]) async throws -> World {
        func key(_ arguments: [String]) async throws -> String {
            let printed = try await ServerProcess.output(
                setup.executable, ["keys", "create", "--json", "--data", setup.scratch.file(Self.data)] + arguments,
                log: setup.scratch.file("items-command.log"))
            guard let secret = ByteBuffer(string: printed).text(after: "\"secret\":\"") else {
                throw NotMeasured("carillon keys create printed no secret")
            }
            return String(buffer: secret)
        }
        let (sender, admin) = (
            try await key(["--role", "sender", "--app", CarillonSetup.app]), try await key(["--role", "admin"])
        )
        let port = try freePort()
        let server = try setup.launch(data: Self.data, devices: devices, metricsPort: port)
        try await setup.waitUntilReady(server)
        let rules = HTTPRequest.bytes(
            "PUT", "/v1/apps/\(CarillonSetup.app)/items", headers: ["Authorization: Bearer \(admin)"],
            body: ByteBuffer(string: #"{"items":[{"pattern":"*","open":true}]}"#))
        let answer = try await HTTPConnection.exchange(rules, server.address)
        guard answer.status == 200 else { throw NotMeasured("the rules were answered with \(answer.description)") }
        return World(
            server: server, metrics: try SocketAddress(ipAddress: "127.0.0.1", port: port), sender: sender)
    }

    /// Sends requests over some connections, and returns the seconds that it took.
    private func send(
        _ count: Int, over connections: Int, to world: World, expecting status: Int,
        _ request: @escaping @Sendable (Int) -> ByteBuffer
    ) async throws -> Double {
        let address = world.server.address
        let start = nanoseconds()
        try await LoadLoop.run {
            HTTPConnection.open(connections, address).flatMap { connections in
                RequestPump.run(count, over: connections, request: request) { _, answer in
                    answer.status == status && (status != 200 || answer.body.offset(of: "\"refused\":0") != nil)
                }.always { _ in for connection in connections { connection.close() } }
            }
        }
        return Double(nanoseconds() - start) / 1e9
    }

    private func publish(_ world: World) async throws -> [Result] {
        let lines = 1000
        let bodies = scale.itemUpdates / lines
        let seconds = try await send(bodies, over: 8, to: world, expecting: 200) { body in
            var text = ""
            for line in 0..<lines {
                let number = body * lines + line
                // The order is scattered, because neighbouring items are not updated together in practice either.
                text +=
                    #"{"item":"stock.\#(number &* 7919 % Self.items)","fields":{"price":\#(number % 900).25,"volume":5}}"#
                text += "\n"
            }
            return world.post("/v1/items/updates", text)
        }
        return [
            Result(
                name: "updates per second through the door, on disk, in bodies of 1,000, 10,000 items",
                value: Double(bodies * lines) / seconds)
        ]
    }

    /// Each device creates a hundred subscriptions, all with the same condition.
    private func subscribe(_ world: World) async throws -> [Result] {
        let devices = world.server.devices
        let count = devices.count * Self.each
        let seconds = try await send(count, over: 64, to: world, expecting: 201) { index in
            HTTPRequest.bytes(
                "POST", "/v1/device/subscriptions",
                headers: ["Authorization: Bearer \(devices[index % devices.count].credential)"],
                body: ByteBuffer(
                    string: #"{"items":["stock.1"],"fields":["price"],"key":"k\#(index / devices.count)","#
                        + #""trigger":"price > 1000.0","format":{"title":"${item}","body":"now at ${{ price | number(2) }}"}}"#
                ))
        }
        return [Result(name: "subscriptions made per second", value: Double(count) / seconds)]
    }

    private func fire(_ world: World) async throws -> [Result] {
        let count = world.server.devices.count * Self.each
        let calm = try await live(world)
        let memoryBefore = try world.server.usage().memoryKiB
        let load = nanoseconds()
        let quiet = try await HTTPConnection.exchange(
            world.post("/v1/items/stock.1/updates", #"{"fields":{"price":900}}"#), world.server.address)
        let loaded = Double(nanoseconds() - load) / 1e9
        guard quiet.status == 200 else { throw NotMeasured("an update was answered with \(quiet.description)") }
        let memoryLoaded = try world.server.usage().memoryKiB
        var memoryAtMost = memoryLoaded
        let start = nanoseconds()
        let answer = try await HTTPConnection.exchange(
            world.post("/v1/items/stock.1/updates", #"{"fields":{"price":2000.5}}"#), world.server.address)
        let answered = Double(nanoseconds() - start) / 1e9
        guard answer.status == 200 else { throw NotMeasured("an update was answered with \(answer.description)") }
        // During the firings, another item is updated, and messages are sent to a connected device.
        let firing = Firing()
        async let busy = live(world, during: firing)
        var others: [Double] = []
        while try await world.notified() < count {
            let began = nanoseconds()
            memoryAtMost = max(memoryAtMost, try world.server.usage().memoryKiB)
            guard Double(began - start) / 1e9 < 600 else {
                throw NotMeasured("\(try await world.notified()) of \(count) fired")
            }
            let other = try await HTTPConnection.exchange(
                world.post("/v1/items/stock.2/updates", #"{"fields":{"price":2}}"#), world.server.address)
            guard other.status == 200 else { throw NotMeasured("an update was answered with \(other.description)") }
            others.append(Double(nanoseconds() - began) / 1e6)
        }
        let seconds = Double(nanoseconds() - start) / 1e9
        firing.isOver.withLock { $0 = true }
        let lively = try await busy
        let all = Figure.text(Double(count))
        return [
            Result(name: "the first update of an item with \(all) subscriptions, after a start, s", value: loaded),
            Result(name: "an update that fires \(all), until its publisher is answered, ms", value: answered * 1000),
            Result(name: "firings per second, rendered, in the inboxes and the outbox", value: Double(count) / seconds),
            Result(
                name: "meanwhile an update of another item, 99th percentile, ms",
                value: others.sorted()[Int(Double(others.count - 1) * 0.99)]),
            Result(name: "memory for them once they are loaded, MiB", value: (memoryLoaded - memoryBefore) / 1024),
            Result(name: "memory more while they fire, MiB", value: (memoryAtMost - memoryLoaded) / 1024),
            Result(name: "a live message before, 99th percentile, ms", value: calm),
            Result(name: "the same while they fire", value: lively),
        ]
    }

    /// The largest number of such conditions of an item.
    private static let mostUnguarded = 100_000

    /// Measures an item with many conditions that the index cannot serve, and how its updates affect those of another item.
    private func burden(_ world: World) async throws -> [Result] {
        let devices = world.server.devices
        let count = min(devices.count * Self.each, Self.mostUnguarded)
        _ = try await send(count, over: 64, to: world, expecting: 201) { index in
            HTTPRequest.bytes(
                "POST", "/v1/device/subscriptions",
                headers: ["Authorization: Bearer \(devices[index % devices.count].credential)"],
                body: ByteBuffer(
                    string: #"{"items":["stock.3"],"fields":["name"],"key":"b\#(index / devices.count)","#
                        + #""trigger":"name.contains('\#(index)x')","format":{"title":"${name}"}}"#))
        }
        func updates(_ item: String, _ fields: String, _ wanted: Int) async throws -> [Double] {
            var times: [Double] = []
            for _ in 0..<wanted {
                let began = nanoseconds()
                let answer = try await HTTPConnection.exchange(
                    world.post("/v1/items/\(item)/updates", #"{"fields":{\#(fields)}}"#), world.server.address)
                guard answer.status == 200 else { throw NotMeasured("an update was answered with \(answer.description)") }
                times.append(Double(nanoseconds() - began) / 1e6)
            }
            return times.sorted()
        }
        func ninetyNinth(_ times: [Double]) -> Double { times[times.count * 99 / 100] }
        _ = try await updates("stock.3", #""name":"first""#, 1)
        let calm = ninetyNinth(try await updates("stock.2", #""price":3"#, 500))
        async let heavy = updates("stock.3", #""name":"nothing that is looked for""#, scale.isQuick ? 20 : 100)
        let busy = ninetyNinth(try await updates("stock.2", #""price":4"#, 500))
        let own = try await heavy
        let all = Figure.text(Double(count))
        return [
            Result(
                name: "an update of an item with \(all) conditions that cannot be looked up, median, ms",
                value: own[own.count / 2]),
            Result(name: "another item's update before, 99th percentile, ms", value: calm),
            Result(name: "the same meanwhile", value: busy),
        ]
    }

    /// Returns the 99th percentile of the latency of messages to a connected device, in milliseconds: the median of several
    /// rounds.
    private func live(_ world: World, during firing: Firing? = nil) async throws -> Double {
        var scale = scale
        scale.latencyMessages = 200
        var rounds: [Double] = []
        repeat {
            rounds.append(try await LatencyMeasurement(scale: scale).measure(world.server).frame99)
            // The pause leaves the cores to the firings.
            try await Task.sleep(for: .milliseconds(250))
        } while !(firing?.isOver.withLock { $0 } ?? true)
        return rounds.sorted()[rounds.count / 2]
    }
}
