import CarillonBasics
import CarillonMessages
import CarillonWire
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import CarillonClient

/// The relation of a channel to its backend: keys, tokens and pings, over real sockets.
@Suite(.timeLimit(.minutes(5)))
struct BackendTests {
    private let base = PushClientTests()

    /// A client whose channel was opened with keys, before any of its events was read.
    private func openEncrypted(
        _ server: ScriptedServer
    ) async throws -> (PushClient, PushChannel, ServerSocket, channelID: String) {
        let client = try base.makeClient(server)
        try client.start()
        let (socket, _) = try await server.welcome()
        let channel = try client.channel("presence")
        try await channel.connect(encrypted: true)
        let id = try await socket.acceptRegistration(token: "token")
        return (client, channel, socket, id)
    }

    private func send(_ message: EncryptedMessage, as version: String, to id: String, on socket: ServerSocket) {
        socket.send(.notification(.init(channelID: id, version: version, body: message.body, coding: message.coding)))
    }

    private func acknowledgement(_ socket: ServerSocket) async throws -> (id: String, code: Int?) {
        guard case .ack(let updates) = try await socket.receive(), let update = updates.first else {
            throw ServerSocket.Ended()
        }
        return (update.version, update.code)
    }

    @Test func `the extension has the keys of a channel while it is open, and not a moment longer`() async throws {
        let server = try await ScriptedServer.start()
        let shared = base.directory.path + "/shared"
        let folder = SharedFolder(path: shared)
        let client = try PushClient(
            configuration: .init(
                server: server.address, app: "com.example.app", clientKey: "k",
                storageDirectory: base.directory.path + "/client", sharedDirectory: shared))
        try client.start()
        let (socket, _) = try await server.welcome()
        let channel = try client.channel("presence")
        let other = try client.channel("other")
        try await channel.connect(encrypted: true)
        let id = try await socket.acceptRegistration(token: "token")
        try await other.connect(encrypted: true)
        let otherID = try await socket.acceptRegistration(token: "token2")
        let ids = try #require([id, otherID].map(ChannelID.init) as? [ChannelID])
        try await eventually { ids.allSatisfy { folder.keys(of: $0) != nil } && channel.state == .open }
        try await channel.disconnect()
        guard case .unregister = try await socket.receive() else { throw ServerSocket.Ended() }
        socket.send(.unregister(channelID: id, status: 200))
        try await eventually { folder.keys(of: ids[0]) == nil }
        #expect(folder.keys(of: ids[1]) != nil)
        await client.stop()
    }

    @Test func `the app receives the messages that were encrypted for its channel, and no others`() async throws {
        let server = try await ScriptedServer.start()
        let (client, channel, socket, id) = try await openEncrypted(server)
        var events = channel.events.makeAsyncIterator()
        guard case .opened = try await events.next() else { throw ServerSocket.Ended() }
        let subscription = try #require(channel.subscription)
        socket.notify(id, "plain", "read me")
        var other = subscription
        other.keys.p256dh = Base64URL.encode(SubscriptionKeys().publicKey)
        send(try other.encrypt([1], with: .aes128gcm), as: "other", to: id, on: socket)
        send(try subscription.encrypt(Array("Grüße".utf8), with: .aes128gcm), as: "good", to: id, on: socket)
        for wanted in ["plain", "other"] {
            let (version, code) = try await acknowledgement(socket)
            #expect(version == wanted)
            #expect(code == 101)
        }
        #expect(try await acknowledgement(socket) == ("good", 100))
        guard case .message(let message) = try await events.next() else { throw ServerSocket.Ended() }
        #expect(message.id == "good")
        #expect(message.text == "Grüße")
        #expect(message.contentEncoding == "identity")
        await client.stop()
    }

    @Test func `the keys of a channel outlive the process, and another connect makes others`() async throws {
        let server = try await ScriptedServer.start()
        var subscription: PushSubscription?
        do {
            let (client, channel, _, _) = try await openEncrypted(server)
            var events = channel.events.makeAsyncIterator()
            guard case .opened = try await events.next() else { throw ServerSocket.Ended() }
            subscription = channel.subscription
            await client.stop()
        }
        let client = try base.makeClient(server)
        let channel = try client.channel("presence")
        #expect(subscription != nil)
        #expect(channel.subscription == subscription)
        try client.start()
        let (socket, _) = try await server.welcome()
        try await channel.disconnect()
        guard case .unregister(let id, _) = try await socket.receive() else { throw ServerSocket.Ended() }
        socket.send(.unregister(channelID: id, status: 200))
        var events = channel.events.makeAsyncIterator()
        while let event = try await events.next() { if case .closed = event { break } }
        try await channel.connect(encrypted: true)
        try await socket.acceptRegistration(token: "another")
        while let event = try await events.next() { if case .opened = event { break } }
        #expect(channel.subscription?.keys != subscription?.keys)
        await client.stop()
    }

    @Test func `the token is delivered until the hook returns, and again when the backend lost it`() async throws {
        let server = try await ScriptedServer.start()
        let client = try base.makeClient(server)
        let (attempts, attempt) = AsyncStream.makeStream(of: String.self)
        let failures = Atomic<Int>(2)
        let channel = try client.channel("presence")
        channel.setTokenDelivery { address in
            attempt.yield(address.token)
            if failures.wrappingSubtract(1, ordering: .relaxed).newValue >= 0 { throw ServerSocket.Ended() }
        }
        try client.start()
        let (socket, _) = try await server.welcome()
        try await channel.connect()
        let id = try await socket.acceptRegistration(token: "token")
        var seen = attempts.makeAsyncIterator()
        for _ in 0..<3 { #expect(await seen.next() == "token") }
        socket.send(.channelEvent(.init(channelID: id, version: "e1", event: .pingFailed(code: 605))))
        #expect(try await acknowledgement(socket).id == "e1")
        #expect(await seen.next() == "token")
        #expect(channel.state == .open)
        await client.stop()
    }

    @Test func `each event is a notification with the keys of its constant`() async throws {
        let server = try await ScriptedServer.start()
        let client = try base.makeClient(server)
        try client.start()
        let (socket, _) = try await server.welcome()
        let channel = try client.channel("presence")
        let center = NotificationCenter()
        let (notes, note) = AsyncStream.makeStream(of: Note.self)
        let names: [Notification.Name] = [
            .pushChannelOpened, .pushChannelMessage, .pushChannelPingFailed, .pushChannelRecovered, .pushChannelClosed,
        ]
        let observers = names.map { name in
            center.addObserver(forName: name, object: channel, queue: nil) { note.yield(Note($0)) }
        }
        defer { for observer in observers { center.removeObserver(observer) } }
        let posting = Task { try await channel.postEvents(to: center) }
        try await channel.connect()
        let id = try await socket.acceptRegistration(token: "token")
        socket.notify(id, "m1", "hello")
        socket.send(.channelEvent(.init(channelID: id, version: "e1", event: .pingFailed(code: 602))))
        socket.send(.channelEvent(.init(channelID: id, version: "e2", event: .recovered)))
        socket.send(.channelEvent(.init(channelID: id, version: "e3", event: .closed)))
        var seen: [Note] = []
        for await note in notes {
            seen.append(note)
            if seen.count == names.count { break }
        }
        #expect(
            seen == [
                Note(.pushChannelOpened, token: "token", host: "push.example.com"),
                Note(.pushChannelMessage, message: "hello"), Note(.pushChannelPingFailed, error: 602),
                Note(.pushChannelRecovered), Note(.pushChannelClosed, token: "token"),
            ])
        await client.stop()
        try await posting.value
    }

    private struct Note: Equatable {
        var name: Notification.Name
        var token: String?
        var host: String?
        var message: String?
        var error: Int?

        init(
            _ name: Notification.Name, token: String? = nil, host: String? = nil, message: String? = nil, error: Int? = nil
        ) {
            (self.name, self.token, self.host, self.message, self.error) = (name, token, host, message, error)
        }

        init(_ notification: Notification) {
            let info = notification.userInfo ?? [:]
            self.init(
                notification.name, token: info[String.pushChannelTokenKey] as? String,
                host: info[String.pushChannelHostKey] as? String,
                message: info[String.pushChannelMessageKey] as? String, error: info[String.pushChannelErrorKey] as? Int)
        }
    }
}
