import CarillonWire
import Foundation
import TestSupport
import Testing

@testable import CarillonClient

/// Messages with which the process ends while the app handles them.
@Suite(.timeLimit(.minutes(5)))
struct CrashedMessageTests {
    private let base = PushClientTests()

    private func starts(_ client: PushClient) async throws -> [String: Int] {
        let messages = try await client.runner.messages(of: "presence", after: 0)
        return Dictionary(uniqueKeysWithValues: messages.map { ($0.id, $0.starts) })
    }

    private func open(
        _ server: ScriptedServer, _ messages: String...
    ) async throws -> (PushClient, PushChannel, ServerSocket) {
        let (client, channel, socket, id) = try await base.makeOpen(server)
        for message in messages {
            socket.notify(id, message)
            #expect(try await socket.receive() == .ack([.init(version: message, code: 100)]))
        }
        return (client, channel, socket)
    }

    private func expect(_ id: String, from events: inout PushChannelEvents.Iterator) async throws {
        guard case .message(let message)? = try await events.next() else { throw ServerSocket.Ended() }
        #expect(message.id == id)
    }

    /// Lets the app handle a message of another channel, from its arrival on: in that time a message without a reader is shown.
    private func handleAnother(_ client: PushClient, _ socket: ServerSocket) async throws {
        let channel = try client.channel("another")
        try await channel.connect()
        let id = try await socket.acceptRegistration(token: "another")
        socket.notify(id, "another")
        #expect(try await socket.receive() == .ack([.init(version: "another", code: 100)]))
        for try await event in channel.events {
            guard case .message(let message) = event else { continue }
            return try await message.acknowledge()
        }
    }

    @Test func `a start is stored before a message is shown, and gone when it is handled`() async throws {
        let server = try await ScriptedServer.start()
        let (client, channel, _) = try await open(server, "a", "b")
        var events = channel.events.makeAsyncIterator()
        try await expect("a", from: &events)
        #expect(try await starts(client) == ["a": 1, "b": 0])
        try await expect("b", from: &events)
        #expect(try await starts(client) == ["b": 1])
        await client.stop()
    }

    @Test func `an iteration that breaks off does not count`() async throws {
        let server = try await ScriptedServer.start()
        let (client, channel, _) = try await open(server, "a")
        for _ in 0..<3 {
            for try await event in channel.events {
                if case .message = event { break }
            }
            #expect(try await starts(client) == ["a": 0])
        }
        await client.stop()
    }

    @Test func `a client that is stopped while the app handles a message does not count`() async throws {
        let server = try await ScriptedServer.start()
        let (client, channel, _) = try await open(server, "a")
        var events = channel.events.makeAsyncIterator()
        try await expect("a", from: &events)
        await client.stop()
        #expect(try await starts(client) == ["a": 0])
        // The app continues all the same, and has handled it.
        let end = try await events.next()
        #expect(end == nil)
        #expect(try await starts(client).isEmpty)
    }

    @Test func `a message that is shown after the client stopped does not count before it runs again`() async throws {
        let server = try await ScriptedServer.start()
        let (client, channel, _) = try await open(server, "a", "b")
        await client.stop()
        var events = channel.events.makeAsyncIterator()
        try await expect("a", from: &events)
        #expect(try await starts(client) == ["a": 0, "b": 0])
        try client.start()
        try await eventually { client.runner.session.isRunning }
        try await expect("b", from: &events)
        #expect(try await starts(client) == ["b": 1])
        await client.stop()
    }

    @Test func `a start that is taken back before it is stored is not stored`() {
        let starts = MessageStarts(SuspectTurns())
        let message = BufferedMessage(position: 1, id: "a", body: [], coding: nil, starts: 0)
        #expect(starts.began(message) && starts.hasStarted(message))
        #expect(starts.stop() == [message])
        #expect(!starts.hasStarted(message))
        #expect(!starts.began(message) && starts.stop().isEmpty)
        starts.resume()
        #expect(starts.began(message))
    }

    @Test func `the end of a run ends the turn of a message`() {
        let suspects = SuspectTurns()
        let starts = MessageStarts(suspects)
        let message = BufferedMessage(position: 1, id: "a", body: [], coding: nil, starts: 1)
        #expect(suspects.begin(.message(1), at: .now))
        #expect(starts.began(message) && starts.stop() == [message])
        #expect(suspects.begin(.update(1), at: .now))
    }

    @Test(arguments: [9, 10])
    func `after ten starts that ended with the process a message is not shown, and its sender is notified`(times: Int)
        async throws
    {
        let server = try await ScriptedServer.start()
        let (client, channel, socket) = try await open(server, "a", "b")
        let position = try #require(try await client.runner.messages(of: "presence", after: 0).first).position
        try await client.runner.perform { _, _ in [.write(.saveStarts(position: position, times))] }
        var events = channel.events.makeAsyncIterator()
        if times == 10 {
            guard case .other(let other)? = try await events.next() else { throw ServerSocket.Ended() }
            #expect(other.crashedMessage == "a" && other.description == "crashed")
            #expect(try await socket.receive() == .nack(version: "a", code: 301))
        } else {
            try await expect("a", from: &events)
            #expect(try await starts(client) == ["a": 10, "b": 0])
        }
        try await expect("b", from: &events)
        #expect(try await starts(client) == ["b": 1])
        await client.stop()
    }

    @Test func `a message waits for the turn of an update, and its iteration ends when the client stops`() async throws {
        let server = try await ScriptedServer.start()
        let (client, channel, socket) = try await open(server, "a")
        let position = try #require(try await client.runner.messages(of: "presence", after: 0).first).position
        try await client.runner.perform { _, _ in [.write(.saveStarts(position: position, 1))] }
        // This turn does not become too long during the test.
        #expect(client.runner.suspects.begin(.update(1), at: .now + .seconds(3600)))
        let iteration = Task {
            var events = channel.events.makeAsyncIterator()
            return try await events.next()
        }
        try await eventually { channel.readQueue.hasReader }
        try await handleAnother(client, socket)
        #expect(try await starts(client) == ["a": 1], "it is not shown yet")
        await client.stop()
        let event = try await iteration.value
        #expect(event == nil)
        #expect(try await starts(client) == ["a": 1])
    }

    @Test func `messages that were under way when the process ended are shown one after the other`() async throws {
        let server = try await ScriptedServer.start()
        let (client, channel, socket) = try await open(server, "a")
        let second = try client.channel("second")
        try await second.connect()
        let id = try await socket.acceptRegistration(token: "other")
        socket.notify(id, "b")
        #expect(try await socket.receive() == .ack([.init(version: "b", code: 100)]))
        for name in ["presence", "second"] {
            let position = try #require(try await client.runner.messages(of: name, after: 0).first).position
            try await client.runner.perform { _, _ in [.write(.saveStarts(position: position, 1))] }
        }
        var events = channel.events.makeAsyncIterator()
        guard case .message(let first)? = try await events.next() else { throw ServerSocket.Ended() }
        let other = Task {
            for try await event in second.events {
                if case .message = event { return try await client.runner.messages(of: "presence", after: 0).count }
            }
            return -1
        }
        try await eventually { second.readQueue.hasReader }
        try await handleAnother(client, socket)
        #expect(try await client.runner.messages(of: "second", after: 0).first?.starts == 1, "it is not started yet")
        try await first.acknowledge()
        #expect(try await other.value == 0, "the first one was handled")
        await client.stop()
    }
}
