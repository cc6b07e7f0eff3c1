import CarillonWire
import Foundation
import NIOHTTP1
import TestSupport
import Testing

@testable import CarillonClient

/// A device from its registration to its end, over real sockets.
@Suite(.timeLimit(.minutes(5)))
struct LifeOfDeviceTests {
    private let base = PushClientTests()
    private var directory: TemporaryDirectory { base.directory }

    private func client(at address: String, key: String? = "client-key") throws -> PushClient {
        try PushClientTests.open(
            .init(
                server: address, app: "com.example.app", clientKey: key, storageDirectory: directory.path,
                backOff: .init(initial: .milliseconds(10), maximum: .milliseconds(50))))
    }

    // MARK: Registration

    @Test func `a registration whose answer was lost is repeated unchanged, also by another process`() async throws {
        let server = try await ScriptedServer.start()
        server.loseRegistrations(true)
        do {
            let client = try client(at: server.address)
            try client.start()
            await server.waitFor(2, "POST /v1/devices")
            await client.stop()
        }
        let client = try client(at: server.address)
        try client.start()
        await server.waitFor(3, "POST /v1/devices")
        server.loseRegistrations(false)
        _ = try await server.welcome()
        await client.stop()
        let secrets = server.received.map(\.registration.secret)
        #expect(secrets.count > 2)
        #expect(Set(secrets).count == 1)
        #expect(secrets.first != .some(nil))
    }

    @Test func `a credential that was replaced before the first hello is requested again, also by another process`()
        async throws
    {
        let server = try await ScriptedServer.start()
        func answer(with credential: String) throws {
            let device = RegisteredDevice(
                id: "d", credential: credential, socket: "ws://localhost:\(server.port)/", server: server.id)
            server.answerRegistrations(with: .init(body: try JSONEncoder().encode(device)))
        }
        try answer(with: "older")
        do {
            let client = try client(at: server.address)
            try client.start()
            _ = try await server.nextSocket().receive()
            await client.stop()
        }
        try answer(with: "newer")
        let client = try client(at: server.address)
        try client.start()
        let refused = try await server.nextSocket()
        guard case .hello(let first) = try await refused.receive() else { throw ServerSocket.Ended() }
        #expect(first.credential == "older")
        refused.close(code: 4401)
        let (_, hello) = try await server.welcome()
        #expect(hello.device == "d" && hello.credential == "newer")
        try await eventually { client.runner.session.registration.secret == nil }
        await client.stop()
        let secrets = server.received.map(\.registration.secret)
        #expect(secrets.count == 2 && Set(secrets).count == 1)
    }

    @Test func `a server that names itself is remembered in the storage`() async throws {
        let server = try await ScriptedServer.start()
        do {
            let (client, _, _, _) = try await base.makeOpen(server)
            await client.stop()
        }
        let store = try ClientStore(directory: directory.path, patience: 60)
        let named = try store.load(server: server.address, app: "com.example.app").namedServers
        #expect(named.map(\.id) == [server.id] && named.map(\.base) == [server.address])
    }

    @Test func `a registered device needs no key, and an unregistered one reports it`() async throws {
        let server = try await ScriptedServer.start()
        do {
            let (client, _, _, _) = try await base.makeOpen(server)
            await client.stop()
        }
        do {
            let client = try client(at: server.address, key: nil)
            try client.start()
            _ = try await server.welcome()
            try await client.signOut()
            await client.stop()
        }
        let client = try client(at: server.address, key: nil)
        let channel = try client.channel("presence")
        try await channel.connect()
        try client.start()
        var events = channel.events.makeAsyncIterator()
        guard case .error(202) = try await events.next() else { throw ServerSocket.Ended() }
        #expect(client.lastFailure?.code == .clientKeyMissing)
        #expect(server.received.count == 1)
        await client.stop()
    }

    @Test func `the first refused attempt is reported long before its time is over`() async throws {
        // No server listens there.
        let free = try await ScriptedServer.startOnStablePort()
        try await free.stop()
        let client = try PushClient(
            configuration: .init(
                server: free.address, app: "com.example.app", clientKey: "k", storageDirectory: directory.path,
                backOff: .init(initial: .seconds(300), maximum: .seconds(300)), connectTimeout: .seconds(300)))
        try client.start()
        // The suite's time is a fifth of one attempt's.
        while client.lastFailure == nil { await Task.yield() }
        #expect(client.lastFailure?.code == .serverUnreachable)
        await client.stop()
    }

    // MARK: A server that moves

    @Test func `an install continues when its server has another address, and notifies the app`() async throws {
        let old = try await ScriptedServer.start()
        let id: String
        do {
            let (client, _, _, channelID) = try await base.makeOpen(old)
            id = channelID
            await client.stop()
        }
        try await old.stop()
        let new = try await ScriptedServer.start()
        let client = try client(at: new.address, key: nil)
        let channel = try client.channel("presence")
        try client.start()
        let (socket, hello) = try await new.welcome()
        #expect(hello.device == "device-1")
        #expect(hello.credential == "secret-1")
        #expect(new.received.isEmpty)
        var events = channel.events.makeAsyncIterator()
        guard case .other(.moved) = try await events.next() else { throw ServerSocket.Ended() }
        #expect(channel.token == "token")
        #expect(channel.endpoint == "\(new.address)/push/token")
        socket.notify(id, "m")
        guard case .message = try await events.next() else { throw ServerSocket.Ended() }
        await client.stop()
    }

    @Test func `another server does not receive the credential, and the storage stays unchanged`() async throws {
        let old = try await ScriptedServer.start()
        do {
            let (client, _, _, _) = try await base.makeOpen(old)
            await client.stop()
        }
        let other = try await ScriptedServer.start(id: "server-2")
        do {
            let client = try client(at: other.address)
            try client.start()
            await other.waitFor(2, "GET /v1/server")
            #expect(client.lastFailure?.code == .storageMismatch)
            #expect(client.deviceID == "device-1")
            await client.stop()
            let authorized = other.requests(to: "GET /v1/server").filter { $0.authorization != nil }
            #expect(authorized.isEmpty)
            #expect(other.received.isEmpty)
        }
        let client = try client(at: old.address)
        #expect(try client.channel("presence").state == .open)
        try client.start()
        let (_, hello) = try await old.welcome()
        #expect(hello.device == "device-1")
        await client.stop()
    }

    @Test func `a socket address that is stale is refreshed`() async throws {
        let server = try await ScriptedServer.start()
        let gone = try await ScriptedServer.startOnStablePort()
        try await gone.stop()
        let device = RegisteredDevice(
            id: "d", credential: "secret", socket: "ws://localhost:\(gone.port)/", server: server.id)
        server.answerRegistrations(with: .init(body: try JSONEncoder().encode(device)))
        let client = try client(at: server.address)
        try client.start()
        let (_, hello) = try await server.welcome()
        #expect(hello.device == "d")
        await client.stop()
    }

    // MARK: The end

    @Test func `signing out deletes the device here and there, and the next connect makes another`() async throws {
        let server = try await ScriptedServer.start()
        let (client, channel, socket, id) = try await base.makeOpen(server)
        socket.notify(id, "m")
        _ = try await socket.receive()
        try await client.signOut()
        #expect(server.requests(to: "DELETE /v1/device").map(\.authorization) == ["Bearer secret-1"])
        #expect(client.deviceID == nil)
        #expect(client.channels.isEmpty)
        #expect(channel.state == .none)
        var events = channel.events.makeAsyncIterator()
        guard case .closed("token") = try await events.next() else { throw ServerSocket.Ended() }
        try await channel.connect()
        let (next, hello) = try await server.welcome()
        #expect(hello.device == "device-2")
        try await next.acceptRegistration(token: "another")
        guard case .opened("another", _) = try await events.next() else { throw ServerSocket.Ended() }
        await client.stop()
    }

    @Test func `a server that did not receive the deregistration receives it later, from another process`() async throws {
        let server = try await ScriptedServer.start()
        do {
            let (client, _, _, _) = try await base.makeOpen(server)
            await client.stop()
            server.answerDeletions(with: .serviceUnavailable)
            let error = await #expect(throws: PushError.self) { try await client.signOut() }
            #expect(error?.code == .serverUnavailable)
            #expect(client.deviceID == nil)
        }
        server.answerDeletions(with: .noContent)
        let before = server.requests(to: "DELETE /v1/device").count
        do {
            let client = try client(at: server.address)
            try client.start()
            await server.waitFor(before + 1, "DELETE /v1/device")
            try await eventually { client.runner.session.deregistrations.waiting.isEmpty }
            await client.stop()
        }
        #expect(server.requests(to: "DELETE /v1/device").last?.authorization == "Bearer secret-1")
        let client = try client(at: server.address)
        #expect(client.runner.session.deregistrations.waiting.isEmpty)
        #expect(client.deviceID == nil)
    }

    @Test func `a deletion that fails keeps no other device from the server, and is tried again beside its connection`()
        async throws
    {
        let server = try await ScriptedServer.start()
        let (client, channel, _, _) = try await base.makeOpen(server)
        server.answerDeletions(with: .serviceUnavailable)
        await #expect(throws: PushError.self) { try await client.signOut() }
        try await channel.connect()
        let (_, hello) = try await server.welcome()
        #expect(hello.device == "device-2")
        #expect(client.runner.session.deregistrations.waiting.map(\.device) == ["device-1"])
        server.answerDeletions(with: .noContent)
        try await eventually { client.runner.session.deregistrations.waiting.isEmpty }
        #expect(client.deviceID == "device-2")
        await client.stop()
    }

    @Test(arguments: [200, 204, 302, 401, 403, 404, 410, 511])
    func `a relay that answers for the server ends no device`(status: Int) async throws {
        let server = try await ScriptedServer.start()
        let (client, _, _, _) = try await base.makeOpen(server)
        await client.stop()
        server.answerDeletions(with: HTTPResponseStatus(statusCode: status), byRelay: true)
        let error = await #expect(throws: PushError.self) { try await client.signOut() }
        #expect(error?.code == .serverUnavailable)
        #expect(client.lastFailure?.message.contains("/v1/device with status \(status)") == true)
        #expect(client.runner.session.deregistrations.waiting.count == 1)
        let before = server.requests(to: "DELETE /v1/device").count
        server.answerDeletions(with: .noContent)
        try client.start()
        await server.waitFor(before + 1, "DELETE /v1/device")
        try await eventually { client.runner.session.deregistrations.waiting.isEmpty }
        await client.stop()
    }

    // MARK: Opening

    @Test func `ensureOpen opens, waits for a pending request, and removes no events`() async throws {
        let server = try await ScriptedServer.start()
        let client = try client(at: server.address)
        try client.start()
        let (socket, _) = try await server.welcome()
        let channel = try client.channel("presence")
        async let first = channel.ensureOpen()
        async let second = channel.ensureOpen(timeout: .seconds(300))
        let id = try await socket.acceptRegistration(token: "token")
        #expect(try await first.token == "token")
        #expect(try await second.token == "token")
        #expect(try await channel.ensureOpen().endpoint == channel.endpoint)
        let error = await #expect(throws: PushError.self) { try await channel.ensureOpen(encrypted: true) }
        #expect(error?.code == .alreadyOpen)

        try await channel.disconnect()
        async let third = channel.ensureOpen()
        #expect(try await socket.receive() == .unregister(channelID: id, code: 200))
        socket.send(.unregister(channelID: id, status: 200))
        try await socket.acceptRegistration(token: "another")
        #expect(try await third.token == "another")
        var events = channel.events.makeAsyncIterator()
        guard case .opened("token", _) = try await events.next(), case .closed("token") = try await events.next(),
            case .opened("another", _) = try await events.next()
        else { throw ServerSocket.Ended() }
        await client.stop()
    }

    @Test(arguments: [
        (400, PushError.Code.registrationRefused), (429, .serverUnavailable), (500, .serverUnavailable),
    ])
    func `a registration that may succeed later is not called refused`(status: Int, code: PushError.Code) async throws {
        let server = try await ScriptedServer.start()
        let client = try client(at: server.address)
        try client.start()
        let (socket, _) = try await server.welcome()
        let channel = try client.channel("presence")
        let failing = Task { try await channel.ensureOpen() }
        guard case .register(let register) = try await socket.receive() else { throw ServerSocket.Ended() }
        socket.send(.register(.init(channelID: register.channelID, status: status)))
        while client.lastFailure == nil { await Task.yield() }
        #expect(client.lastFailure?.code == code)
        // After 429 the channel is still connecting.
        failing.cancel()
        _ = await #expect(throws: PushError.self) { try await failing.value }
        await client.stop()
    }

    @Test func `ensureOpen ends if the channel fails or is closed, or if its task is cancelled`() async throws {
        let server = try await ScriptedServer.start()
        let client = try client(at: server.address)
        try client.start()
        let (socket, _) = try await server.welcome()
        let channel = try client.channel("presence")
        let failing = Task { try await channel.ensureOpen() }
        guard case .register(let register) = try await socket.receive() else { throw ServerSocket.Ended() }
        socket.send(.register(.init(channelID: register.channelID, status: 400)))
        let failure = await #expect(throws: PushError.self) { try await failing.value }
        #expect(failure?.code == .channelEnded)
        #expect(client.lastFailure?.code == .registrationRefused)

        let given = Task { try await channel.ensureOpen() }
        guard case .register = try await socket.receive() else { throw ServerSocket.Ended() }
        try await channel.disconnect()
        let end = await #expect(throws: PushError.self) { try await given.value }
        #expect(end?.code == .channelEnded)
        #expect(channel.state == .closed)
        guard case .unregister = try await socket.receive() else { throw ServerSocket.Ended() }

        let waiting = Task { try await channel.ensureOpen() }
        guard case .register = try await socket.receive() else { throw ServerSocket.Ended() }
        waiting.cancel()
        let cancelled = await #expect(throws: PushError.self) { try await waiting.value }
        #expect(cancelled?.code == .cancelled)
        #expect(channel.state == .connecting)
        await client.stop()
    }
}
