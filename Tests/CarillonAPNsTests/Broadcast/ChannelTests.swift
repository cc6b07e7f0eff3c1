import Foundation
import Synchronization
import Testing

@testable import CarillonAPNs

/// Broadcasts and their channels, by the exact paths, headers and statuses.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct ChannelTests {
    /// The behaviour of the service with channels, according to its documentation.
    static let service: ScriptedServer.Script = { connection, request in
        let channel = request.headers["apns-channel-id"]
        let id = [("apns-request-id", "r")]
        switch (request.headers[":method"], request.path, channel) {
        case ("POST", "/1/apps/com.example.app/channels", nil):
            connection.answer(request.stream, 201, id + [("apns-channel-id", "new==")])
        case ("GET", "/1/apps/com.example.app/channels", "new=="):
            connection.answer(request.stream, 200, id, body: #"{"message-storage-policy":1,"push-type":"LiveActivity"}"#)
        case ("GET", "/1/apps/com.example.app/channels", _):
            connection.answer(request.stream, 400, id, body: #"{"reason":"ChannelNotRegistered"}"#)
        case ("GET", "/1/apps/com.example.app/all-channels", nil):
            connection.answer(request.stream, 200, id, body: #"{"channels":["new==","old=="]}"#)
        case ("DELETE", "/1/apps/com.example.app/channels", "new=="): connection.answer(request.stream, 204, id)
        case ("POST", "/4/broadcasts/apps/com.example.app", "new=="): connection.answer(request.stream, 200, id)
        default: connection.answer(request.stream, 404, id, body: #"{"reason":"BadPath"}"#)
        }
    }

    @Test func `channels are created, read, listed and deleted`() async throws {
        let stage = try await Stage(script: Self.service)
        let channels = try stage.client.channels()
        let created = try await channels.create(storing: .mostRecent)
        #expect(created.value == APNsChannels.Channel(id: "new==", storage: .mostRecent))
        #expect(created.requestID == "r")
        #expect(stage.server.requests.first?.body == #"{"message-storage-policy":1,"push-type":"LiveActivity"}"#)
        #expect(try await channels.read("new==").value?.storage == .mostRecent)
        let missing = try await channels.read("gone==")
        #expect(missing.rejection?.reason == .channelNotRegistered)
        #expect(try await channels.list().value == ["new==", "old=="])
        #expect(try await channels.delete("new==").rejection == nil)
        for request in stage.server.requests {
            #expect(request.headers["authorization"]?.hasPrefix("bearer ") == true)
            #expect(request.headers["apns-topic"] == nil)
        }
        try await stage.end()
    }

    @Test func `a channel whose creation has an unknown result is not created twice, whatever the policy`() async throws {
        let stage = try await Stage(configure: { $0.retryPolicy.resendsOfUnknownFate = 3 }) { connection, _ in
            connection.close()
        }
        let channels = try stage.client.channels()
        let error = await #expect(throws: APNsError.self) { try await channels.create(storing: .nothing) }
        #expect(error?.mayHaveBeenProcessed == true)
        await #expect(throws: APNsError.self) { try await channels.delete("ch==") }
        #expect(stage.server.requests.count == 2)
        try await stage.end()
    }

    @Test func `a list of ten thousand channels is complete`() async throws {
        let ids = (0..<10_000).map { "channel-with-a-long-name-\($0)==" }
        let body = #"{"channels":["# + ids.map { "\"\($0)\"" }.joined(separator: ",") + "]}"
        // In parts that fit into the client's windows, as a server sends them.
        let rest = Mutex(Substring(body))
        let send: @Sendable (ServerConnection, Int, Int) -> Void = { connection, stream, bytes in
            rest.withLock { rest in
                var room = bytes
                while room > 0, !rest.isEmpty {
                    let part = String(rest.prefix(min(room, 16_000)))
                    room -= part.utf8.count
                    rest = rest.dropFirst(part.count)
                    connection.continueBody(stream, part, endsStream: rest.isEmpty)
                }
            }
        }
        var options = ScriptedServer.Options()
        options.onWindow = send
        let stage = try await Stage(options) { connection, request in
            connection.answer(request.stream, 200, endsStream: false)
            send(connection, request.stream, 65_000)
        }
        #expect(try await stage.client.channels().list().value == ids)
        try await stage.end()
    }

    @Test func `a broadcast goes to its channel without a topic`() async throws {
        let stage = try await Stage(script: Self.service)
        let update = APNsNotification.updateLiveActivity(contentState: ["score": 1])
        let response = try await stage.client.broadcast(update, to: "new==", storing: .nothing)
        #expect(response.isAccepted)
        #expect(response.requestID == "r")
        let headers = try #require(stage.server.requests.first?.headers)
        #expect(headers["apns-push-type"] == "liveactivity")
        #expect(headers["apns-expiration"] == "0")
        #expect(headers["apns-topic"] == nil)
        try await stage.end()
    }

    @Test func `a notification that a channel without storage does not accept is refused by the client`() async throws {
        let stage = try await Stage(script: Self.service)
        let update = APNsNotification.updateLiveActivity(contentState: ["score": 1]).expiration(.now + 60)
        let error = await #expect(throws: APNsError.self) {
            try await stage.client.broadcast(update, to: "new==", storing: .nothing)
        }
        #expect(error?.code == .notificationInvalid)
        #expect(stage.server.requests.isEmpty)
        #expect(throws: APNsError.self) { try stage.client.channels(of: "a/b") }
        try await stage.end()
    }

    @Test func `the service's own hosts and ports are those of its documentation`() {
        #expect(APNsEnvironment.production.push == APNsEnvironment.Address(host: "api.push.apple.com", port: 443))
        #expect(APNsEnvironment.sandbox.push == APNsEnvironment.Address(host: "api.sandbox.push.apple.com", port: 443))
        #expect(
            APNsEnvironment.production.management
                == APNsEnvironment.Address(host: "api-manage-broadcast.push.apple.com", port: 2196))
        #expect(
            APNsEnvironment.sandbox.management
                == APNsEnvironment.Address(host: "api-manage-broadcast.sandbox.push.apple.com", port: 2195))
        #expect(
            APNsEnvironment.production.alternativePort.push
                == APNsEnvironment.Address(host: "api.push.apple.com", port: 2197))
    }
}
