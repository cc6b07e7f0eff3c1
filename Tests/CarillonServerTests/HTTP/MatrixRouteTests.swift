import CarillonBasics
import CarillonCore
import Foundation
import HTTPTypes
import Testing

@testable import CarillonServer

/// The Matrix push gateway: large events, and notifications of which a part fails.
@Suite(.timeLimit(.minutes(5)))
struct MatrixRouteTests {
    private struct World {
        let routes: RouteFixture
        let credential: String

        init(_ rateLimits: RateLimits.Settings = .init()) async throws {
            routes = try await RouteFixture(rateLimits, ticks: TickSource { 0 })
            credential = try await routes.device().credential
        }

        func channel() async throws -> (id: String, endpoint: String) {
            let id = UUID().uuidString.lowercased()
            let opened = try await routes.request(
                .post, "/v1/device/channels", key: credential, #"{"channelID":"\#(id)"}"#)
            return (id, opened["endpoint"])
        }

        func notify(_ endpoints: [String], _ members: String = "") async throws -> RouteFixture.Answer {
            let devices = endpoints.map { #"{"app_id":"a","pushkey":"\#($0)"}"# }.joined(separator: ",")
            return try await routes.request(
                .post, "/_matrix/push/v1/notify",
                #"{"notification":{"event_id":"$1"\#(members),"devices":[\#(devices)]}}"#)
        }

        /// The bodies that wait for the device, by channel.
        func received() async throws -> [String: String] {
            let answer = try await routes.request(.get, "/v1/inbox", key: credential)
            guard case .array(let envelopes)? = answer.json?["envelopes"] else { return [:] }
            var bodies: [String: String] = [:]
            for envelope in envelopes {
                guard case .string(let channel)? = envelope["channelID"], case .string(let data)? = envelope["data"],
                    let bytes = Base64URL.decode(data)
                else { continue }
                bodies[channel] = String(decoding: bytes, as: UTF8.self)
            }
            return bodies
        }
    }

    /// The form of a notification without other members for an endpoint.
    private static func least(_ endpoint: String) -> String {
        #"{"notification":{"event_id":"$1","devices":[{"app_id":"a","pushkey":"\#(endpoint)"}]}}"#
    }

    private static let rejectsNothing = #"{"rejected":[]}"#

    private static func pad(_ bytes: Int) -> String { String(repeating: "x", count: bytes) }

    @Test func `a large event reaches the device without its content`() async throws {
        let world = try await World()
        let channel = try await world.channel()
        for (count, size) in [20_000, 120_000].enumerated() {
            let answer = try await world.notify([channel.endpoint], #","content":{"body":"\#(Self.pad(size))"}"#)
            #expect(answer.status == 200, "\(count)")
            #expect(String(decoding: answer.body, as: UTF8.self) == Self.rejectsNothing)
        }
        #expect(try await world.received() == [channel.id: Self.least(channel.endpoint)])
        let larger = try await world.notify([channel.endpoint], #","content":{"body":"\#(Self.pad(131_072))"}"#)
        #expect(larger.status == 413 && larger.code == "body_too_large")
    }

    @Test func `a notification that is too large for every device is dropped, and the homeserver is not asked to repeat it`()
        async throws
    {
        let world = try await World()
        let channel = try await world.channel()
        let answer = try await world.notify([channel.endpoint], #","room_id":"\#(Self.pad(5000))""#)
        #expect(answer.status == 200)
        #expect(String(decoding: answer.body, as: UTF8.self) == Self.rejectsNothing)
        #expect(try await world.received().isEmpty)
        // A key that is not an endpoint is rejected at any size.
        let mixed = try await world.notify(["https://x.example/", channel.endpoint], #","room_id":"\#(Self.pad(5000))""#)
        #expect(mixed.json?["rejected"] == .array([.string("https://x.example/")]))
    }

    @Test func `a dead endpoint is rejected in each spelling that the notification has`() async throws {
        let world = try await World()
        let channel = try await world.channel()
        let dead = channel.endpoint + "x"
        let answer = try await world.notify([dead, channel.endpoint, dead + "?up=1", dead, channel.endpoint + "?up=1"])
        #expect(answer.status == 200)
        #expect(answer.json?["rejected"] == .array([.string(dead), .string(dead + "?up=1")]))
        #expect(try await world.received() == [channel.id: Self.least(channel.endpoint)])
    }

    @Test func `a notification that is dropped counts against the rates of its channel`() async throws {
        var rateLimits = RateLimits.Settings()
        rateLimits.channelMessages = .init(perSecond: 1, burst: 1)
        let world = try await World(rateLimits)
        let channel = try await world.channel()
        let members = #","room_id":"\#(Self.pad(5000))""#
        #expect(try await world.notify([channel.endpoint], members).status == 200)
        let refused = try await world.notify([channel.endpoint], members)
        #expect(refused.status == 429 && refused.code == "rate_limited")
    }

    @Test func `the failure of one device refuses none that was delivered to`() async throws {
        var rateLimits = RateLimits.Settings()
        rateLimits.channelMessages = .init(perSecond: 1, burst: 1)
        let world = try await World(rateLimits)
        var channels: [(id: String, endpoint: String)] = []
        for _ in 0..<3 { channels.append(try await world.channel()) }
        #expect(try await world.notify([channels[0].endpoint]).status == 200)
        // The first has used up its rate.
        let answer = try await world.notify(channels.map(\.endpoint))
        #expect(answer.status == 200)
        #expect(String(decoding: answer.body, as: UTF8.self) == Self.rejectsNothing)
        let expected = Dictionary(uniqueKeysWithValues: channels.map { ($0.id, Self.least($0.endpoint)) })
        #expect(try await world.received() == expected)
        // Nothing was delivered: the homeserver repeats the request.
        let refused = try await world.notify(channels.map(\.endpoint))
        #expect(refused.status == 429 && refused.code == "rate_limited")
    }
}
