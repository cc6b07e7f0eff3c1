import CarillonCore
import CarillonWire
import Foundation
import NIOHTTP1
import Testing

@testable import CarillonServer

/// Peers that stop reading, that trickle, and that read again, over sockets and event streams of a real server.
@Suite(.timeLimit(.minutes(5)))
struct SlowReaderTests {
    enum Way: CaseIterable, Sendable {
        case socket
        case stream
    }

    /// The data that the server sends before it stops, and the kernel's part on both sides, with a margin.
    private static let underWayBytes = 65_536 + 65_536 + 128 << 10

    private struct World: Sendable {
        let server: WatchedServer
        let channel: PushChannel
        let peer: RawPeer

        /// The home of the device.
        var home: HomeDomain { server.home(of: channel.device) }

        func send(_ count: Int, bytes: Int, ttl: Int64 = 60, topic: String? = nil) async throws -> [MessageID] {
            let (receipts, accepted) = AsyncThrowingStream.makeStream(of: MessageID.self)
            for index in 0..<count {
                let body = Array("\(index)-".utf8) + Array(repeating: UInt8(ascii: "x"), count: bytes)
                let request = PublishRequest(body: body, coding: ContentCoding(.identity), ttl: ttl, topic: topic)
                home.publisher.publish(request, to: channel) { result in
                    switch result {
                    case .success(let receipt): accepted.yield(receipt.id)
                    case .failure(let error): accepted.finish(throwing: error)
                    }
                }
            }
            var ids: [MessageID] = []
            for try await id in receipts {
                ids.append(id)
                if ids.count == count { break }
            }
            return ids.sorted { $0.position < $1.position }
        }
    }

    private func run(
        _ way: Way, settings: (inout ServerSettings) -> Void = { _ in },
        _ body: @Sendable (World) async throws -> Void
    ) async throws {
        try await WatchedServer.run(settings: settings) { server in
            let channel = try await server.openChannel()
            let peer = try RawPeer(port: server.port)
            switch way {
            case .socket:
                try await peer.hello(credential: channel.credential)
            case .stream:
                try peer.send(
                    "GET /v1/inbox HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n"
                        + "Authorization: Bearer \(channel.credential)\r\n\r\n")
                _ = try await peer.read(until: "caughtUp")
            }
            try await body(
                World(server: server, channel: try await server.domain.publisher.channel(of: channel.token), peer: peer))
        }
    }

    private static func notifications(in text: String) -> Int {
        text.components(separatedBy: #""messageType":"notification""#).count - 1
    }

    @Test(arguments: Way.allCases)
    func `a message that is replaced while a peer does not read never leaves the store`(way: Way) async throws {
        try await run(way) { world in
            let ids = try await world.send(600, bytes: 8000, topic: "a")
            let last = try #require(ids.last)
            let text = try await world.peer.read(until: last.description)
            #expect(text.utf8.count < Self.underWayBytes)
            #expect(Self.notifications(in: text) < 40)
            #expect(try await world.home.runtime.inbox.waitingCount(device: world.channel.device) == 1)
        }
    }

    @Test(arguments: Way.allCases)
    func `a message that expired while a peer did not read is not delivered when it reads`(way: Way) async throws {
        try await run(way) { world in
            let expiring = try await world.send(1500, bytes: 300, ttl: 1)
            let last = try #require(expiring.last)
            while try await world.home.runtime.inbox.record(of: last)?.finalOutcome?.outcome != .expired {}
            let newest = try await world.send(1, bytes: 10)[0]
            let text = try await world.peer.read(until: newest.description)
            #expect(text.utf8.count < Self.underWayBytes)
            #expect(!text.contains(last.description))
        }
    }

    @Test(arguments: Way.allCases)
    func `a peer that connects again gets all waiting messages, once and in order`(way: Way) async throws {
        try await run(way) {
            $0.window = DeliveryMachine.Limits(envelopes: 1000, bytes: 16 << 20)
        } _: { world in
            let ids = try await world.send(60, bytes: 8000)
            let text = try await world.peer.read(until: ids[59].description)
            var rest = text[...]
            for id in ids {
                let place = try #require(rest.range(of: "\"\(id)\""), "missing or out of order")
                rest = rest[place.upperBound...]
            }
            #expect(Self.notifications(in: text) == 60)
        }
    }

    @Test(arguments: Way.allCases)
    func `a peer that reads nothing, or a byte now and then, is ended`(way: Way) async throws {
        try await run(way) {
            $0.stallSeconds = 2
        } _: { world in
            _ = try await world.send(60, bytes: 8000)
            let began = ContinuousClock.now
            while world.home.runtime.sessions.session(of: world.channel.device) != nil {
                _ = await world.peer.read(1)
                try await Task.sleep(for: .milliseconds(20))
            }
            #expect(ContinuousClock.now - began < .seconds(28), "the server's own time is 30 seconds")
        }
    }

    @Test func `a peer with much waiting data is judged by its reads, not by pings behind the data`() async throws {
        try await run(.socket) {
            $0.keepAliveSeconds = 1
            $0.keepAliveAnswerSeconds = 1
            $0.stallSeconds = 20
            $0.window = DeliveryMachine.Limits(envelopes: 1000, bytes: 16 << 20)
        } _: { world in
            let last = try #require(try await world.send(100, bytes: 8000).last)
            // Time for a ping and its answer, twice.
            for _ in 0..<14 {
                #expect(await !world.peer.read(32_768).isEmpty)
                try await Task.sleep(for: .milliseconds(500))
            }
            _ = try await world.peer.read(until: last.description)
        }
    }

    @Test func `envelopes that expire in a full window make room, without anything else happening`() async throws {
        try await run(.socket) {
            $0.window = DeliveryMachine.Limits(envelopes: 4, bytes: 1 << 20)
        } _: { world in
            _ = try await world.send(4, bytes: 10, ttl: 1)
            let last = try await world.send(1, bytes: 10)[0]
            _ = try await world.peer.read(until: last.description)
        }
    }

    @Test func `a peer that sends and does not read is not read from for ever`() async throws {
        try await run(.socket) {
            $0.stallSeconds = 2
            $0.keepAliveSeconds = 2
        } _: { world in
            let ping: [UInt8] = [0x89, 0x80 | 125, 0, 0, 0, 0] + Array(repeating: 1, count: 125)
            var sent = 0
            // Each is answered with as much; that the sending fails, or can go no further, is the bound.
            let burst = Array(repeatElement(ping, count: 500).joined())
            while world.peer.sendIfPossible(burst) {
                sent += burst.count
                guard sent < 64 << 20 else { break }
            }
            #expect(sent < 16 << 20)
            while world.home.runtime.sessions.session(of: world.channel.device) != nil {
                try await Task.sleep(for: .milliseconds(20))
            }
        }
    }
}
