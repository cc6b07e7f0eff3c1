import CarillonBasics
import CarillonCore
import CarillonWire
import Foundation
import HTTPTypes
import TestSupport
import Testing

@testable import CarillonServer

/// Clients that ask for much and do not read it.
@Suite(.timeLimit(.minutes(5)))
struct UnreadAnswerTests {
    /// A device for which messages wait.
    private func device(
        _ server: ServedConnections, messages: Int, bytes: Int = 8000
    ) async throws -> (credential: String, serial: DeviceSerial, ids: [MessageID]) {
        let (token, credential, serial) = try await server.openChannel()
        let publisher = server.home(of: serial).publisher
        let channel = try await publisher.channel(of: token)
        let ids = try await withThrowingTaskGroup(of: MessageID.self) { group in
            for _ in 0..<messages {
                group.addTask {
                    let body = Array(repeating: UInt8(ascii: "x"), count: bytes)
                    return try await publisher.publish(
                        PublishRequest(body: body, coding: ContentCoding(.identity), ttl: 600), to: channel
                    ).id
                }
            }
            return try await group.reduce(into: [MessageID]()) { $0.append($1) }
        }
        return (credential, serial, ids.sorted { $0.position < $1.position })
    }

    private static func ask(_ credential: String, _ query: String = "?max=500") -> String {
        "GET /v1/inbox\(query) HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer \(credential)\r\n\r\n"
    }

    @Test func `a device that does not read has two answers, of which little is in memory`() async throws {
        try await ServedConnections.run { server in
            let (credential, serial, _) = try await device(server, messages: 300)
            let answers = server.domain.answers
            var peers = [try RawPeer(port: server.port), try RawPeer(port: server.port)]
            for peer in peers { try peer.send(Self.ask(credential)) }
            try await eventually { answers.largeAnswers(of: serial) == 2 }
            for _ in 0..<5 {
                let peer = try RawPeer(port: server.port)
                try peer.send(Self.ask(credential))
                let text = try await peer.read(until: "\r\n\r\n")
                #expect(text.hasPrefix("HTTP/1.1 429 "))
                peers.append(peer)
            }
            #expect(answers.used <= 2 * AnswerMemory.bytesOfPart)
            #expect(answers.used > 0)
            // Others are served meanwhile.
            let (other, _, _) = try await device(server, messages: 1)
            #expect(try await server.request("GET /v1/inbox", ["Authorization: Bearer \(other)"]).status == 200)
            peers = []
            try await eventually { answers.used == 0 && answers.largeAnswers(of: serial) == 0 }
        }
    }

    /// Requests an inbox, again if a slow machine took longer than the server lets a request wait.
    private func served(_ server: ServedConnections, _ credential: String) async throws -> Int {
        var status = 503
        for _ in 0..<5 where status == 503 {
            status = try await server.request("GET /v1/inbox", ["Authorization: Bearer \(credential)"]).status
        }
        return status
    }

    @Test func `beyond the memory of all answers a request waits, and is refused`() async throws {
        try await ServedConnections.run {
            $0.answerBytes = AnswerMemory.bytesOfPart
        } _: { server in
            let (credential, _, _) = try await device(server, messages: 100)
            let (other, _, _) = try await device(server, messages: 1)
            let slow = try RawPeer(port: server.port)
            try slow.send(Self.ask(credential))
            _ = try await slow.read(until: "\r\n\r\n")
            let began = ContinuousClock.now
            let refused = try await server.request("GET /v1/inbox", ["Authorization: Bearer \(other)"])
            #expect(refused.status == 503)
            #expect(refused.body.contains("overloaded"))
            #expect(refused["carillon-server"] == server.domain.server.description)
            #expect(ContinuousClock.now - began >= .seconds(4))
            // A device without waiting envelopes needs no memory.
            let (idle, _, _) = try await device(server, messages: 0)
            #expect(try await server.request("GET /v1/inbox", ["Authorization: Bearer \(idle)"]).status == 200)
            async let late = served(server, other)
            _ = try await slow.read(until: "0\r\n\r\n")
            #expect(try await late == 200)
        }
    }

    @Test(arguments: [1, 6, 7, 60], [500, 7])
    func `an answer in parts has every envelope once and in order`(count: Int, max: Int) async throws {
        let fixture = try await RouteFixture()
        let world = try await SentMessages(fixture, count: count, bytes: 8000)
        let answer = try await fixture.request(.get, "/v1/inbox?max=\(max)", key: world.credential)
        #expect(answer.status == 200)
        let json = try #require(answer.json)
        guard case .array(let envelopes)? = json["envelopes"] else {
            Issue.record("there are no envelopes")
            return
        }
        let versions = envelopes.compactMap { envelope -> String? in
            if case .string(let text)? = envelope["version"] { text } else { nil }
        }
        #expect(versions == world.ids.prefix(max).map(\.description))
        #expect(json["more"] == .bool(count > max))
        #expect(fixture.domain.answers.used == 0)
    }

    @Test func `a poll with a position is answered in parts as well, and its position is behind the last`() async throws {
        let fixture = try await RouteFixture()
        let world = try await SentMessages(fixture, count: 30, bytes: 8000)
        let first = try await fixture.request(.post, "/v1/inbox", key: world.credential, #"{"protocol":1,"max":20}"#)
        let body = #"{"protocol":1,"max":20,"position":"\#(first["position"])"}"#
        let second = try await fixture.request(.post, "/v1/inbox", key: world.credential, body)
        guard case .array(let rest)? = second.json?["envelopes"] else {
            Issue.record("there are no envelopes")
            return
        }
        #expect(rest.count == 10)
        #expect(second.json?["more"] == .bool(false))
    }

    @Test func `an inbox that is full of unwanted envelopes is searched to its end`() async throws {
        let fixture = try await RouteFixture()
        let world = try await SentMessages(fixture, count: 40, bytes: 8000)
        let body = #"{"protocol":1,"max":2,"only":"updates"}"#
        let answer = try await fixture.request(.post, "/v1/inbox", key: world.credential, body)
        #expect(answer.json?["more"] == .bool(false))
    }
}

/// A device of routes without a server, for which messages wait.
struct SentMessages {
    let credential: String
    let device: DeviceSerial
    let ids: [MessageID]

    init(_ fixture: RouteFixture, count: Int, bytes: Int) async throws {
        let app = try AppID.checked("com.example.app")
        _ = try await fixture.domain.apps.create(app)
        let (device, credential) = try await fixture.domain.devices.register(app: app)
        var random = SystemRandomNumberGenerator()
        let channel = try await fixture.domain.channels.register(
            .random(using: &random), device: device.serial, name: nil, vapidKey: nil
        ).channel
        var ids: [MessageID] = []
        for _ in 0..<count {
            let body = Array(repeating: UInt8(ascii: "x"), count: bytes)
            ids.append(
                try await fixture.domain.publisher.publish(
                    PublishRequest(body: body, coding: ContentCoding(.identity), ttl: 600), to: channel
                ).id)
        }
        self.credential = credential.text
        self.device = device.serial
        self.ids = ids
    }
}
