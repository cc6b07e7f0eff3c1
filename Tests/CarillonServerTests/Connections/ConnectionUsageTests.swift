import CarillonCore
import CarillonWire
import Foundation
import NIOCore
import TestSupport
import Testing

@testable import CarillonServer

/// How many connections one device and one address may have.
@Suite(.timeLimit(.minutes(5)))
struct ConnectionUsageTests {
    private func quotas(_ perAddress: Int = 3, isBehindProxy: Bool = false) -> ConnectionQuotas {
        ConnectionQuotas(
            .init(connectionsPerAddress: perAddress, socketsPerAddress: 2, connectionsPerDevice: 2, reserve: 1),
            isBehindProxy: isBehindProxy)
    }

    private func opened(_ quotas: ConnectionQuotas, _ address: String?) -> (usage: ConnectionUsage, refusal: Refusal?) {
        let usage = ConnectionUsage(of: quotas)
        return (usage, usage.opened(from: address.flatMap { NetworkAddress($0) }))
    }

    private func code(_ work: () throws(Refusal) -> Void) -> ErrorCode? {
        do {
            try work()
            return nil
        } catch {
            return error.code
        }
    }

    @Test func `one network of IPv6 has its quota, and loopback and Unix sockets have no limit`() {
        let quotas = quotas()
        let first = opened(quotas, "2001:db8::1")
        let others = ["2001:db8::2", "2001:db8::3"].map { opened(quotas, $0) }
        #expect(others.allSatisfy { $0.refusal == nil })
        #expect(opened(quotas, "2001:db8::4").refusal?.code == .rateLimited)
        #expect(opened(quotas, "2001:db8:0:1::1").refusal == nil)
        for _ in 0..<9 { #expect(opened(quotas, "127.0.0.1").refusal == nil && opened(quotas, nil).refusal == nil) }
        first.usage.closed()
        first.usage.closed()
        #expect(opened(quotas, "2001:db8::4").refusal == nil)
        #expect(opened(quotas, "2001:db8::5").refusal?.code == .rateLimited)
    }

    @Test func `a connection is a device's while its request is answered, and until it ends`() {
        let quotas = quotas()
        let (one, other) = (DeviceSerial(1), DeviceSerial(2))
        let connections = (0..<3).map { _ in opened(quotas, "192.0.2.1").usage }
        for connection in connections[..<2] {
            #expect(code { () throws(Refusal) in try connection.claim(one) } == nil)
            #expect(code { () throws(Refusal) in try connection.claim(one) } == nil)
        }
        #expect(code { () throws(Refusal) in try connections[2].claim(one) } == .rateLimited)
        #expect(code { () throws(Refusal) in try connections[2].claim(other) } == nil)
        connections[1].requestEnded()
        #expect(connections[1].device == nil && connections[1].address != nil)
        #expect(quotas.devices.count(of: one) == 1)
        #expect(code { () throws(Refusal) in try connections[1].claim(one) } == nil)
        for connection in connections { connection.closed() }
        #expect(quotas.devices.count(of: one) == 0 && quotas.devices.count(of: other) == 0)
    }

    @Test func `a late use of a connection that ended has no effect`() {
        let quotas = quotas()
        let connection = opened(quotas, "192.0.2.1").usage
        connection.closed()
        _ = code { () throws(Refusal) in try connection.claim(DeviceSerial(1)) }
        #expect(quotas.devices.count(of: DeviceSerial(1)) == 0)
    }

    @Test func `behind a proxy, the address that it names counts while a request is answered`() throws {
        let quotas = quotas(1, isBehindProxy: true)
        let client = try #require(NetworkAddress("198.51.100.1"))
        let connections = (0..<3).map { _ in opened(quotas, "10.0.0.1") }
        #expect(connections.allSatisfy { $0.refusal == nil })
        #expect(connections[0].usage.requestBegan(for: client) == nil)
        #expect(connections[1].usage.requestBegan(for: client)?.code == .rateLimited)
        #expect(connections[2].usage.requestBegan(for: NetworkAddress("198.51.100.2")) == nil)
        connections[0].usage.requestEnded()
        #expect(connections[1].usage.requestBegan(for: client) == nil)
    }

    @Test func `a request of a connection that ended uses nothing of its address's quota`() throws {
        let quotas = quotas(1, isBehindProxy: true)
        let client = try #require(NetworkAddress("198.51.100.1"))
        let connection = opened(quotas, "10.0.0.1").usage
        connection.closed()
        _ = connection.requestBegan(for: client)
        #expect(quotas.connections.count(of: client) == 0)
    }

    @Test func `connections without a place are few, and health checks on them fewer`() {
        let quotas = quotas()
        let refused = (0..<65).map { _ in ConnectionUsage(of: quotas) }
        for connection in refused[..<64] { #expect(connection.takeRefusedPlace(.ofAddress)) }
        #expect(!refused[64].takeRefusedPlace(.ofAddress))
        #expect(refused[64].takeRefusedPlace(.ofServer))
        #expect(refused[0].takeReserve())
        #expect(!refused[1].takeReserve())
        refused[0].requestEnded()
        #expect(refused[1].takeReserve())
        refused[1].closed()
        #expect(refused[0].takeReserve())
        #expect(ConnectionUsage(of: quotas).takeRefusedPlace(.ofAddress))
    }

    @Test func `sockets of an address have a quota of their own`() throws {
        let quotas = quotas()
        let address = try #require(NetworkAddress("192.0.2.1"))
        #expect(try quotas.takeSocket(of: NetworkAddress("127.0.0.1")) == nil)
        for _ in 0..<2 { #expect(try quotas.takeSocket(of: address) == address) }
        #expect(code { () throws(Refusal) in _ = try quotas.takeSocket(of: address) } == .rateLimited)
        quotas.sockets.release(address)
        #expect(try quotas.takeSocket(of: address) == address)
    }

    // MARK: A server

    private static func ask(_ path: String, _ credential: String = "", _ fields: String = "") -> String {
        "GET \(path) HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer \(credential)\r\n\(fields)\r\n"
    }

    @Test func `a device has sixteen polls at a time, and they end when their clients go`() async throws {
        try await ServedConnections.run { server in
            let (_, credential, _) = try await server.openChannel()
            let (_, other, _) = try await server.openChannel()
            var peers: [RawPeer] = []
            for _ in 0..<16 {
                let peer = try RawPeer(port: server.port)
                try peer.send(Self.ask("/v1/inbox?wait=200", credential))
                peers.append(peer)
            }
            try await eventually { server.waiters == 16 }
            let refused = try await server.request("GET /v1/inbox?wait=200", ["Authorization: Bearer \(credential)"])
            #expect(refused.status == 429)
            #expect(refused.body.contains("rate_limited"))
            #expect(try await server.request("GET /v1/inbox", ["Authorization: Bearer \(other)"]).status == 200)
            peers = []
            try await eventually { server.waiters == 0 }
            #expect(try await server.request("GET /v1/inbox", ["Authorization: Bearer \(credential)"]).status == 200)
        }
    }

    @Test func `a waiting poll is answered by a message, at its time, and when its client stops`() async throws {
        try await ServedConnections.run { server in
            let (token, credential, _) = try await server.openChannel()
            let peer = try RawPeer(port: server.port)
            try peer.send(Self.ask("/v1/inbox?wait=100", credential))
            try await eventually { server.waiters == 1 }
            #expect(
                try await server.request("POST /push/\(token)", ["TTL: 60", "Content-Encoding: identity"], "x").status == 201
            )
            let answer = try await peer.read(until: "\"more\":false}")
            #expect(answer.contains("\"messageType\":\"notification\""))
            #expect(answer.lowercased().contains("carillon-server: \(server.domain.server)\r\n"))
            // The connection is used again; nothing is left of the first poll.
            #expect(server.waiters == 0)
            try peer.send(Self.ask("/health/live"))
            _ = try await peer.read(until: "live")
            let (_, idle, _) = try await server.openChannel()
            // A poll that began earlier, and has more time, still waits afterwards.
            let (_, patient, _) = try await server.openChannel()
            try peer.send(Self.ask("/v1/inbox?wait=300", patient))
            try await eventually { server.waiters == 1 }
            let began = ContinuousClock.now
            let empty = try await server.request("GET /v1/inbox?wait=1", ["Authorization: Bearer \(idle)"])
            try await eventually { server.waiters == 1 }
            #expect(empty.status == 200)
            #expect(empty.body == #"{"envelopes":[],"more":false}"#)
            #expect(empty["carillon-server"] == server.domain.server.description)
            #expect(ContinuousClock.now - began >= .seconds(1))
        }
    }

    @Test func `a full server answers health checks, and refuses everything else`() async throws {
        try await ServedConnections.run {
            $0.maximumConnections = 4
        } _: { server in
            let peers = try (0..<4).map { _ in try RawPeer(port: server.port) }
            for peer in peers {
                try peer.send(Self.ask("/health/live"))
                _ = try await peer.read(until: "live")
            }
            #expect(try await server.request("GET /v1/server").status == 503)
            for _ in 0..<20 {
                let live = try await server.request("GET /health/live")
                #expect(live.status == 200)
                let ready = ServedConnections.read(
                    try await server.exchange("GET /health/ready HTTP/1.1\r\nHost: h\r\n\r\n"))
                #expect(ready.status == 200)
                #expect(ready["connection"] == "close")
            }
            // Nor do connections that ask for nothing, or send a body, take the place of health checks.
            let silent = try (0..<32).map { _ in try RawPeer(port: server.port) }
            for peer in silent[..<16] { try peer.send("GET /health/live HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n") }
            #expect(try await server.request("GET /health/live").status == 200)
            #expect(try await server.request("POST /health/live").status == 503)
            #expect(try await server.request("GET /health/other").status == 503)
            #expect(try await silent[0].read(until: "\r\n\r\n").hasPrefix("HTTP/1.1 503 "))
            #expect(try await silent[31].read(until: "\r\n\r\n").hasPrefix("HTTP/1.1 503 "))
            withExtendedLifetime((peers, silent)) {}
        }
    }

    @Test func `behind a proxy one client has its quota of connections`() async throws {
        try await ServedConnections.run {
            $0.clientAddress.header = "X-Forwarded-For"
            $0.connectionsPerAddress = 2
        } _: { server in
            let (_, credential, _) = try await server.openChannel()
            let peers = try (0..<2).map { _ in try RawPeer(port: server.port) }
            for peer in peers {
                try peer.send(Self.ask("/v1/inbox?wait=200", credential, "X-Forwarded-For: 203.0.113.9:1\r\n"))
            }
            try await eventually { server.waiters == 2 }
            for same in ["203.0.113.9", "203.0.113.9:50001", "for=\"203.0.113.9:2\""] {
                #expect(try await server.request("GET /v1/server", ["X-Forwarded-For: \(same)"]).status == 429, "\(same)")
            }
            #expect(try await server.request("GET /v1/server", ["X-Forwarded-For: x"]).status == 200)
            #expect(try await server.request("GET /health/live", ["X-Forwarded-For: 203.0.113.9"]).status == 200)
            #expect(try await server.request("GET /v1/server", ["X-Forwarded-For: 203.0.113.10"]).status == 200)
            withExtendedLifetime(peers) {}
        }
    }
}
