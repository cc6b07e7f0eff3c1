import Logging
import ServiceLifecycle
import TestSupport
import Testing

@testable import CarillonClient

/// A client in a service group, beside services that iterate, as SIGTERM ends them.
@Suite(.timeLimit(.minutes(5)))
struct GracefulShutdownTests {
    private let base = PushClientTests()

    private struct Reader: Service {
        let channel: PushChannel
        let seen: AsyncStream<String>.Continuation

        func run() async throws {
            for try await event in channel.events {
                if case .message(let message) = event { seen.yield(message.id) }
            }
            seen.yield("ended")
        }
    }

    private struct Observer: Service {
        let client: PushClient

        func run() async throws { for await _ in client.availabilityUpdates {} }
    }

    /// A service that ends slowly.
    private struct Slow: Service {
        let wasNotified: AsyncStream<Void>.Continuation
        let goOn: AsyncStream<Void>

        func run() async throws {
            try? await gracefulShutdown()
            wasNotified.finish()
            for await _ in goOn {}
        }
    }

    private func group(_ services: [any Service]) -> ServiceGroup {
        ServiceGroup(services: services, logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
    }

    @Test(arguments: [[0, 1, 2], [2, 1, 0], [1, 0, 2], [0, 2, 1]])
    func `a graceful shutdown ends the client and the services that iterate, in any order`(order: [Int]) async throws {
        let server = try await ScriptedServer.start()
        let client = try base.makeClient(server)
        let channel = try client.channel("presence")
        try await channel.connect()
        let (seen, see) = AsyncStream.makeStream(of: String.self)
        let services: [any Service] = [client, Reader(channel: channel, seen: see), Observer(client: client)]
        let group = group(order.map { services[$0] })
        try await withThrowingTaskGroup { tasks in
            // Fails if a service ends without a request of the group.
            tasks.addTask { try await group.run() }
            let (socket, _) = try await server.welcome()
            let id = try await socket.acceptRegistration(token: "token")
            socket.notify(id, "m")
            var iterator = seen.makeAsyncIterator()
            #expect(await iterator.next() == "m")
            await base.waitFor(PushClientTests.up, client)
            await group.triggerGracefulShutdown()
            #expect(await iterator.next() == "ended")
            try await tasks.waitForAll()
        }
        #expect(client.availability.service == false)
        // The reader requested the next entry, and so it had handled the shown one.
        #expect(client.channels.first?.waitingMessages == 0)
    }

    @Test func `a service continues to iterate while an earlier one ends slowly`() async throws {
        let server = try await ScriptedServer.start()
        let client = try PushClient(
            configuration: .init(
                server: server.address, app: "com.example.app", clientKey: "k",
                storageDirectory: base.directory.path), graceOfOutsiders: .seconds(600))
        let channel = try client.channel("presence")
        let (seen, see) = AsyncStream.makeStream(of: String.self)
        let (told, wasNotified) = AsyncStream.makeStream(of: Void.self)
        let (goOn, mayGoOn) = AsyncStream.makeStream(of: Void.self)
        let group = group([Reader(channel: channel, seen: see), Slow(wasNotified: wasNotified, goOn: goOn), client])
        try await withThrowingTaskGroup { tasks in
            tasks.addTask { try await group.run() }
            _ = try await server.welcome()
            await group.triggerGracefulShutdown()
            // The client has ended, and the reader was not notified.
            for await _ in told {}
            for _ in 0..<1000 { await Task.yield() }
            mayGoOn.finish()
            try await tasks.waitForAll()
        }
        for await line in seen {
            #expect(line == "ended")
            break
        }
    }

    @Test func `iterations outside of the group end with the client`() async throws {
        let server = try await ScriptedServer.start()
        let client = try PushClient(
            configuration: .init(
                server: server.address, app: "com.example.app", clientKey: "k",
                storageDirectory: base.directory.path), graceOfOutsiders: .milliseconds(1))
        let channel = try client.channel("presence")
        let group = group([client])
        try await withThrowingTaskGroup { tasks in
            tasks.addTask { try await group.run() }
            tasks.addTask { for try await _ in channel.events {} }
            tasks.addTask { for await _ in client.availabilityUpdates {} }
            let (socket, _) = try await server.welcome()
            await base.waitFor(PushClientTests.up, client)
            await group.triggerGracefulShutdown()
            #expect(await socket.closeCode() == 1000)
            try await tasks.waitForAll()
        }
    }

    @Test func `an iteration in a group that is shut down before it begins ends at once`() async throws {
        let server = try await ScriptedServer.start()
        let client = try base.makeClient(server)
        let channel = try client.channel("presence")
        let (ended, end) = AsyncStream.makeStream(of: Bool.self)
        struct Late: Service {
            let channel: PushChannel
            let end: AsyncStream<Bool>.Continuation

            func run() async throws {
                try? await gracefulShutdown()
                var events = channel.events.makeAsyncIterator()
                if case .some = try await events.next() { end.yield(false) } else { end.yield(true) }
            }
        }
        let group = group([client, Late(channel: channel, end: end)])
        try await withThrowingTaskGroup { tasks in
            tasks.addTask { try await group.run() }
            _ = try await server.welcome()
            await group.triggerGracefulShutdown()
            for await isAtOnce in ended {
                #expect(isAtOnce)
                break
            }
            try await tasks.waitForAll()
        }
    }

    @Test func `waiting for a channel to open ends with the group`() async throws {
        let client = try PushClient(
            configuration: .init(
                server: "http://127.0.0.1:1", app: "com.example.app", clientKey: "k",
                storageDirectory: base.directory.path))
        struct Opener: Service {
            let channel: PushChannel

            func run() async throws {
                do throws(PushError) {
                    try await channel.ensureOpen()
                } catch  where error.code == .cancelled {
                    // The group shuts down.
                }
            }
        }
        let channel = try client.channel("presence")
        let group = group([Opener(channel: channel), client])
        try await withThrowingTaskGroup { tasks in
            tasks.addTask { try await group.run() }
            while channel.state != .connecting { await Task.yield() }
            await group.triggerGracefulShutdown()
            try await tasks.waitForAll()
        }
    }

    @Test func `a client that was shut down can be run again, and read`() async throws {
        let server = try await ScriptedServer.start()
        let client = try base.makeClient(server)
        let first = group([client])
        try await withThrowingTaskGroup { tasks in
            tasks.addTask { try await first.run() }
            _ = try await server.welcome()
            await first.triggerGracefulShutdown()
            try await tasks.waitForAll()
        }
        try client.start()
        let (socket, _) = try await server.welcome()
        let channel = try client.channel("presence")
        try await channel.connect()
        let id = try await socket.acceptRegistration(token: "token")
        var events = channel.events.makeAsyncIterator()
        guard case .opened = try await events.next() else { throw ServerSocket.Ended() }
        // The first run ends its own iterations late.
        socket.notify(id, "m")
        guard case .message = try await events.next() else { throw ServerSocket.Ended() }
        await client.stop()
    }
}
