import CarillonAPNsSimulator
import CarillonBasics
import CarillonClient
import CarillonNotification
import CarillonWire
import Foundation
import NIOHTTP1
import Synchronization
import TestSupport
import Testing

/// A sleeping phone from end to end: the client library, the real executable, and a simulator of Apple's service.
@Suite(.timeLimit(.minutes(5)))
struct PushDeviceTests {
    private final class Delegate: PushDeviceDelegate {
        let heard = Mutex<[String]>([])
        private func note(_ what: String) { heard.withLock { $0.append(what) } }
        func didAddDelegate(to device: PushDevice) { note("added") }
        func didRemoveDelegate(from device: PushDevice) { note("removed") }
        func didRegister(_ device: PushDevice) { note("registered") }
        func didSuspend(_ device: PushDevice, because reason: PushDeviceSuspension) { note("suspended \(reason.rawValue)") }
        func didResume(_ device: PushDevice) { note("resumed") }
        func didFailRegistration(of device: PushDevice, _ error: PushError) { note("failed") }
        func didChangeStatus(of device: PushDevice, to status: PushDeviceStatus) { note("status") }
        func didUpdateSubscriptions(of device: PushDevice) { note("subscriptions") }
        func didResetBadge(of device: PushDevice) { note("badge") }
        func didFailBadgeReset(of device: PushDevice, _ error: PushError) { note("no badge") }
    }

    @Test func `a sleeping device is woken, fetches its messages, and is not woken again`() async throws {
        let world = try await PushWorld()
        try world.book("00ff00ff")
        let client = try world.client()
        #expect(client.device.status == .unknown && client.device.deviceID == nil && client.device.token == nil)
        try await client.device.setToken(Data([0, 0xFF, 0, 0xFF]))
        #expect(client.device.token == "00ff00ff" && client.device.platform == "apple")
        #expect(client.device.applicationID == LiveServer.app)
        try client.start()
        let channel = try client.channel("orders")
        try await channel.ensureOpen()
        try await eventually { client.device.isRegistered }
        #expect(client.device.deviceID == client.deviceID && client.device.statusTimestamp != nil)
        let endpoint = try #require(channel.endpoint)
        await client.stop()
        #expect(client.device.isRegistered, "it stays so without a connection")
        _ = try await world.server.send("hello", to: endpoint)
        try await eventually { [simulator = world.simulator] in PushWorld.shown(simulator, "00ff00ff") == 1 }
        #expect(await client.handleWake(within: .seconds(60)) == .newData)
        #expect(await client.handleWake(within: .seconds(60)) == .noData)
        for try await event in channel.events {
            if case .message(let message) = event {
                #expect(message.text == "hello")
                break
            }
        }
        try client.start()
        for await availability in client.availabilityUpdates where availability.service { break }
        #expect(await client.handleWake(within: .seconds(60)) == .noData, "a running client asks whether all has come")
        #expect(PushWorld.shown(world.simulator, "00ff00ff") == 1)
        await client.stop()
        let nowhere = try world.client("other")
        world.server.program.signal(SIGSTOP)
        #expect(await nowhere.handleWake(within: .milliseconds(500)) == .failed)
        world.server.program.signal(SIGCONT)
    }

    @Test func `a client that is started while a wake is handled runs on, and wakes at once end together`() async throws {
        let world = try await PushWorld()
        let client = try world.client()
        world.server.program.signal(SIGSTOP)
        async let first = client.handleWake(within: .seconds(40))
        try await Task.sleep(for: .milliseconds(300))
        try client.start()
        #expect(throws: PushError.self) { try client.start() }
        world.server.program.signal(SIGCONT)
        #expect(await first == .noData)
        #expect(client.availability.service, "it is the app's now")
        async let second = client.handleWake(within: .seconds(40))
        async let third = client.handleWake(within: .seconds(60))
        #expect(await [second, third] == [.noData, .noData])
        #expect(client.availability.service)
        await client.stop()
        #expect(!client.availability.service)
        async let fourth = client.handleWake(within: .seconds(60))
        async let fifth = client.handleWake(within: .seconds(60))
        #expect(await [fourth, fifth] == [.noData, .noData])
        #expect(!client.availability.service)
        try client.start()
        for await availability in client.availabilityUpdates where availability.service { break }
        await client.stop()
    }

    @Test func `a wake over a connection that is slow to answer waits for it`() async throws {
        let world = try await PushWorld()
        let client = try world.client()
        try client.start()
        for await availability in client.availabilityUpdates where availability.service { break }
        world.server.program.signal(SIGSTOP)
        async let wake = client.handleWake(within: .seconds(40))
        try await Task.sleep(for: .milliseconds(200))
        world.server.program.signal(SIGCONT)
        #expect(await wake == .noData)
        await client.stop()
    }

    @Test func `token change, suspension, resumption and restart, as listeners receive them`() async throws {
        let world = try await PushWorld()
        try world.book("aa01")
        try world.book("aa02")
        let client = try world.client()
        let delegate = Delegate()
        client.device.addDelegate(delegate)
        client.device.addDelegate(delegate)
        client.device.removeDelegate(Delegate())
        #expect(client.device.delegates.count == 1)
        await #expect(throws: PushError.self) { try await client.device.setToken("aa 01") }
        await #expect(throws: PushError.self) { try await client.device.setToken("") }
        await #expect(throws: PushError.self) { try await client.device.setToken("aa0") }
        await #expect(throws: PushError.self) { try await client.device.setToken("<aa01>") }
        try await client.device.setDetails(
            .init(appVersion: "1.0", locale: "de-AT", parameters: ["plan": .text("gold"), "tags": .texts(["a"])]))
        try await client.device.setToken("AA01")
        #expect(client.device.token == "aa01")
        try client.start()
        try await eventually { client.device.isRegistered }
        let id = try #require(client.device.deviceID)
        try await eventually {
            delegate.heard.withLock { $0.sorted() } == ["added", "registered", "status", "subscriptions"]
        }
        // The token changes, and the device keeps its identity.
        try await client.device.setToken("aa02")
        try await eventually { client.device.previousToken == nil && client.device.isRegistered }
        #expect(client.device.deviceID == id)
        try await world.shows("\"appVersion\":\"1.0\"", client.device)
        try await world.shows("\"locale\":\"de-AT\"", client.device)
        // An operator suspends and resumes; the client is connected.
        try await world.operate("suspend", client.device)
        try await eventually { client.device.isSuspended }
        #expect(client.device.status == .suspended(.byOperator) && client.device.deviceID == id)
        // A connected device receives its messages all the same.
        let endpoint = try await client.channel("orders").ensureOpen().endpoint
        _ = try await world.server.send("hello", to: endpoint)
        try await eventually { client.channels.first?.waitingMessages == 1 }
        // Received later: the client is away meanwhile.
        await client.stop()
        try await world.operate("resume", client.device)
        #expect(client.device.isSuspended)
        try client.start()
        try await eventually { client.device.isRegistered }
        try await client.device.resetBadge()
        try await eventually { delegate.heard.withLock { $0.contains("badge") } }
        client.device.removeDelegate(delegate)
        try await eventually { delegate.heard.withLock { $0.last } == "removed" }
        let heard = delegate.heard.withLock { $0 }
        let expected = ["status", "suspended operator", "status", "resumed", "badge"]
        #expect(
            heard.filter { $0 != "registered" && $0 != "subscriptions" } == ["added", "status"] + expected + ["removed"])
        await client.stop()
        try await client.signOut()
        #expect(client.device.status == .unknown && client.device.deviceID == nil)
    }

    @Test func `the last report of the server survives the process`() async throws {
        let world = try await PushWorld()
        try world.book("aa01")
        func oneRun() async throws -> String {
            let client = try world.client()
            try await client.device.setToken("aa01")
            try client.start()
            try await eventually { client.device.isRegistered }
            await client.stop()
            return try #require(client.device.deviceID)
        }
        let id = try await oneRun()
        let again = try world.client()
        #expect(again.device.isRegistered && again.device.token == "aa01" && again.device.deviceID == id)
        #expect(again.device.previousToken == nil)
        try await again.device.setToken("aa02")
        #expect(again.device.token == "aa02" && again.device.previousToken == "aa01", "the server did not hear of it yet")
        try await again.device.setToken("aa03")
        #expect(again.device.previousToken == "aa01")
    }

    @Test func `operators list devices page by page, by their status, and delete them`() async throws {
        let world = try await PushWorld()
        for number in 1...3 {
            let client = try world.client("app\(number)")
            try await client.device.setToken("aa0\(number)")
            try client.start()
            try await eventually { client.device.isRegistered }
            if number == 2 {
                try await world.operate("suspend", client.device)
                try await eventually { client.device.isSuspended }
            }
            await client.stop()
        }
        func list(_ options: String...) async throws -> [String] {
            let lines = try await run(
                ["devices", "list", LiveServer.app, "--server", world.server.address, "--key", world.admin, "--json"]
                    + options
            ).lines
            return lines.compactMap { line in
                guard case .string(let id)? = JSONValue(parsing: Array(line.utf8))?["id"] else { return nil }
                return id
            }
        }
        let all = try await list()
        #expect(all.count == 3)
        #expect(try await list("--after", all[0]) == Array(all[1...]))
        #expect(try await list("--after", all[2]).isEmpty)
        #expect(try await list("--limit", "2") == Array(all[..<2]))
        #expect(try await list("--status", "suspended") == [all[1]])
        #expect(try await list("--status", "registered") == [all[0], all[2]])
        let place = ["--server", world.server.address, "--key", world.admin]
        #expect(try await run(["devices", "delete", all[0]] + place).status == 0)
        #expect(try await list() == Array(all[1...]))
        #expect(try await run(["devices", "delete", all[0]] + place).status != 0)
        #expect(try await run(["devices", "list", LiveServer.app, "--status", "asleep"] + place).status != 0)
    }

    @Test func `a token that Apple calls dead suspends the device, and the next registration resumes it`() async throws {
        let world = try await PushWorld()
        try world.book("bb01")
        let client = try world.client()
        try await client.device.setToken("bb01")
        try client.start()
        let channel = try client.channel("orders")
        try await channel.ensureOpen()
        try await eventually { client.device.isRegistered }
        let endpoint = try #require(channel.endpoint)
        await client.stop()
        let dead = Int64(Date().timeIntervalSince1970 * 1000)
        world.simulator.changeDevice("bb01", in: .production) { $0.state = .unregistered(since: dead) }
        _ = try await world.server.send("one", to: endpoint)
        try await world.shows("\"suspended\"", client.device)
        #expect(world.simulator.totals.requests == 1)
        try client.start()
        // It receives its suspension, reports its token as in each run, and is registered again; and a repeated report of the
        // vendor about the time before changes nothing.
        try await eventually { client.device.isRegistered && client.availability.service }
        try world.book("bb02")
        try await client.device.setToken("bb02")
        try await eventually { client.device.previousToken == nil }
        await client.stop()
        _ = try await world.server.send("two", to: endpoint)
        try await eventually { [simulator = world.simulator] in PushWorld.shown(simulator, "bb02") == 1 }
    }

    @Test func `an encrypted message is shown by the extension, and the app is informed of it`() async throws {
        let world = try await PushWorld()
        try world.book("cc01")
        _ = try await run(
            [
                "apps", "alert", "set", LiveServer.app, "--title", "New message", "--server", world.server.address, "--key",
                world.admin,
            ])
        let shared = try TemporaryDirectory.make()
        let client = try PushClient(
            configuration: .init(
                server: world.server.address, app: LiveServer.app, clientKey: world.clientKey,
                storageDirectory: world.server.directory + "/app", sharedDirectory: shared))
        try await client.device.setToken("cc01")
        try client.start()
        let channel = try client.channel("orders")
        try await channel.ensureOpen(encrypted: true)
        try await eventually { client.device.isRegistered }
        let subscription = try #require(channel.subscription)
        await client.stop()
        let sealed = try subscription.encrypt(Array("the real text".utf8), with: .aes128gcm).body
        let answer = try await world.server.request(
            .POST, subscription.endpoint, headers: ["TTL": "60", "Content-Encoding": "aes128gcm", "Urgency": "high"],
            bytes: sealed)
        #expect(answer.status == 201)
        try await eventually { [simulator = world.simulator] in PushWorld.shown(simulator, "cc01") == 1 }
        let push = try #require(world.simulator.device("cc01", in: .production)?.shown.first)
        #expect(push.priority == 10 && !String(decoding: push.payload, as: UTF8.self).contains("real text"))
        let reader = PushNotificationReader(sharedDirectory: shared)
        let message = try #require(reader.message(inPayload: Data(push.payload)))
        #expect(message.text == "the real text")
        #expect(reader.noteShown(message))
        #expect(await client.handleWake(within: .seconds(60)) == .newData)
        for try await event in channel.events {
            guard case .message(let message) = event else { continue }
            #expect(message.text == "the real text" && message.wasPresented)
            try await message.acknowledge()
            #expect(!message.wasPresented)
            break
        }
    }
}
