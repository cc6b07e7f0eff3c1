import CarillonCore
import CarillonWire
import HTTPTypes
import TestStores
import Testing

@testable import CarillonServer

/// The limits of a device's report in a poll, and of a sender's update.
@Suite(.timeLimit(.minutes(5)))
struct UpdateMemberBoundsTests {
    private static func text(_ count: Int) -> String { "\"" + String(repeating: "x", count: count) + "\"" }

    private static func kinds(_ count: Int) -> String {
        "[" + (0..<count).map { "\"com.example.k\($0)\"" }.joined(separator: ",") + "]"
    }

    static let polls = [
        (#""profile":\#(text(128))"#, #""profile":\#(text(129))"#), (#""kinds":\#(kinds(64))"#, #""kinds":\#(kinds(65))"#),
        (#""max":500"#, #""max":501"#), (#""max":0"#, #""max":-1"#), (#""wait":0"#, #""wait":301"#),
        (#""wait":0"#, #""wait":-1"#),
    ]

    @Test(arguments: polls)
    func `a poll beyond a bound is refused, and leaves nothing`(largest: String, beyond: String) async throws {
        let world = try await UpdateWorld()
        func poll(_ members: String) async throws -> RouteFixture.Answer {
            try await world.routes.request(
                .post, "/v1/inbox", key: world.first.credential, #"{"protocol":1,\#(members)}"#)
        }
        let refused = try await poll(beyond)
        #expect(refused.status == 400, "\(String(decoding: refused.body, as: UTF8.self))")
        #expect(try await stores.count(.bindings, in: world.routes.store) == 0)
        #expect(try await poll(largest).status == 200)
    }

    @Test(arguments: [
        ("x", 256, 256), ("x", 257, 256), ("x", 5000, 256), ("ä", 128, 256), ("ä", 129, 256), ("€", 86, 255),
        ("👍🏽", 33, 256), ("👩🏽‍🚀", 20, 255),
    ])
    func `the reason of a result is kept up to 256 bytes, in whole characters`(
        character: String, count: Int, bytes: Int
    ) async throws {
        let world = try await UpdateWorld()
        try await world.publish()
        let copies = try await world.poll()
        let reason = String(repeating: character, count: count)
        let said = UpdateWorld.result(
            try #require(copies.first), "deferred", #","delay":60,"reason":"\#(reason)""#)
        try await world.ask(nil, said)
        #expect(try await stores.reasonSizes(in: world.routes.store) == [bytes])
        #expect(bytes.isMultiple(of: character.utf8.count))
    }

    @Test func `a reason with its condition has 256 bytes as well`() async throws {
        let world = try await UpdateWorld()
        try await world.publish()
        let copies = try await world.poll()
        let said = UpdateWorld.result(
            try #require(copies.first), "deferred", #","until":"mode","reason":\#(Self.text(256))"#)
        try await world.ask(nil, said)
        #expect(try await stores.reasonSizes(in: world.routes.store) == [256])
    }

    static let updates = [
        (#""orderKey":\#(text(128))"#, #""orderKey":\#(text(129))"#), (#""orderKey":\#(text(1))"#, #""orderKey":"""#),
        (#""ttl":\#(366 * 86_400)"#, #""ttl":\#(366 * 86_400 + 1)"#), (#""ttl":60"#, #""ttl":59"#),
    ]

    @Test(arguments: updates)
    func `an update beyond a bound is refused`(largest: String, beyond: String) async throws {
        let world = try await UpdateWorld()
        func publish(_ members: String) async throws -> RouteFixture.Answer {
            try await world.routes.request(
                .post, "/v1/updates", key: world.sender, #"{"kind":"definitions",\#(members)}"#)
        }
        #expect(try await publish(beyond).code == "field_invalid")
        #expect(try await stores.count(.updates, in: world.routes.store) == 0)
        let taken = try await publish(largest)
        #expect(taken.status == 201, "\(String(decoding: taken.body, as: UTF8.self))")
    }
}
