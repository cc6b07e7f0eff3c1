import CarillonWire
import Foundation
import NIOHTTP1
import TestSupport
import Testing

@testable import CarillonClient

/// The real client over real sockets.
@Suite(.timeLimit(.minutes(5)))
struct PushClientTests {
    let directory = TemporaryDirectory()

    /// Makes a client, also after another one that had the same storage.
    static func open(_ configuration: PushClient.Configuration) throws -> PushClient {
        // The store of the client before can be closed a while after its last step, by the thread that ran it.
        for _ in 0..<60 {
            do throws(PushError) {
                return try PushClient(configuration: configuration)
            } catch {
                guard error.code == .storageInUse else { throw error }
            }
        }
        return try PushClient(configuration: configuration)
    }

    @Test func `a client that is released is freed, and its storage is closed`() throws {
        weak var runner: SessionRunner?
        do {
            let client = try PushClient(
                configuration: .init(
                    server: "http://127.0.0.1:1", app: "com.example.app", clientKey: "key", storageDirectory: directory.path)
            )
            runner = client.runner
            #expect(runner != nil)
        }
        #expect(runner == nil)
    }

    func makeClient(_ server: ScriptedServer, keepAlive: Duration? = nil) throws -> PushClient {
        try Self.open(
            .init(
                server: server.address, app: "com.example.app", clientKey: "client-key",
                storageDirectory: directory.path,
                backOff: .init(initial: .milliseconds(10), maximum: .milliseconds(50)), keepAlive: keepAlive))
    }

    /// A client with one open channel.
    func makeOpen(_ server: ScriptedServer) async throws -> (PushClient, PushChannel, ServerSocket, channelID: String) {
        let client = try makeClient(server)
        try client.start()
        let (socket, _) = try await server.welcome()
        let channel = try client.channel("presence")
        try await channel.connect()
        let id = try await socket.acceptRegistration(token: "token")
        var events = channel.events.makeAsyncIterator()
        guard case .opened = try await events.next() else { throw ServerSocket.Ended() }
        // The iterator ends here, and its last entry is shown again: remove it.
        guard case .entry(let first) = await channel.readQueue.next(inRun: channel.readQueue.run) else {
            throw ServerSocket.Ended()
        }
        channel.readQueue.remove(first)
        return (client, channel, socket, id)
    }

    func waitFor(_ wanted: Availability, _ client: PushClient) async {
        for await availability in client.availabilityUpdates where availability == wanted { return }
    }

    static let up = Availability(network: true, service: true)
    static let down = Availability(network: true, service: false)

    // MARK: Identity

    @Test func `the device registers once with the key, and identifies itself at each connection`() async throws {
        let server = try await ScriptedServer.start()
        let client = try makeClient(server)
        try client.start()
        let (socket, hello) = try await server.welcome()
        #expect(hello.device == "device-1")
        #expect(hello.credential == "secret-1")
        #expect(hello.carillon == 3)
        socket.drop()
        let (_, again) = try await server.welcome()
        #expect(again == hello)
        #expect(client.deviceID == "device-1")
        let requests = server.received
        #expect(requests.map(\.line) == ["POST /v1/devices"])
        #expect(requests.first?.authorization == "Bearer client-key")
        let body = try #require(requests.first?.registration)
        #expect(body.app == "com.example.app")
        #expect(body.secret?.utf8.count == 43)
        await client.stop()
    }

    @Test func `a refused registration fails the channel, is reported, and is retried at the next connect`()
        async throws
    {
        let server = try await ScriptedServer.start()
        let refusal = ProblemDocument(Refusal(.roleForbidden, "This key may not register devices."))
        server.answerRegistrations(with: .init(status: .forbidden, body: try JSONEncoder().encode(refusal)))
        let client = try makeClient(server)
        let channel = try client.channel("presence")
        try await channel.connect()
        try client.start()
        var events = channel.events.makeAsyncIterator()
        guard case .error(202) = try await events.next() else { throw ServerSocket.Ended() }
        #expect(channel.lastErrorCode == 202)
        #expect(client.lastFailure?.code == .registrationRefused)
        #expect(client.lastFailure?.message.contains("This key may not register devices.") == true)
        #expect(client.lastFailure?.message.contains("client-key") == false)
        server.answerRegistrations(with: nil)
        try await channel.connect()
        let (socket, _) = try await server.welcome()
        try await socket.acceptRegistration(token: "token")
        guard case .opened = try await events.next() else { throw ServerSocket.Ended() }
        await client.stop()
    }

    @Test(arguments: [4401, 4410])
    func `a device that the server does not know fails its channels, and another is registered at the next connect`(
        _ code: UInt16
    ) async throws {
        let server = try await ScriptedServer.start()
        let (client, channel, socket, _) = try await makeOpen(server)
        var events = channel.events.makeAsyncIterator()
        socket.close(code: code)
        guard case .error(201) = try await events.next() else { throw ServerSocket.Ended() }
        #expect(channel.state == .error)
        #expect(client.deviceID == nil)
        #expect(client.lastFailure?.code == .deviceUnknown)
        try await channel.connect()
        let (next, hello) = try await server.welcome()
        #expect(hello.device == "device-2")
        try await next.acceptRegistration(token: "another")
        guard case .opened("another", _) = try await events.next() else { throw ServerSocket.Ended() }
        await client.stop()
    }

    // MARK: Channels

    @Test func `a channel opens with token and host, and closes with its token`() async throws {
        let server = try await ScriptedServer.start()
        let client = try makeClient(server)
        let channel = try client.channel("presence")
        #expect(channel.state == .none)
        #expect(channel.token == nil)
        try await channel.connect()
        #expect(channel.state == .connecting)
        try client.start()
        let (socket, _) = try await server.welcome()
        let id = try await socket.acceptRegistration(token: "token")
        var events = channel.events.makeAsyncIterator()
        guard case .opened("token", "push.example.com") = try await events.next() else { throw ServerSocket.Ended() }
        #expect(channel.state == .open)
        #expect(channel.endpoint == "https://push.example.com/push/token")
        #expect(channel.host == "push.example.com")
        try await channel.disconnect()
        #expect(channel.state == .disconnecting)
        #expect(try await socket.receive() == .unregister(channelID: id, code: 200))
        socket.notify(id, "late", "still delivered")
        #expect(try await socket.receive() == .ack([.init(version: "late", code: 100)]))
        guard case .message(let message) = try await events.next() else { throw ServerSocket.Ended() }
        #expect(message.text == "still delivered")
        socket.send(.unregister(channelID: id, status: 200))
        guard case .closed("token") = try await events.next() else { throw ServerSocket.Ended() }
        #expect(channel.state == .closed)
        try await channel.connect()
        let other = try await socket.acceptRegistration(token: "other")
        #expect(other != id)
        guard case .opened("other", _) = try await events.next() else { throw ServerSocket.Ended() }
        await client.stop()
    }

    @Test func `misuse throws a defined error and changes nothing`() async throws {
        let server = try await ScriptedServer.start()
        let (client, channel, _, _) = try await makeOpen(server)
        let open = await #expect(throws: PushError.self) { try await channel.connect() }
        #expect(open?.code == .alreadyOpen)
        #expect(channel.state == .open)
        try await channel.disconnect()
        let early = await #expect(throws: PushError.self) { try await channel.connect() }
        #expect(early?.code == .stillDisconnecting)
        // Once more is no misuse.
        try await channel.disconnect()
        #expect(channel.state == .disconnecting)
        await client.stop()
    }

    @Test func `two live channels cannot have one identifier`() throws {
        let client = try PushClient(
            configuration: .init(
                server: "http://localhost:1", app: "com.example.app", clientKey: "k", storageDirectory: directory.path))
        do {
            let first = try client.channel("presence")
            let error = #expect(throws: PushError.self) { _ = try client.channel("presence") }
            #expect(error?.code == .identifierInUse)
            withExtendedLifetime(first) {}
        }
        _ = try client.channel("presence")
    }

    @Test(arguments: ["", String(repeating: "ä", count: 129)]) func `an identifier has 1 to 256 bytes`(
        _ identifier: String
    ) throws {
        let client = try PushClient(
            configuration: .init(
                server: "http://localhost:1", app: "com.example.app", clientKey: "k", storageDirectory: directory.path))
        let error = #expect(throws: PushError.self) { _ = try client.channel(identifier) }
        #expect(error?.code == .identifierInvalid)
    }

    @Test func `connect with a time-out fails with code 0 while the server is away, and is withdrawn`() async throws {
        let client = try PushClient(
            configuration: .init(
                server: "http://127.0.0.1:1", app: "com.example.app", clientKey: "k", storageDirectory: directory.path))
        try client.start()
        let channel = try client.channel("presence")
        try await channel.connect(timeout: .milliseconds(50))
        var events = channel.events.makeAsyncIterator()
        guard case .error(0) = try await events.next() else { throw ServerSocket.Ended() }
        #expect(channel.state == .error)
        #expect(client.availability == Availability(network: false, service: false))
        await client.stop()
    }

    @Test func `an open channel is open after a restart, with the same token`() async throws {
        let server = try await ScriptedServer.start()
        let id: String
        do {
            let (client, _, _, channelID) = try await makeOpen(server)
            id = channelID
            await client.stop()
        }
        let client = try makeClient(server)
        let channel = try client.channel("presence")
        #expect(channel.state == .open)
        #expect(channel.token == "token")
        try client.start()
        let (socket, hello) = try await server.welcome()
        #expect(hello.device == "device-1")
        socket.notify(id, "m", "hello again")
        var events = channel.events.makeAsyncIterator()
        guard case .message(let message) = try await events.next() else { throw ServerSocket.Ended() }
        #expect(message.text == "hello again")
        await client.stop()
    }

    @Test func `a disconnect without a connection is sent at the next one`() async throws {
        let server = try await ScriptedServer.start()
        let id: String
        do {
            let (client, channel, _, channelID) = try await makeOpen(server)
            id = channelID
            await client.stop()
            try await channel.disconnect()
        }
        let client = try makeClient(server)
        let channel = try client.channel("presence")
        #expect(channel.state == .disconnecting)
        try client.start()
        let (socket, _) = try await server.welcome()
        #expect(try await socket.receive() == .unregister(channelID: id, code: 200))
        socket.send(.unregister(channelID: id, status: 200))
        var events = channel.events.makeAsyncIterator()
        guard case .closed("token") = try await events.next() else { throw ServerSocket.Ended() }
        await client.stop()
    }

    @Test(arguments: [nil, 510]) func `a change of a channel by the server is reported and acknowledged`(_ code: Int?)
        async throws
    {
        let server = try await ScriptedServer.start()
        let (client, channel, socket, id) = try await makeOpen(server)
        var events = channel.events.makeAsyncIterator()
        socket.send(.channelEvent(.init(channelID: id, version: "e", event: code.map { .error(code: $0) } ?? .closed)))
        switch (code, try await events.next()) {
        case (nil, .closed("token")?): #expect(channel.state == .closed)
        case (510, .error(510)?): #expect(channel.state == .error)
        default: throw ServerSocket.Ended()
        }
        #expect(try await socket.receive() == .ack([.init(version: "e", code: 100)]))
        await client.stop()
    }

    // MARK: Messages

    @Test func `ten messages arrive once each, in order, byte for byte, and are acknowledged when they are stored`()
        async throws
    {
        let server = try await ScriptedServer.start()
        let (client, channel, socket, id) = try await makeOpen(server)
        let bodies: [[UInt8]] =
            [[], Array("äöü ✓ 𝄞".utf8), Array(0...255)] + (3..<10).map { [UInt8](repeating: $0, count: 1000) }
        for (number, body) in bodies.enumerated() { socket.notify(id, "m\(number)", bytes: body) }
        for number in bodies.indices {
            #expect(try await socket.receive() == .ack([.init(version: "m\(number)", code: 100)]))
        }
        var events = channel.events.makeAsyncIterator()
        for (number, body) in bodies.enumerated() {
            guard case .message(let message) = try await events.next() else { throw ServerSocket.Ended() }
            #expect(message.id == "m\(number)")
            #expect(message.body == body)
            #expect(message.contentEncoding == (body.isEmpty ? nil : "identity"))
        }
        await client.stop()
    }

    @Test func `an unhandled message is delivered again without the server, and a handled one is not`() async throws {
        let server = try await ScriptedServer.start()
        let id: String
        do {
            let (client, channel, socket, channelID) = try await makeOpen(server)
            id = channelID
            socket.notify(id, "handled")
            socket.notify(id, "shown")
            socket.notify(id, "unseen", "body")
            for version in ["handled", "shown", "unseen"] {
                #expect(try await socket.receive() == .ack([.init(version: version, code: 100)]))
            }
            var events = channel.events.makeAsyncIterator()
            _ = try await events.next()
            _ = try await events.next()
            await client.stop()
        }
        let client = try makeClient(server)
        let channel = try client.channel("presence")
        #expect(client.channels.first?.waitingMessages == 2)
        try client.start()
        let (socket, _) = try await server.welcome()
        // The server may not have received the answers.
        for version in ["handled", "shown", "unseen"] {
            socket.notify(id, version)
            #expect(try await socket.receive() == .ack([.init(version: version, code: 100)]))
        }
        socket.notify(id, "new")
        var events = channel.events.makeAsyncIterator()
        for version in ["shown", "unseen", "new"] {
            guard case .message(let message) = try await events.next() else { throw ServerSocket.Ended() }
            #expect(message.id == version)
            if version == "unseen" { #expect(message.text == "body") }
        }
        await client.stop()
    }

    @Test func `a failure is reported at once and once, and an acknowledgement adds nothing`() async throws {
        let server = try await ScriptedServer.start()
        let (client, channel, socket, id) = try await makeOpen(server)
        for version in ["a", "b", "c"] {
            socket.notify(id, version)
            #expect(try await socket.receive() == .ack([.init(version: version, code: 100)]))
        }
        var events = channel.events.makeAsyncIterator()
        guard case .message(let first) = try await events.next() else { throw ServerSocket.Ended() }
        try await first.acknowledge()
        try await first.fail()
        guard case .message(let second) = try await events.next() else { throw ServerSocket.Ended() }
        try await second.fail()
        try await second.acknowledge()
        #expect(try await socket.receive() == .nack(version: "b", code: 301))
        guard case .message(let third) = try await events.next() else { throw ServerSocket.Ended() }
        try await third.fail(.rejected)
        #expect(try await socket.receive() == .nack(version: "c", code: 302))
        await client.stop()
    }

    @Test func `an iteration that is cancelled has not handled its message`() async throws {
        let server = try await ScriptedServer.start()
        let (client, channel, socket, id) = try await makeOpen(server)
        socket.notify(id, "m")
        let (shown, show) = AsyncStream.makeStream(of: String.self)
        let reader = Task {
            for try await event in channel.events {
                if case .message(let message) = event { show.yield(message.id) }
                withUnsafeCurrentTask { $0?.cancel() }
            }
        }
        for await id in shown {
            #expect(id == "m")
            break
        }
        try await reader.value
        #expect(client.channels.first?.waitingMessages == 1)
        var events = channel.events.makeAsyncIterator()
        guard case .message(let again) = try await events.next() else { throw ServerSocket.Ended() }
        #expect(again.id == "m")
        await client.stop()
    }

    @Test func `a channel that nobody reads delays no other, and a warning names it`() async throws {
        let server = try await ScriptedServer.start()
        let (client, _, socket, id) = try await makeOpen(server)
        let second = try client.channel("second")
        try await second.connect()
        let other = try await socket.acceptRegistration(token: "other")
        // More than the server sends ahead of answers.
        for number in 0..<200 { socket.notify(id, "\(number)") }
        for number in 0..<200 {
            #expect(try await socket.receive() == .ack([.init(version: "\(number)", code: 100)]))
        }
        socket.notify(other, "m", "through")
        for try await event in second.events {
            guard case .message(let message) = event else { continue }
            #expect(message.text == "through")
            break
        }
        let summary = try #require(client.channels.first { $0.identifier == "presence" })
        #expect(summary.waitingMessages == 200)
        #expect(summary.state == .open)
        #expect(!summary.isBeingRead)
        await client.stop()
    }

    @Test func `a channel that no code knows is listed, and discarded with its waiting messages`() async throws {
        let server = try await ScriptedServer.start()
        let id: String
        do {
            let (client, _, socket, channelID) = try await makeOpen(server)
            id = channelID
            socket.notify(id, "m", "body")
            _ = try await socket.receive()
            await client.stop()
        }
        do {
            let client = try makeClient(server)
            #expect(client.channels.map(\.identifier) == ["presence"])
            #expect(client.channels.first?.waitingBytes == 4)
            try await client.discard("presence")
            #expect(client.channels.isEmpty)
            try client.start()
            let (socket, _) = try await server.welcome()
            #expect(try await socket.receive() == .unregister(channelID: id, code: 200))
            await client.stop()
        }
        let client = try makeClient(server)
        #expect(client.channels.isEmpty)
        #expect(try client.channel("presence").state == .none)
    }

    @Test func `a second iteration beside the first is refused, and one after it is not`() async throws {
        let server = try await ScriptedServer.start()
        let (client, channel, socket, id) = try await makeOpen(server)
        socket.notify(id, "m")
        do {
            var first = channel.events.makeAsyncIterator()
            _ = try await first.next()
            let error = await #expect(throws: PushError.self) {
                var second = channel.events.makeAsyncIterator()
                _ = try await second.next()
            }
            #expect(error?.code == .alreadyIterating)
            withExtendedLifetime(first) {}
        }
        var third = channel.events.makeAsyncIterator()
        guard case .message = try await third.next() else { throw ServerSocket.Ended() }
        await client.stop()
    }

    // MARK: Connection

    @Test func `the loss of the connection closes nothing; availability ends and returns`() async throws {
        let server = try await ScriptedServer.start()
        let (client, channel, socket, id) = try await makeOpen(server)
        #expect(client.availability == Self.up)
        var updates = client.availabilityUpdates.makeAsyncIterator()
        #expect(await updates.next() == Self.up)
        socket.drop()
        #expect(await updates.next()?.service == false)
        let (next, _) = try await server.welcome()
        await waitFor(Self.up, client)
        #expect(channel.state == .open)
        next.notify(id, "m")
        var events = channel.events.makeAsyncIterator()
        guard case .message = try await events.next() else { throw ServerSocket.Ended() }
        await client.stop()
        #expect(client.availability == Self.down)
    }

    @Test func `a server that was away is found again`() async throws {
        let server = try await ScriptedServer.startOnStablePort()
        let port = server.port
        let (client, channel, _, _) = try await makeOpen(server)
        try await server.stop()
        await waitFor(Availability(network: false, service: false), client)
        let back = try await ScriptedServer.start(port: port)
        _ = try await back.welcome()
        await waitFor(Self.up, client)
        #expect(channel.state == .open)
        await client.stop()
    }

    @Test func `a server that says goodbye gets its time`() async throws {
        let server = try await ScriptedServer.start()
        let (client, _, socket, _) = try await makeOpen(server)
        let before = ContinuousClock.now
        socket.send(.goodbye(delaySeconds: 1))
        socket.close(code: 1012)
        _ = try await server.welcome()
        #expect(ContinuousClock.now - before >= .seconds(1))
        await client.stop()
    }

    @Test func `a client that was replaced does not come back at once`() async throws {
        let server = try await ScriptedServer.start()
        let (client, channel, socket, _) = try await makeOpen(server)
        socket.close(code: 4409)
        await waitFor(Self.down, client)
        #expect(channel.state == .open)
        #expect(client.deviceID == "device-1")
        await client.stop()
    }

    @Test func `a server that does not answer gets a ping`() async throws {
        let server = try await ScriptedServer.start()
        let client = try makeClient(server, keepAlive: .milliseconds(20))
        try client.start()
        let (socket, _) = try await server.welcome()
        #expect(try await socket.receive() == .ping)
        socket.send(.pong)
        #expect(try await socket.receive() == .ping)
        await client.stop()
    }

    @Test func `a ping is answered`() async throws {
        let server = try await ScriptedServer.start()
        let (client, _, socket, _) = try await makeOpen(server)
        socket.ping()
        guard case .pong = try await socket.next() else { throw ServerSocket.Ended() }
        await client.stop()
    }

    @Test func `a message in fragments is put together, and a frame of an unknown type is passed over`() async throws {
        let server = try await ScriptedServer.start()
        let (client, channel, socket, id) = try await makeOpen(server)
        socket.send(text: Array(#"{"messageType":"not invented yet"}"#.utf8))
        let text = ServerFrame.notification(
            .init(channelID: id, version: "m", body: [1, 2, 3], coding: ContentCoding(.identity))
        ).text
        socket.send(fragments: [Array(text.prefix(5)), [], Array(text.dropFirst(5))])
        var events = channel.events.makeAsyncIterator()
        guard case .message(let message) = try await events.next() else { throw ServerSocket.Ended() }
        #expect(message.body == [1, 2, 3])
        await client.stop()
    }

    @Test(arguments: ["binary", "garbage", "too large", "too large in fragments"])
    func `invalid data ends the connection, and the client connects again`(_ kind: String) async throws {
        let server = try await ScriptedServer.start()
        let (client, _, socket, _) = try await makeOpen(server)
        switch kind {
        case "binary": socket.send(binary: [1])
        case "garbage": socket.send(text: Array("no frame".utf8))
        case "too large": socket.send(text: [UInt8](repeating: 0x20, count: (1 << 20) + 1))
        default: socket.send(fragments: [[UInt8]](repeating: [UInt8](repeating: 0x20, count: 1 << 18), count: 5))
        }
        _ = try await server.welcome()
        await waitFor(Self.up, client)
        await client.stop()
    }

    // MARK: Running

    @Test func `a client runs once at a time, and can be started again`() async throws {
        let server = try await ScriptedServer.start()
        let client = try makeClient(server)
        try client.start()
        let twice = #expect(throws: PushError.self) { try client.start() }
        #expect(twice?.code == .alreadyRunning)
        let beside = await #expect(throws: PushError.self) { try await client.run() }
        #expect(beside?.code == .alreadyRunning)
        let (socket, _) = try await server.welcome()
        await client.stop()
        #expect(await socket.closeCode() == 1000)
        await client.stop()
        try client.start()
        _ = try await server.welcome()
        await client.stop()
    }

    @Test func `a task that is cancelled ends the client that runs in it`() async throws {
        let server = try await ScriptedServer.start()
        let client = try makeClient(server)
        let task = Task { try await client.run() }
        let (socket, _) = try await server.welcome()
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(await socket.closeCode() == 1000)
        try client.start()
        await client.stop()
    }

    @Test func `a client can be stopped while an attempt to connect hangs`() async throws {
        let server = try await ScriptedServer.start()
        let client = try makeClient(server)
        try client.start()
        // The upgrade is done, the hello stays without an answer.
        _ = try await server.nextSocket()
        await client.stop()
        #expect(client.availability.service == false)
    }

    @Test func `over TLS, registration and socket both trust the configured roots`() async throws {
        let server = try await ScriptedServer.start(tls: TestCertificate.forLocalhost.server)
        let roots = directory.path + "/roots.pem"
        try TestCertificate.forLocalhost.certificate.write(toFile: roots, atomically: true, encoding: .utf8)
        let client = try PushClient(
            configuration: .init(
                server: server.address, app: "com.example.app", clientKey: "client-key",
                storageDirectory: directory.path, trustRootsPath: roots))
        try client.start()
        _ = try await server.welcome()
        await waitFor(Self.up, client)
        await client.stop()
    }

    @Test func `an https server may not send the credential over a plain socket`() async throws {
        let server = try await ScriptedServer.start(tls: TestCertificate.forLocalhost.server)
        let device = RegisteredDevice(id: "d", credential: "secret", socket: "ws://localhost:\(server.port)/")
        server.answerRegistrations(with: .init(body: try JSONEncoder().encode(device)))
        let roots = directory.path + "/roots.pem"
        try TestCertificate.forLocalhost.certificate.write(toFile: roots, atomically: true, encoding: .utf8)
        let client = try PushClient(
            configuration: .init(
                server: server.address, app: "com.example.app", clientKey: "client-key",
                storageDirectory: directory.path, trustRootsPath: roots))
        let channel = try client.channel("presence")
        try await channel.connect()
        try client.start()
        var events = channel.events.makeAsyncIterator()
        guard case .error(202) = try await events.next() else { throw ServerSocket.Ended() }
        #expect(client.lastFailure?.code == .protocolViolated)
        await client.stop()
    }

    @Test func `a server that cannot register now is called again after its hint`() async throws {
        let server = try await ScriptedServer.start()
        let problem = ProblemDocument(Refusal(.overloaded, "The server is full."))
        server.answerRegistrations(
            with: .init(
                status: .serviceUnavailable, headers: ["Retry-After": "1"], body: try JSONEncoder().encode(problem)))
        let client = try makeClient(server)
        let before = ContinuousClock.now
        try client.start()
        await waitFor(Self.down, client)
        server.answerRegistrations(with: nil)
        _ = try await server.welcome()
        let waited = ContinuousClock.now - before
        #expect(waited >= .seconds(1))
        // The client may have repeated the request before the server could answer.
        #expect(server.received.count <= 1 + Int(waited.components.seconds))
        await client.stop()
    }

    @Test(arguments: [
        ("ftp://host", "com.example.app", "key"), ("http://", "com.example.app", "key"),
        ("http://user:password@host", "com.example.app", "key"), ("http://host", "", "key"),
        ("http://host", "com.example.app", ""), ("http://host", "com.example.app", "a key"),
    ])
    func `a configuration that cannot work is refused`(_ server: String, _ app: String, _ key: String) {
        let error = #expect(throws: PushError.self) {
            _ = try PushClient(
                configuration: .init(server: server, app: app, clientKey: key, storageDirectory: directory.path))
        }
        #expect(error?.code == .configurationInvalid)
    }
}
