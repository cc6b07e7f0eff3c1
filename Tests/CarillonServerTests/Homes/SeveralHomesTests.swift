import CarillonCore
import CarillonWire
import Foundation
import NIOHTTP1
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

/// A server with two homes, which it reaches over links.
@Suite(.timeLimit(.minutes(5)))
struct SeveralHomesTests {
    private static let app = "com.example.app"

    /// A device, as its client and a sender have it.
    private struct Client: Sendable {
        let credential: String
        let token: String

        private struct Registered: Decodable { var id, credential: String }
        private struct Opened: Decodable { var token: String }

        /// Registers a device in a part of the shards, or finds the one that the same call registered before.
        ///
        /// - Parameter place: 0 for the first half of the shards, 1 for the second.
        init(_ place: Int, at server: WatchedServer, key: String) async throws {
            let secret = try SeveralHomesTests.secret(place)
            let registered = try await server.request(
                .POST, "/v1/devices", headers: ["Authorization": "Bearer \(key)"], body: #"{"registration":"\#(secret)"}"#)
            try #require(registered.status == 201, "\(registered.text)")
            let device = try registered.decode(Registered.self)
            credential = device.credential
            let id = try #require(DeviceID(device.id))
            #expect(Shard(of: id).number / 512 == place)
            let channel = "6f3f1e0e-1111-4222-8333-44445555666\(place)"
            let opened = try await server.request(
                .POST, "/v1/device/channels", headers: ["Authorization": "Bearer \(credential)"],
                body: #"{"channelID":"\#(channel)"}"#)
            try #require(opened.status == 201, "\(opened.text)")
            token = try opened.decode(Opened.self).token
        }

        /// Returns the id of a message.
        func send(_ server: WatchedServer) async throws -> String {
            let sent = try await server.request(
                .POST, "/push/\(token)", headers: ["TTL": "600", "Content-Encoding": "identity"], body: "x")
            try #require(sent.status == 201, "\(sent.text)")
            return String(try #require(sent.headers.first(name: "location")?.split(separator: "/").last))
        }

        /// Returns the ids of the waiting entries.
        func poll(_ server: WatchedServer) async throws -> [String] {
            struct Page: Decodable { var envelopes: [WatchedServer.Event] }
            let read = try await server.request(
                .GET, "/v1/inbox", headers: ["Authorization": "Bearer \(credential)"])
            return try read.decode(Page.self).envelopes.map(\.version)
        }
    }

    /// Returns the secret of a registration in a part of the shards.
    private static func secret(_ place: Int) throws -> String {
        let app = try #require(AppID(app))
        let secrets = (0..<1000).map { "the-secret-of-the-registration-\(10_000 + $0)" }
        let found = secrets.first { secret in
            Shard(of: app, registration: SecretHash(of: secret.utf8)).number / 512 == place
        }
        return try #require(found)
    }

    /// Returns a device of each half of the shards.
    private func clients(of server: WatchedServer) async throws -> [Client] {
        let app = try #require(AppID(Self.app))
        if try await server.domain.apps.serial(of: app) == nil { _ = try await server.domain.apps.create(app) }
        let key = try await server.domain.keys.createKey(role: .client, app: app, name: nil).secret.text
        return [try await Client(0, at: server, key: key), try await Client(1, at: server, key: key)]
    }

    /// Sends a message that the device acknowledges over its socket, and one that waits, and finds the earlier waiting ones.
    private func use(_ server: WatchedServer, start: Int) async throws {
        let clients = try await clients(of: server)
        var peers: [RawPeer] = []
        for client in clients {
            let waiting = try await client.poll(server)
            #expect(waiting.count == start)
            let peer = try RawPeer(port: server.port)
            try await peer.hello(credential: client.credential)
            peers.append(peer)
        }
        let sessions = server.homes.map { $0.home.population.sessions }
        #expect(sessions == (server.homes.count == 1 ? [2] : [1, 1]))
        for (client, peer) in zip(clients, peers) {
            let id = try await client.send(server)
            _ = try await peer.read(until: id)
            try peer.sendFrame(#"{"messageType":"ack","updates":[{"version":"\#(id)"}]}"#)
            try await eventually {
                try await server.request(.GET, "/message/\(id)").text.contains(#""outcome":"acknowledged""#)
            }
            try peer.sendFrame(0x8)
            _ = await peer.readToEnd()
        }
        try await eventually { server.homes.allSatisfy { $0.home.population.sessions == 0 } }
        for client in clients {
            let stays = try await client.send(server)
            let waiting = try await client.poll(server)
            #expect(waiting.count == start + 1 && waiting.last == stays)
        }
    }

    @Test func `a server with two homes serves the devices of both, and one home serves them all again`() async throws {
        let directory = try TemporaryDirectory.make() + "/data"
        var lastEpoch: Int64 = 0
        for (start, count) in [2, 1, 2].enumerated() {
            try await WatchedServer.run(directory, settings: { $0.homes = count }) { server in
                #expect(server.homes.count == count)
                try await use(server, start: start)
            }
            let store = try await stores.open(at: directory, StoreSettings())
            let places = try await store.shardMap().places
            try await stores.close(store)
            #expect(places.count == Shard.count)
            let byNode = Dictionary(grouping: places.values, by: \.node)
            var expected = [NodeNumber(1): Shard.count / count]
            if count == 2 { expected[NodeNumber(2)] = Shard.count / count }
            #expect(byNode.mapValues(\.count) == expected)
            let epochs = Set(places.values.map(\.epoch)).sorted()
            #expect(epochs.count == count && (epochs.first ?? 0) > lastEpoch)
            lastEpoch = epochs.last ?? 0
        }
    }

    @Test func `sockets of a home that cannot be reached end, and come back when it can`() async throws {
        let links = ServerLinks()
        try await WatchedServer.run(
            settings: { $0.homes = 2 }, link: { home in links.add(LinkedHome(home, random: .system)) }
        ) { server in
            try await reconnect(server, over: try #require(links.all.last))
        }
    }

    /// - Parameter link: The link to the second home.
    private func reconnect(_ server: WatchedServer, over link: LinkedHome) async throws {
        let clients = try await clients(of: server)
        var peers: [RawPeer] = []
        for client in clients {
            let peer = try RawPeer(port: server.port)
            try await peer.hello(credential: client.credential)
            peers.append(peer)
        }
        link.cut()
        let end = await peers[1].readToEnd()
        #expect(end.contains("goodbye") && end.contains("link_lost"))
        try await eventually { server.homes[1].home.population.sessions == 0 }
        #expect(server.homes[0].home.population.sessions == 1)
        let refused = try RawPeer(port: server.port)
        await #expect(throws: RawPeer.Ended.self) { try await refused.hello(credential: clients[1].credential) }
        link.restore()
        let again = try RawPeer(port: server.port)
        try await again.hello(credential: clients[1].credential)
        for (client, peer) in zip(clients, [peers[0], again]) {
            let id = try await client.send(server)
            _ = try await peer.read(until: id)
        }
    }
}
