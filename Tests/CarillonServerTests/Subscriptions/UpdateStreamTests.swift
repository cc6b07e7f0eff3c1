import CarillonBasics
import CarillonCore
import CarillonWire
import NIOCore
import Testing

@testable import CarillonServer

/// Updates of many items in one request, over true connections.
@Suite(.timeLimit(.minutes(5)))
struct UpdateStreamTests {
    private static func sender(_ served: ServedConnections) async throws -> (key: String, app: AppSerial) {
        let id = try AppID.checked("com.example.app")
        let app = try await served.domain.apps.create(id)
        let key = try await served.domain.keys.createKey(role: .sender, app: id, name: nil).secret.text
        return (key, app.serial)
    }

    private static func version(_ name: String, _ app: AppSerial, _ served: ServedConnections) async throws -> Int64? {
        let name = try #require(ItemName(name))
        return try? await served.domain.items.item(name, of: app).version
    }

    @Test func `each line is processed by itself, and a refused one is named`() async throws {
        try await ServedConnections.run { served in
            let (key, app) = try await Self.sender(served)
            let body = [
                #"{"item":"a","fields":{"x":1},"source":"s","sequence":1}"#, "", #"{"item":"b","fields":{"x":1}}"#,
                #"{"item":"a","fields":{"x":1},"source":"s","sequence":1}"#, #"{"item":"a"}"#, "nonsense",
                #"{"fields":{}}"#, #"{"item":"a","fields":{"x":2}}"#,
            ].joined(separator: "\n")
            let answer = try await served.request("POST /v1/items/updates", ["Authorization: Bearer \(key)"], body)
            #expect(answer.status == 200)
            let json = try #require(JSONValue(parsing: Array(answer.body.utf8)))
            #expect(json["accepted"] == .integer(3))
            #expect(json["repeated"] == .integer(1))
            #expect(json["refused"] == .integer(3))
            guard case .array(let refusals)? = json["refusals"] else { throw StoreFault(.unavailable, "") }
            #expect(refusals.map { $0["line"] } == [.integer(5), .integer(6), .integer(7)])
            #expect(
                refusals.map { $0["code"] } == [.string("field_missing"), .string("json_invalid"), .string("field_missing")])
            #expect(try await Self.version("a", app, served) == 2)
            #expect(try await Self.version("b", app, served) == 1)
        }
    }

    @Test func `a line can have 64 KiB, and the lines before a longer one are accepted`() async throws {
        try await ServedConnections.run { served in
            let (key, app) = try await Self.sender(served)
            let line = #"{"item":"b","fields":{"x":1}}"#
            for excess in 0...1 {
                let long = line + String(repeating: " ", count: Limits.apiBodyBytes + excess - line.utf8.count)
                let body = [#"{"item":"a","fields":{"x":1}}"#, long].joined(separator: "\n")
                let answer = try await served.request("POST /v1/items/updates", ["Authorization: Bearer \(key)"], body)
                #expect(answer.status == (excess == 0 ? 200 : 413))
                if excess == 1 { #expect(answer.body.contains("body_too_large") && answer.body.contains("1 lines before")) }
            }
            #expect(try await Self.version("a", app, served) == 2)
            #expect(try await Self.version("b", app, served) == 1)
        }
    }

    @Test func `a body of many megabytes is taken, and bad keys are answered before it`() async throws {
        try await ServedConnections.run { served in
            let (key, app) = try await Self.sender(served)
            let line = #"{"item":"i","fields":{"text":"\#(String(repeating: "x", count: 1000))"}}"# + "\n"
            let body = String(repeating: line, count: 4000)
            let answer = try await served.request("POST /v1/items/updates", ["Authorization: Bearer \(key)"], body)
            #expect(JSONValue(parsing: Array(answer.body.utf8))?["accepted"] == .integer(4000), "\(answer.body)")
            #expect(try await Self.version("i", app, served) == 4000)
            #expect(try await served.request("POST /v1/items/updates", [], "x").status == 401)
        }
    }

    private static func open(_ served: ServedConnections, _ key: String, _ lines: String) async throws -> (
        any NIOCore.Channel, EventLoopFuture<String>
    ) {
        let fields = ["Host: h", "Content-Length: 100000", "Authorization: Bearer \(key)", "", ""]
        let head = (["POST /v1/items/updates HTTP/1.1"] + fields).joined(separator: "\r\n")
        let (channel, received) = try await served.connect()
        try await channel.writeAndFlush(channel.allocator.buffer(string: head + lines))
        return (channel, received)
    }

    private static let line = #"{"item":"i","fields":{"x":1}}"# + "\n"

    @Test func `a line is processed when it arrives, and not when the next one does`() async throws {
        try await ServedConnections.run { served in
            let (key, app) = try await Self.sender(served)
            let (channel, _) = try await Self.open(served, key, Self.line)
            while try await Self.version("i", app, served) != 1 { try await Task.sleep(for: .milliseconds(5)) }
            try await channel.writeAndFlush(channel.allocator.buffer(string: Self.line))
            while try await Self.version("i", app, served) != 2 { try await Task.sleep(for: .milliseconds(5)) }
            try await channel.close()
        }
    }

    @Test func `a key that is revoked publishes nothing more on its open stream`() async throws {
        try await ServedConnections.run { served in
            let (key, app) = try await Self.sender(served)
            let (channel, received) = try await Self.open(served, key, Self.line)
            while try await Self.version("i", app, served) != 1 { try await Task.sleep(for: .milliseconds(5)) }
            for record in try await served.domain.keys.list() { try await served.domain.keys.revoke(record.id) }
            try await channel.writeAndFlush(channel.allocator.buffer(string: Self.line))
            let answer = ServedConnections.read(try await received.get())
            #expect(answer.status == 401 && answer.body.contains("processed the 1 lines before"), "\(answer.body)")
            #expect(try await Self.version("i", app, served) == 1)
        }
    }

    @Test func `a body in one piece with the request before it is taken whole`() async throws {
        try await ServedConnections.run { served in
            let (key, app) = try await Self.sender(served)
            let body = String(repeating: Self.line, count: 10)
            let authorization = "Host: h\r\nAuthorization: Bearer \(key)\r\n"
            let answers = try await served.exchange(
                "GET /v1/items/i HTTP/1.1\r\n\(authorization)\r\n"
                    + "POST /v1/items/updates HTTP/1.1\r\n\(authorization)Connection: close\r\n"
                    + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
            #expect(answers.contains(#""accepted":10"#), "\(answers)")
            #expect(try await Self.version("i", app, served) == 10)
        }
    }

    @Test func `lines before an early end are accepted, and the publisher receives their number`() async throws {
        try await ServedConnections.run { served in
            let (key, app) = try await Self.sender(served)
            let line = #"{"item":"i","fields":{"x":1}}"# + "\n"
            let fields = ["Host: h", "Content-Length: 100000", "Authorization: Bearer \(key)", "", ""]
            let head = (["POST /v1/items/updates HTTP/1.1"] + fields).joined(separator: "\r\n")
            let (channel, received) = try await served.connect()
            try await channel.writeAndFlush(channel.allocator.buffer(string: head + line + line))
            try await channel.close(mode: .output)
            let answer = ServedConnections.read(try await received.get())
            #expect(answer.status == 400)
            #expect(answer.body.contains("body_incomplete") && answer.body.contains("2 lines"), "\(answer.body)")
            #expect(try await Self.version("i", app, served) == 2)
        }
    }
}
