import CarillonClient
import CarillonCore
import CarillonServer
import CarillonWire
import Foundation
import NIOHTTP1
import Synchronization
import TestSupport
import Testing

/// A link to a home that is cut and restored, while a sender sends and the client library receives.
@Suite(.timeLimit(.minutes(5)))
struct CutLinkTests {
    /// The entries that an app has received by the client library.
    private final class Received: Sendable {
        private let texts = Mutex<[String]>([])
        var all: [String] { texts.withLock { $0 } }
        func add(_ text: String) { texts.withLock { $0.append(text) } }
    }

    /// A sender to one endpoint.
    private struct Sender: Sendable {
        let server: WatchedServer
        let path: String

        func send(_ text: String, key: String? = nil) async throws -> WatchedServer.Answer {
            try await server.request(
                .POST, path,
                headers: ["TTL": "600", "Content-Encoding": "identity", "Idempotency-Key": key ?? UUID().uuidString],
                body: text)
        }

        /// Repeats a message that is refused for now.
        ///
        /// - Returns: How often it was refused.
        func sendUntilAccepted(_ text: String) async throws -> Int {
            let key = UUID().uuidString
            var refusals = 0
            while true {
                let answer = try await send(text, key: key)
                if answer.status == 201 { return refusals }
                try CutLinkTests.checkRefusal(answer)
                refusals += 1
                try await Task.sleep(for: .milliseconds(20))
            }
        }
    }

    private static func checkRefusal(_ answer: WatchedServer.Answer) throws {
        try #require(answer.status == 503, "\(answer.text)")
        #expect(answer.headers.first(name: "retry-after") == "1")
    }

    @Test func `requests over a cut link are refused, and the client library gets everything once`() async throws {
        let (links, port) = (ServerLinks(), try FreePort.next())
        try await WatchedServer.run(
            settings: {
                $0.homes = 2
                $0.port = port
            }, link: { home in links.add(LinkedHome(home, random: .system)) }
        ) { server in
            let app = try AppID.checked("com.example.app")
            _ = try await server.domain.apps.create(app)
            let key = try await server.domain.keys.createKey(role: .client, app: app, name: nil).secret.text
            let client = try PushClient(
                configuration: .init(
                    server: server.address, app: app.text, clientKey: key,
                    storageDirectory: TemporaryDirectory.make() + "/client",
                    backOff: .init(initial: .milliseconds(50), maximum: .milliseconds(200))))
            try client.start()
            try await use(client, server, links)
            await client.stop()
        }
    }

    private func use(_ client: PushClient, _ server: WatchedServer, _ links: ServerLinks) async throws {
        let channel = try client.channel("news")
        try await channel.ensureOpen()
        let sender = Sender(server: server, path: "/push/\(try #require(channel.token))")
        let received = Received()
        // Ends when the client stops.
        let reading = Task {
            for try await event in channel.events {
                guard case .message(let message) = event else { continue }
                received.add(message.text ?? "no text")
                try await message.acknowledge()
            }
        }
        defer { reading.cancel() }
        let place = try #require(server.homes.firstIndex { $0.home.population.sessions == 1 })
        let (home, link) = (server.homes[place].home, links.all[place])
        let first = try await sender.send("0")
        #expect(first.status == 201)
        let message = try #require(first.headers.first(name: "location")?.split(separator: "/").last)
        try await eventually { received.all == ["0"] }
        var (sent, refusals) = (["0"], 0)
        for round in 1...3 {
            let texts = (0..<25).map { "\(round).\($0)" }
            async let refused = Self.send(texts, by: sender)
            // Calls are on their way over the link.
            try await Task.sleep(for: .milliseconds(Int.random(in: 50...300)))
            link.cut()
            try Self.checkRefusal(try await sender.send("refused"))
            try Self.checkRefusal(try await server.request(.GET, "/message/\(message)"))
            try await eventually { home.population.sessions == 0 }
            link.restore()
            refusals += try await refused
            sent += texts
            let expected = sent
            try await eventually { received.all.count >= expected.count }
            try await eventually { home.population.sessions == 1 }
            #expect(received.all == expected)
        }
        #expect(refusals > 0)
        let last = try await sender.send("last")
        #expect(last.status == 201)
        try await eventually { received.all.last == "last" }
        #expect(received.all == sent + ["last"])
    }

    private static func send(_ texts: [String], by sender: Sender) async throws -> Int {
        var refusals = 0
        for text in texts { refusals += try await sender.sendUntilAccepted(text) }
        return refusals
    }
}
