import CarillonClient
import CarillonWire
import Foundation
import NIOHTTP1
import Testing

/// The real client library against the real server.
@Suite(.timeLimit(.minutes(5)))
struct ClientAndServerTests {
    private func client(_ server: LiveServer, key: String, state: String = "app") throws -> PushClient {
        try PushClient(
            configuration: .init(
                server: server.address, app: LiveServer.app, clientKey: key,
                storageDirectory: server.directory + "/" + state,
                backOff: .init(initial: .milliseconds(50), maximum: .milliseconds(200))))
    }

    /// The next event of a channel for which the closure has a value; earlier ones count as handled.
    private func next<Value>(_ channel: PushChannel, _ match: (PushChannelEvent) -> Value?) async throws -> Value {
        for try await event in channel.events {
            if let value = match(event) {
                if case .message(let message) = event { try await message.acknowledge() }
                return value
            }
        }
        throw Program.Ended(description: "the events ended")
    }

    private func text(_ event: PushChannelEvent) -> String? {
        if case .message(let message) = event { message.text } else { nil }
    }

    private func isOpened(_ event: PushChannelEvent) -> Bool? {
        if case .opened = event { true } else { nil }
    }

    private func awaitService(_ isThere: Bool, _ client: PushClient) async {
        for await availability in client.availabilityUpdates where availability.service == isThere { return }
    }

    @Test(arguments: [SIGTERM, SIGKILL])
    func `a restart of the server closes no channel and loses no message`(signal: Int32) async throws {
        let server = try await LiveServer.start()
        let key = try await server.whileStopped { try await LiveServer.key(.client, in: $0) }
        let client = try client(server, key: key)
        try client.start()
        let channel = try client.channel("com.example.app.presence")
        try await channel.connect()
        _ = try await next(channel, isOpened)
        let endpoint = try #require(channel.endpoint)
        let token = channel.token
        #expect(try await server.send("before", to: endpoint).status == 201)
        #expect(try await next(channel, text) == "before")
        try await server.whileStopped(signal: signal) { _ in await awaitService(false, client) }
        await awaitService(true, client)
        #expect(channel.state == .open)
        #expect(channel.token == token)
        let sent = try await server.send("after", to: endpoint)
        #expect(try await next(channel, text) == "after")
        #expect(try await server.outcome(of: sent.location) == "acknowledged")
        await client.stop()
    }

    @Test func `a channel that nobody reads delays no other, and its waiting messages are there at the next start`()
        async throws
    {
        let server = try await LiveServer.start()
        let key = try await server.whileStopped { try await LiveServer.key(.client, in: $0) }
        let unread = 150
        do {
            let client = try client(server, key: key)
            try client.start()
            let silent = try client.channel("silent")
            let address = try await silent.ensureOpen()
            let spoken = try client.channel("spoken")
            let other = try await spoken.ensureOpen()
            // More than twice the server's window.
            for number in 0..<unread { #expect(try await server.send("\(number)", to: address.endpoint).status == 201) }
            let sent = try await server.send("through", to: other.endpoint)
            #expect(try await next(spoken, text) == "through")
            #expect(try await server.outcome(of: sent.location) == "acknowledged")
            await client.stop()
        }
        let client = try client(server, key: key)
        #expect(client.channels.first { $0.identifier == "silent" }?.waitingMessages == unread)
        let silent = try client.channel("silent")
        try client.start()
        var texts: [String] = []
        for try await event in silent.events {
            if let text = text(event) { texts.append(text) }
            if texts.count == unread { break }
        }
        #expect(texts == (0..<unread).map(String.init))
        await client.stop()
    }

    @Test func `the example that runs in a service group reads, and ends at SIGTERM`() async throws {
        let server = try await LiveServer.start()
        let key = try await server.whileStopped { try await LiveServer.key(.client, in: $0) }
        let path = URL(fileURLWithPath: Program.carillon).deletingLastPathComponent().appendingPathComponent("ClientService")
        let example = try Program(
            path.path, [],
            environment: [
                "CARILLON_SERVER": server.address, "CARILLON_KEY": key, "CARILLON_STATE": server.directory + "/app",
            ])
        let endpoint = try await example.line { line in
            line.hasPrefix("open at ") ? String(line.dropFirst("open at ".count)) : nil
        }
        #expect(try await server.send("hello", to: endpoint).status == 201)
        #expect(try await example.line { $0 == "hello" ? true : nil })
        example.signal(SIGTERM)
        #expect(await example.exitStatus() == 0)
        #expect(example.output.last == "the reader is done")
    }

    @Test func `a failure of the handler is reported beside the outcome`() async throws {
        let server = try await LiveServer.start()
        let key = try await server.whileStopped { try await LiveServer.key(.client, in: $0) }
        let client = try client(server, key: key)
        try client.start()
        let channel = try client.channel("a")
        let address = try await channel.ensureOpen()
        let sent = try await server.send("x", to: address.endpoint)
        for try await event in channel.events {
            guard case .message(let message) = event else { continue }
            try await message.fail()
            break
        }
        // The device's report arrives after a moment.
        while true {
            let answer = try await server.request(.GET, sent.location)
            let message = try JSONDecoder().decode(MessageBody.self, from: Data(answer.text.utf8))
            // 100, or none, until it has arrived.
            guard message.code == 301 else { continue }
            #expect(message.outcome == "acknowledged")
            break
        }
        await client.stop()
    }

    @Test func `listen --close ends in every state of the channel, with the server or without`() async throws {
        let server = try await LiveServer.start()
        let key = try await server.whileStopped { try await LiveServer.key(.client, in: $0) }
        let state = server.directory + "/closing"
        func listen(_ arguments: String...) throws -> Program {
            let common = ["--app", LiveServer.app, "--channel", "a", "--state", state, "--key", key]
            return try Program(
                Program.carillon, ["listen", "--server", server.address] + common + arguments)
        }
        // Never connected.
        #expect(try await listen("--close").exitStatus() == 0)
        // Open, and the server is away: closed later.
        let listening = try listen()
        _ = try await listening.line { $0.hasPrefix("opened") ? true : nil }
        listening.signal(SIGTERM)
        #expect(await listening.exitStatus() == 0)
        try await server.whileStopped { _ in
            let closing = try listen("--close")
            #expect(await closing.exitStatus() == 69)
        }
        let closing = try listen("--close")
        #expect(await closing.exitStatus() == 0)
        #expect(closing.output.contains { $0.hasPrefix("closed") })
        // Closed.
        #expect(try await listen("--close").exitStatus() == 0)
    }

    @Test func `an install continues under another address of its server, needs no key, and signs out`() async throws {
        let server = try await LiveServer.start()
        let (key, admin) = try await server.whileStopped {
            (try await LiveServer.key(.client, in: $0), try await LiveServer.key(.admin, in: $0))
        }
        var device: String?
        do {
            let client = try client(server, key: key)
            try client.start()
            try await client.channel("a").ensureOpen()
            device = client.deviceID
            await client.stop()
        }
        let moved = try PushClient(
            configuration: .init(
                server: server.address.replacing("127.0.0.1", with: "localhost"), app: LiveServer.app,
                storageDirectory: server.directory + "/app"))
        try moved.start()
        await awaitService(true, moved)
        #expect(moved.deviceID == device)
        let address = "/v1/devices/\(try #require(device))"
        #expect(try await server.request(.GET, address, key: admin).status == 200)
        try await moved.signOut()
        #expect(try await server.request(.GET, address, key: admin).status == 404)
        #expect(moved.channels.isEmpty)
        await moved.stop()
    }

    @Test func `a message that was not handled is delivered again, and waiting messages arrive in order`() async throws {
        let server = try await LiveServer.start()
        let key = try await server.whileStopped { try await LiveServer.key(.client, in: $0) }
        var endpoint = ""
        do {
            let first = try client(server, key: key)
            try first.start()
            let channel = try first.channel("inbox")
            try await channel.connect()
            _ = try await next(channel, isOpened)
            endpoint = try #require(channel.endpoint)
            _ = try await server.send("0", to: endpoint)
            for try await event in channel.events where text(event) == "0" { break }
            await first.stop()
        }
        for number in 1...20 { _ = try await server.send("\(number)", to: endpoint) }
        let second = try client(server, key: key)
        try second.start()
        let channel = try second.channel("inbox")
        #expect(channel.state == .open)
        var texts: [String] = []
        for try await event in channel.events {
            guard let text = text(event) else { continue }
            texts.append(text)
            if texts.count == 21 { break }
        }
        #expect(texts == (0...20).map(String.init))
        await second.stop()
    }

    @Test(arguments: [nil, 503] as [Int?])
    func `a channel that the operator revokes is reported, live and at the next connection`(code: Int?) async throws {
        let server = try await LiveServer.start()
        let (key, admin) = try await server.whileStopped {
            (try await LiveServer.key(.client, in: $0), try await LiveServer.key(.admin, in: $0))
        }
        func ended(_ event: PushChannelEvent) -> Int? {
            switch event {
            case .closed: -1
            case .error(let code): code
            default: nil
            }
        }
        func revoke(_ client: PushClient) async throws {
            let device = try #require(client.deviceID)
            let described = try await server.request(.GET, "/v1/devices/\(device)", key: admin)
            let body = try JSONDecoder().decode(DeviceBody.self, from: Data(described.text.utf8))
            let id = try #require(body.channels.first).channelID
            let answer = try await server.request(
                .POST, "/v1/devices/\(device)/channels/\(id)/revoke", key: admin,
                body: code.map { #"{"code":\#($0)}"# } ?? "")
            #expect(answer.status == 204, "\(answer.text)")
        }
        let client = try client(server, key: key)
        try client.start()
        let channel = try client.channel("a")
        try await channel.connect()
        _ = try await next(channel, isOpened)
        let endpoint = try #require(channel.endpoint)
        try await revoke(client)
        #expect(try await next(channel, ended) == code ?? -1)
        #expect(channel.state == (code == nil ? .closed : .error))
        #expect(try await server.send("x", to: endpoint).status == 410)

        try await channel.connect()
        _ = try await next(channel, isOpened)
        #expect(channel.endpoint != endpoint)
        await client.stop()
        try await revoke(client)
        try client.start()
        #expect(try await next(channel, ended) == code ?? -1)
        await client.stop()
    }

    @Test func `a device deleted by the operator fails its channels, and the next connect makes another`() async throws {
        let server = try await LiveServer.start()
        let (key, admin) = try await server.whileStopped {
            (try await LiveServer.key(.client, in: $0), try await LiveServer.key(.admin, in: $0))
        }
        let client = try client(server, key: key)
        try client.start()
        let channel = try client.channel("a")
        try await channel.connect()
        _ = try await next(channel, isOpened)
        let device = try #require(client.deviceID)
        #expect(try await server.request(.DELETE, "/v1/devices/\(device)", key: admin).status == 204)
        let code = try await next(channel) { event -> Int? in
            if case .error(let code) = event { code } else { nil }
        }
        #expect(code == 201)
        try await channel.connect()
        _ = try await next(channel, isOpened)
        #expect(client.deviceID != device)
        await client.stop()
    }
}
