import CarillonClient
import ClientContent
import Foundation
import NIOHTTP1
import Synchronization
import TestSupport
import Testing

/// The code of the client library's pages, as it is printed there, against the real executable.
@Suite(.timeLimit(.minutes(5)))
struct ClientPageTests {
    // MARK: Getting started

    /// Returns when the channel is closed.
    private static func firstLines(
        _ server: String, _ key: String, _ directory: String, opened: AsyncStream<PushChannel>.Continuation
    ) async throws {
        defer { opened.finish() }
        let client = try PushClient(
            configuration: PushClient.Configuration(
                server: server,
                app: "com.example.app",
                clientKey: key,
                storageDirectory: directory
            )
        )
        try client.start()

        let presence = try client.channel("com.example.app.presence")
        do {
            let address = try await presence.ensureOpen(within: .seconds(30))
            // Tell your backend where to send: this, or address.endpoint.
            print("open at \(address.host), token \(address.token)")
        } catch {
            // The client tries again and again: the channel opens when the server can be reached.
            print("not open: \(client.lastFailure?.message ?? error.message)")
        }
        opened.yield(presence)

        events: for try await event in presence.events {
            switch event {
            case .opened, .pingFailed, .recovered, .other:
                // The last three are told when your backend asked the server to look after it, when the server moves, and when this loop is so slow
                // that changes of the channel were dropped.
                break
            case .message(let message):
                // Asking for the next event says that this message was handled.
                print(message.text ?? "\(message.body.count) bytes")
            case .closed:
                break events
            case .error(let code):
                print("failed with code \(code): \(client.lastFailure?.message ?? "the server gave no reason")")
                break events
            }
        }

        await client.stop()
    }

    @Test func `the first lines open a channel, take a message, and end with the channel`() async throws {
        let server = try await LiveServer.start()
        let key = try await server.whileStopped { try await LiveServer.clientKey(in: $0) }
        let (address, directory) = (server.address, server.directory + "/app")
        let (channels, opened) = AsyncStream.makeStream(of: PushChannel.self)
        async let isOver: Void = Self.firstLines(address, key, directory, opened: opened)
        var sent = 0
        for await channel in channels {
            let message = try await server.send("hello", to: channel.endpoint ?? "")
            #expect(message.status == 201)
            #expect(try await server.outcome(of: message.location) == "acknowledged")
            try await channel.disconnect()
            sent += 1
        }
        try await isOver
        #expect(sent == 1)
    }

    // MARK: Backends, and encrypted messages

    private actor Backend {
        private(set) var endpoints: [String] = []

        func store(_ endpoint: String) throws { endpoints.append(endpoint) }
    }

    @Test func `a backend gets the endpoint of an encrypted channel`() async throws {
        let server = try await LiveServer.start()
        let key = try await server.whileStopped { try await LiveServer.clientKey(in: $0) }
        let client = try PushClient(
            configuration: .init(
                server: server.address, app: LiveServer.app, clientKey: key, storageDirectory: server.directory + "/app"))
        try client.start()
        let channel = try client.channel("com.example.app.secret")
        let myBackend = Backend()
        channel.setTokenDelivery { address in
            try await myBackend.store(address.endpoint)
        }
        try await channel.connect(encrypted: true)
        try await eventually { await !myBackend.endpoints.isEmpty }
        let subscription = try #require(channel.subscription)
        #expect(await myBackend.endpoints == [subscription.endpoint])
        await client.stop()
    }

    // MARK: Subscriptions

    /// Returns when its task is cancelled.
    private static func subscribe(_ client: PushClient) async throws {
        var format = NotificationFormat(title: "${item}", body: "now at ${{ price | currency(EUR) }}")
        format.badge = .automatic
        let alert = NotificationSubscription(
            items: ["stock.ACME"], fields: ["price"], format: format, trigger: "price > 100.0", key: "acme-above-100")
        try client.device.subscriptions.subscribe(alert)
        for await event in alert.events { print(event) }
    }

    private static func declare(_ alerts: [NotificationSubscription], _ client: PushClient) throws {
        try client.device.subscriptions.declare(alerts)
    }

    /// Returns when its task is cancelled.
    private static func showFirings(of client: PushClient, _ show: (NotificationFormat) -> Void) async {
        for await firing in client.device.firings { show(firing.notification) }
    }

    private final class Shown: Sendable {
        private let bodies = Mutex<[String]>([])

        var all: [String] { bodies.withLock { $0 } }

        func append(_ body: String?) { bodies.withLock { $0.append(body ?? "") } }
    }

    @Test func `declared subscriptions fire, and the app shows it`() async throws {
        let world = try await PushWorld()
        try world.book("00bb")
        let rules = try await world.server.request(
            .PUT, "/v1/apps/\(LiveServer.app)/items", key: world.admin, headers: ["content-type": "application/json"],
            body: #"{"items":[{"pattern":"stock.*","open":true}]}"#)
        try #require(rules.status == 200, "\(rules.text)")
        let client = try PushClient(
            configuration: .init(
                server: world.server.address, app: LiveServer.app, clientKey: world.clientKey,
                storageDirectory: world.server.directory + "/app", receivesFirings: true))
        try await client.device.setToken("00bb")
        try client.start()
        try await client.channel("c").ensureOpen()
        let declared = NotificationSubscription(
            items: ["stock.ACME"], fields: ["price"], format: NotificationFormat(title: "far"), trigger: "price > 1000.0",
            key: "acme-above-1000")
        try Self.declare([declared], client)
        try await eventually { declared.isSubscribed }
        let watching = Task { try await Self.subscribe(client) }
        try await eventually { client.device.subscriptions.find(key: "acme-above-100")?.isSubscribed == true }
        let shown = Shown()
        let showing = Task { await Self.showFirings(of: client) { shown.append($0.body) } }
        let published = try await world.server.request(
            .POST, "/v1/items/stock.ACME/updates", key: world.senderKey, headers: ["content-type": "application/json"],
            body: #"{"fields":{"price":101.50}}"#)
        try #require(published.status == 200, "\(published.text)")
        try await eventually { shown.all.count == 1 }
        #expect(shown.all.first?.hasPrefix("now at ") == true && shown.all.first?.contains("101") == true)
        #expect(!declared.isTriggered)
        watching.cancel()
        showing.cancel()
        try await watching.value
        _ = await showing.result
        await client.stop()
    }

    // MARK: Updates

    private struct AppSettings {
        var region = "north"
    }

    private struct Place {
        var latitude: Double
        var longitude: Double
    }

    private actor Locations {
        private(set) var last: Place?

        init(_ last: Place?) { self.last = last }
    }

    @Test func `updates are processed for a region and a place`() async throws {
        let world = try await PushWorld()
        let parameters = try await world.server.request(
            .PUT, "/v1/apps/\(LiveServer.app)/parameters", key: world.admin, headers: ["content-type": "application/json"],
            body: #"{"parameters":{"region":"string","place":"location"}}"#)
        try #require(parameters.status == 200, "\(parameters.text)")
        let content = try SQLiteContent(path: world.server.directory + "/content.sqlite", source: UpdatesTests.Source())
        let presenter = UpdatesTests.Presenter()
        let client = try world.client()
        client.updates.settings.needsUser = false
        try Self.process(client, content, presenter, AppSettings(), Locations(Place(latitude: 48.2, longitude: 16.4)))
        let published = try await world.server.request(
            .POST, "/v1/updates", key: world.senderKey, headers: ["content-type": "application/json"],
            body: """
                {"kind":"content","payload":{"action":"refresh","object":"pump"},
                 "audience":"region == 'north' && within(place, 48.2, 16.4, 5000.0)"}
                """)
        try #require(published.status == 201, "\(published.text)")
        try await eventually { try await content.objects()["pump"] == "of the server" }
        await client.stop()
    }

    private static func process(
        _ client: PushClient, _ content: SQLiteContent, _ presenter: UpdatesTests.Presenter, _ settings: AppSettings,
        _ location: Locations
    ) throws {
        client.updates.process(content: content, presenter: presenter) {
            var parameters: [String: UpdateParameter] = ["region": .text(settings.region)]
            // What the user does not let the app know is left out.
            if let here = await location.last {
                parameters["place"] = .location(latitude: here.latitude, longitude: here.longitude)
            }
            return parameters
        }
        try client.start()
    }

    // MARK: The pages themselves

    /// Where the code here cannot be that of the page, and the code of the page.
    private static let otherwise = [
        ("server: server,", #"server: "http://127.0.0.1:8080","#),
        ("clientKey: key,", #"clientKey: "the key that `carillon keys create` printed","#),
        ("storageDirectory: directory )", #"storageDirectory: "/var/lib/example-app/push" )"#),
        ("opened.yield(presence)", ""),
    ]

    @Test(arguments: [("Backends.md", 1), ("EncryptedMessages.md", 1), ("Subscriptions.md", 3), ("Updates.md", 1)])
    func `each block of a page is in this file`(page: String, count: Int) throws {
        let source = PageCode.plain(try String(contentsOfFile: #filePath, encoding: .utf8))
        let blocks = try PageCode.blocks(of: "Sources/CarillonClient/CarillonClient.docc/\(page)")
        #expect(blocks.count == count)
        for block in blocks {
            let isHere = source.contains(block)
            #expect(isHere, "\(page): \(block)")
        }
    }

    @Test func `the first lines of the getting-started page are in this file`() throws {
        var source = try String(contentsOfFile: #filePath, encoding: .utf8)
        for (here, there) in Self.otherwise {
            source = PageCode.plain(PageCode.plain(source).replacing(PageCode.plain(here), with: PageCode.plain(there)))
        }
        let blocks = try PageCode.blocks(of: "Sources/CarillonClient/CarillonClient.docc/GettingStarted.md")
        let first = try #require(blocks.first { $0.contains("ensureOpen(") })
        let isHere = source.contains(PageCode.withoutImports(first))
        #expect(isHere, "\(first)")
    }
}
