import CarillonBasics
import CarillonWire
import Crypto
import Foundation
import HTTPTypes
import Synchronization
import TestStores
import TestSupport
import Testing

@testable import CarillonCore
@testable import CarillonServer

/// A store whose commits fail and recover, under every route that changes something.
@Suite(.timeLimit(.minutes(5)))
struct FailedWriteTests {
    /// Sends each request twice: while nothing can be written, and again.
    private final class Trial {
        let routes: RouteFixture
        var tried: Set<String> = []

        init(_ routes: RouteFixture) { self.routes = routes }

        /// - Parameters:
        ///   - route: As in ``Routes/names``.
        ///   - values: The values for the names in the path.
        @discardableResult func change(
            _ route: String, _ values: [String: String] = [:], query: String = "", key: String? = nil, _ body: String? = nil,
            headers: [HTTPField] = [], sourceLocation: SourceLocation = #_sourceLocation
        ) async throws -> RouteFixture.Answer {
            tried.insert(route)
            let parts = route.split(separator: " ")
            var path = String(parts[1])
            for (name, value) in values { path = path.replacingOccurrences(of: "{\(name)}", with: value) }
            let method = try #require(HTTPRequest.Method(rawValue: String(parts[0])))
            stores.refuseChanges(of: routes.store, with: StoreFault(.full, "the disk is full"))
            let refused = try await routes.request(method, path + query, key: key, body, headers: headers)
            if path == "/GNP1.0" {
                #expect(refused.headers[.gnpCode]?.hasPrefix("507") ?? false, sourceLocation: sourceLocation)
            } else {
                let isOfFile = path.hasPrefix("/v1/attachments") && refused.code == "attachment_storage_full"
                #expect(
                    refused.status == 503 && refused.code == "storage_full" || refused.status == 507 && isOfFile,
                    "\(route): \(refused.status) \(String(decoding: refused.body, as: UTF8.self))",
                    sourceLocation: sourceLocation)
                #expect(refused.headers[.retryAfter] != nil, sourceLocation: sourceLocation)
            }
            stores.refuseChanges(of: routes.store, with: nil)
            let done = try await routes.request(method, path + query, key: key, body, headers: headers)
            #expect(
                (200..<300).contains(done.status), "\(route): \(done.status) \(String(decoding: done.body, as: UTF8.self))",
                sourceLocation: sourceLocation)
            return done
        }
    }

    private static let app = "com.example.app"
    private static let inApp = ["app": app]

    private static func json(_ value: some Encodable) throws -> String {
        String(decoding: try JSONEncoder().encode(value), as: UTF8.self)
    }

    /// These change nothing, or not in the store.
    private static let others: Set = [
        "PUT /GNP1.0", "DELETE /GNP1.0", "PATCH /GNP1.0", "PUT /v1/attachments/{attachment}", "POST /v1/updates/explain",
    ]

    @Test func `every route that changes something answers 503 while nothing can be written, and works afterwards`()
        async throws
    {
        let directory = TemporaryDirectory()
        let routes = try await RouteFixture(
            key: WrappingKey(bytes: Array(repeating: 1, count: 32)),
            attachmentFiles: stores.factory.attachmentFiles(of: directory.path))
        let trial = Trial(routes)
        let (admin, inApp) = (routes.admin, Self.inApp)

        try await trial.change("POST /v1/apps", key: admin, #"{"id":"\#(Self.app)"}"#)
        let client = try await trial.change("POST /v1/keys", key: admin, #"{"role":"client","app":"\#(Self.app)"}"#)[
            "secret"]
        let sender = try await routes.request(
            .post, "/v1/keys", key: admin, #"{"role":"sender","app":"\#(Self.app)"}"#)["secret"]
        let spare = try await routes.request(.post, "/v1/keys", key: admin, #"{"role":"sender","app":"\#(Self.app)"}"#)
        try await trial.change("POST /v1/keys/{key}/rotate", ["key": spare["id"]], key: admin, "{}")
        try await trial.change("DELETE /v1/keys/{key}", ["key": spare["id"]], key: admin)

        let p8 = ["p8": P256.Signing.PrivateKey().pemRepresentation, "keyID": "ABC1234567", "teamID": "DEF1234567"]
        let sandbox = inApp.merging(["environment": "sandbox"]) { $1 }
        try await trial.change("PUT /v1/apps/{app}/credentials/{environment}", sandbox, key: admin, try Self.json(p8))
        try await trial.change("DELETE /v1/apps/{app}/credentials/{environment}", sandbox, key: admin)
        try await trial.change("PUT /v1/apps/{app}/alert", inApp, key: admin, #"{"title":"x","body":"y"}"#)
        try await trial.change("DELETE /v1/apps/{app}/alert", inApp, key: admin)
        let secret = String(repeating: "x", count: 32)
        try await trial.change("PUT /v1/apps/{app}/users", inApp, key: admin, #"{"secrets":["\#(secret)"]}"#)
        try await trial.change("DELETE /v1/apps/{app}/users", inApp, key: admin)
        try await trial.change("PUT /v1/apps/{app}/veto", inApp, key: admin, #"{"url":"https://back.example.com/v"}"#)
        try await trial.change("DELETE /v1/apps/{app}/veto", inApp, key: admin)
        try await trial.change("PUT /v1/apps/{app}/items", inApp, key: admin, SubscriptionWorld.openRules)
        try await trial.change("PUT /v1/apps/{app}/parameters", inApp, key: admin, UpdateWorld.parameters)
        try await routes.domain.gateways.open()

        let device = try await trial.change("POST /v1/devices", key: client)
        let (id, credential) = (device["id"], device["credential"])
        try await trial.change(
            "PUT /v1/device", key: credential, #"{"platform":"apple","pushToken":"aa01","environment":"test"}"#)
        try await trial.change("PATCH /v1/device", key: credential, #"{"locale":"de"}"#)
        try await trial.change("POST /v1/device/badge/reset", key: credential)
        try await trial.change("POST /v1/devices/{device}/suspend", ["device": id], key: admin)
        try await trial.change("POST /v1/devices/{device}/resume", ["device": id], key: admin)
        try await trial.change("POST /v1/apps/{app}/pushes/parked/requeue", inApp, key: admin)

        let channelID = UUID().uuidString.lowercased()
        let channel = try await trial.change(
            "POST /v1/device/channels", key: credential, #"{"channelID":"\#(channelID)"}"#)
        let token = channel["token"]
        try await trial.change(
            "PUT /push/{token}/watch", ["token": token], #"{"pingAddress":"http://example.com"}"#)
        try await trial.change("DELETE /push/{token}/watch", ["token": token])
        try await messages(trial, token: token, credential: credential)
        let other = UUID().uuidString.lowercased()
        _ = try await routes.request(.post, "/v1/device/channels", key: credential, #"{"channelID":"\#(other)"}"#)
        try await trial.change(
            "POST /v1/devices/{device}/channels/{channel}/revoke", ["device": id, "channel": other], key: admin, "{}")
        try await trial.change("DELETE /v1/device/channels/{channel}", ["channel": channelID], key: credential)

        try await itemsAndUpdates(trial, sender: sender, credential: credential)
        try await attachments(trial, sender: sender)
        try await services(trial)

        try await trial.change(
            "PUT /v1/device/credential", key: credential, #"{"secret":"\#(String(repeating: "Ab-_", count: 8))"}"#)
        let gone = try await routes.request(.post, "/v1/devices", key: client)
        try await trial.change("DELETE /v1/device", key: gone["credential"])
        try await trial.change("DELETE /v1/devices/{device}", ["device": id], key: admin)
        try await trial.change("DELETE /v1/apps/{app}", inApp, key: admin)

        let changing = routes.routeNames.filter { !$0.hasPrefix("GET ") && !$0.hasPrefix("OPTIONS ") }
        #expect(Set(changing).subtracting(trial.tried) == Self.others)
    }

    private func publish(_ routes: RouteFixture, _ token: String) async throws -> String {
        let channel = try await routes.domain.publisher.channel(of: token)
        return try await routes.domain.publisher.publish(
            PublishRequest(body: [1], coding: ContentCoding(.identity), ttl: 60), to: channel
        ).id.description
    }

    private func messages(_ trial: Trial, token: String, credential: String) async throws {
        let routes = trial.routes
        let answered = try await publish(routes, token)
        try await trial.change(
            "POST /v1/inbox/results", key: credential, #"{"results":[{"version":"\#(answered)","result":"acknowledged"}]}"#)
        #expect(try await routes.request(.get, "/message/\(answered)")["outcome"] == "acknowledged")
        let cancelled = try await publish(routes, token)
        try await trial.change("DELETE /message/{id}", ["id": cancelled])
        #expect(try await routes.request(.get, "/message/\(cancelled)")["outcome"] == "cancelled")
        let gnp: [HTTPField] = [HTTPField(name: .gnpToken, value: token)]
        try await trial.change("POST /GNP1.0", query: "?method=notify", "hello", headers: gnp)
        let endpoint = "https://push.example.com/push/\(token)"
        try await trial.change(
            "POST /_matrix/push/v1/notify", [:],
            #"{"notification":{"devices":[{"app_id":"a","pushkey":"\#(endpoint)"}],"counts":{"unread":1}}}"#)
        // A position that was received is written before the poll is answered.
        let first = try await routes.request(.post, "/v1/inbox", key: credential, #"{"protocol":1,"kinds":["popup"]}"#)
        try await trial.change(
            "POST /v1/inbox", key: credential, #"{"protocol":1,"kinds":["popup"],"position":"\#(first["position"])"}"#)
        #expect(try await routes.request(.get, "/v1/device", key: credential).json?["waiting"] == .integer(0))
    }

    private func itemsAndUpdates(_ trial: Trial, sender: String, credential: String) async throws {
        let routes = trial.routes
        try await trial.change(
            "POST /v1/items/{item}/updates", ["item": "stock.ACME"], key: sender, #"{"fields":{"price":1}}"#)
        let subscription = try await trial.change(
            "POST /v1/device/subscriptions", key: credential, SubscriptionWorld.body())
        try await trial.change(
            "PATCH /v1/device/subscriptions/{subscription}", ["subscription": subscription["id"]], key: credential,
            #"{"trigger":"price > 7.0"}"#)
        try await trial.change(
            "DELETE /v1/device/subscriptions/{subscription}", ["subscription": subscription["id"]], key: credential)
        for (route, body) in [
            ("PUT /v1/device/subscriptions", #"{"keys":{}}"#), ("DELETE /v1/device/subscriptions", nil),
        ] {
            let made = try await routes.request(
                .post, "/v1/device/subscriptions", key: credential, SubscriptionWorld.body(key: "a"))
            #expect(made.status == 201)
            #expect(try await trial.change(route, key: credential, body).json?["removed"] == .integer(1))
        }
        // Each line has an answer of its own.
        let lines = #"{"item":"stock.ACME","fields":{"price":2}}"# + "\n"
        stores.refuseChanges(of: routes.store, with: StoreFault(.full, "the disk is full"))
        let many = try await routes.request(.post, "/v1/items/updates", key: sender, lines)
        #expect(String(decoding: many.body, as: UTF8.self).contains("storage_full"), "\(many.status)")
        stores.refuseChanges(of: routes.store, with: nil)
        let again = try await routes.request(.post, "/v1/items/updates", key: sender, lines)
        #expect(!String(decoding: again.body, as: UTF8.self).contains("storage_full"), "\(again.status)")
        trial.tried.insert("POST /v1/items/updates")
        try await trial.change("DELETE /v1/items/{item}", ["item": "stock.ACME"], key: sender)
        let update = try await trial.change(
            "POST /v1/updates", key: sender, #"{"kind":"popup","payload":{"style":"important","title":"x"}}"#)
        try await trial.change("POST /v1/updates/{update}/requeue", ["update": update["id"]], key: sender)
        try await stores.pauseUpdates(in: routes.store)
        let resumed = try await trial.change("POST /v1/updates/{update}/resume", ["update": update["id"]], key: sender)
        #expect(resumed.status == 200 && resumed.json?["paused"] == nil)
        try await trial.change("DELETE /v1/updates/{update}", ["update": update["id"]], key: sender)
    }

    private func attachments(_ trial: Trial, sender: String) async throws {
        func fields(_ values: [(String, String)]) -> [HTTPField] {
            values.compactMap { field in HTTPField.Name(field.0).map { HTTPField(name: $0, value: field.1) } }
        }
        let begun = try await trial.change(
            "POST /v1/attachments", query: "?readers=senders", key: sender, "",
            headers: fields([("Upload-Complete", "?0"), ("Upload-Length", "4")]))
        let id = String(begun.headers[.location]?.split(separator: "/").last ?? "")
        #expect(begun.status == 201, "\(String(decoding: begun.body, as: UTF8.self))")
        try await trial.change(
            "PATCH /v1/attachments/{attachment}", ["attachment": id], key: sender, "abcd",
            headers: fields([
                ("Upload-Complete", "?1"), ("Upload-Offset", "0"), ("Content-Type", "application/partial-upload"),
            ]))
        try await trial.change("DELETE /v1/attachments/{attachment}", ["attachment": id], key: sender)
    }

    private func services(_ trial: Trial) async throws {
        typealias World = ServiceWorld
        let world = ServiceWorld(over: trial.routes)
        let (consumer, provider) = (
            try await world.phone("com.example.reader", of: "anna"), try await world.phone("com.example.files", of: "anna")
        )
        for name in [consumer.app, provider.app] {
            try await trial.change("PUT /v1/apps/{app}/realm", ["app": name], key: trial.routes.admin, #"{"realm":"r"}"#)
        }
        try await trial.change(
            "PUT /v1/device/services", key: provider.credential,
            #"{"name":"Files","version":"2.1","services":[{"id":"\#(World.service)","version":"1.0.0.0"}],"keys":"#
                + String(decoding: World.keys().json.bytes, as: UTF8.self) + "}")
        try await trial.change(
            "POST /v1/services/requests", key: consumer.credential, World.request(World.id(1), to: provider))
        let first = ["request": World.id(1)]
        try await trial.change("POST /v1/services/requests/{request}/received", first, key: provider.credential)
        try await trial.change(
            "POST /v1/services/requests/{request}/reply", first, key: provider.credential,
            String(decoding: JSONValue.object(World.content.members).bytes, as: UTF8.self))
        #expect(try await world.ask(2, from: consumer, to: provider).status == 201)
        try await trial.change("DELETE /v1/services/requests/{request}", ["request": World.id(2)], key: consumer.credential)
        #expect(try await world.ask(3, from: consumer, to: provider).status == 201)
        try await trial.change(
            "DELETE /v1/services/requests", query: "?app=\(provider.app)&device=\(provider.id)", key: consumer.credential)
        try await trial.change("DELETE /v1/device/services", key: provider.credential)
        let server = ["app": provider.app, "device": provider.id]
        try await trial.change("PUT /v1/apps/{app}/servers/{device}", server, key: trial.routes.admin, "{}")
        try await trial.change("DELETE /v1/apps/{app}/servers/{device}", server, key: trial.routes.admin)
        try await trial.change("DELETE /v1/apps/{app}/realm", ["app": provider.app], key: trial.routes.admin)
    }

    // MARK: Sessions

    /// Answers for each envelope at once, before it can be written.
    private final class Quick: LiveSession {
        let inbox: Inbox
        let device: DeviceSerial

        init(_ inbox: Inbox, _ device: DeviceSerial) { (self.inbox, self.device) = (inbox, device) }

        func offer(_ envelope: Envelope) { inbox.finish(envelope.id, device: device, .acknowledged, code: nil) }
        func offerVolatile(_ envelope: Envelope, answer: @escaping @Sendable (Bool) -> Void) {
            answer(true)
            inbox.finish(envelope.id, device: device, .acknowledged, code: nil)
        }
        func storedMore() {}
        func withdrew(_ withdrawal: DeliveryMachine.Withdrawal, done: @escaping @Sendable () -> Void) { done() }
        func finished(_ ids: [MessageID]) {}
        func end(because reason: SessionEnd) {}
    }

    @Test(arguments: [60, 0] as [Int64])
    func `an outcome that a sender received is written when the store recovers`(ttl: Int64) async throws {
        let routes = try await RouteFixture()
        let (id, credential, _) = try await routes.device()
        let channel = try await routes.request(
            .post, "/v1/device/channels", key: credential, #"{"channelID":"\#(UUID().uuidString.lowercased())"}"#)
        let deviceID = try #require(DeviceID(id))
        let device = try #require(try await routes.store.device(deviceID)).serial
        let home = routes.domain.runtime
        let session = Quick(home.inbox, device)
        home.sessions.join(session, device: device)
        let pushChannel = try await routes.domain.publisher.channel(of: channel["token"])
        stores.refuseChanges(of: routes.store, with: StoreFault(.full, "the disk is full"))
        let receipt = try await routes.domain.publisher.publish(
            PublishRequest(body: [1], coding: ContentCoding(.identity), ttl: ttl), to: pushChannel)
        if ttl > 0 { #expect(receipt.outcome == .acknowledged) }
        for _ in 0..<3 {
            let asked = try await routes.request(.get, "/message/\(receipt.id)")
            #expect(asked.status == 503 && asked.code == "storage_full")
        }
        stores.refuseChanges(of: routes.store, with: nil)
        await home.inbox.writeUnwritten()
        #expect(try await routes.request(.get, "/message/\(receipt.id)")["outcome"] == "acknowledged")
        #expect(!home.inbox.hasUnwritten)
    }

    @Test func `frames of a socket while nothing can be written count, or are refused`() async throws {
        try await ServedConnections.run { server in
            let store = try #require(server.store)
            let channel = try await server.openChannel()
            let peer = try RawPeer(port: server.port)
            try await peer.hello(credential: channel.credential, version: 3)
            var messages: [String] = []
            for _ in 0..<3 {
                let answer = try await server.request(
                    "POST /push/\(channel.token)",
                    ["TTL: 20", "Content-Encoding: identity", "Idempotency-Key: k\(messages.count)"],
                    "x")
                #expect(answer.status == 201)
                messages.append(String((answer["location"] ?? "").split(separator: "/").last ?? ""))
            }
            _ = try await peer.read(until: messages[2])
            stores.refuseChanges(of: store, with: StoreFault(.full, "the disk is full"))
            try peer.sendFrame(
                #"{"messageType":"ack","updates":[{"version":"\#(messages[0])"},{"version":"\#(messages[1])"}]}"#)
            try peer.sendFrame(#"{"messageType":"nack","version":"\#(messages[2])","code":301}"#)
            let channelID = UUID().uuidString.lowercased()
            try peer.sendFrame(#"{"messageType":"register","channelID":"\#(channelID)"}"#)
            #expect(try await peer.read(until: channelID).contains(#""status":500"#))
            try peer.sendFrame(
                #"{"messageType":"request","id":7,"method":"POST","path":"/v1/inbox","body":{"protocol":1,"kinds":["popup"]}}"#
            )
            #expect(try await peer.read(until: #""id":7"#).contains(#""status":503"#))
            #expect(try await server.request("GET /message/\(messages[0])").status == 503)
            stores.refuseChanges(of: store, with: nil)
            // The socket stays open, and sends nothing more.
            for (message, outcome) in zip(messages, ["acknowledged", "acknowledged", "failed"]) {
                try await eventually {
                    let asked = try await server.request("GET /message/\(message)")
                    return asked.status == 200 && asked.body.contains(#""outcome":"\#(outcome)""#)
                }
            }
            try peer.sendFrame("{}")
            _ = try await peer.read(until: "{}")
        }
    }

    @Test func `a connected device receives later the messages that could not be written at first`() async throws {
        let world = try await UpdateWorld()
        try await world.ask()
        let store = world.routes.store
        // The update is published; its envelope is refused.
        stores.onCommit(of: store) {
            stores.refuseChanges(of: store, with: StoreFault(.full, "the disk is full"))
        }
        try await world.publish("popup", #"{"style":"important","title":"x"}"#)
        let delivery = world.routes.domain.updateDelivery
        try await eventually { delivery.present.withLock { $0.values.contains { !$0.missed.isEmpty } } }
        stores.onCommit(of: store, nil)
        stores.refuseChanges(of: store, with: nil)
        #expect(try await store.waitingInAll().envelopes == 0)
        try await world.sweep()
        #expect(try await store.waitingInAll().envelopes == 1)
    }

    @Test func `the connection of a device is written later`() async throws {
        let world = try await UpdateWorld()
        world.advance(seconds: 2 * 86_400)
        try await world.ask()
        let routes = world.routes
        stores.refuseChanges(of: routes.store, with: StoreFault(.full, "the disk is full"))
        for _ in 0..<2 { await #expect(throws: StoreFault.self) { try await routes.domain.devices.writeSeen() } }
        stores.refuseChanges(of: routes.store, with: nil)
        try await routes.domain.devices.writeSeen()
        let id = try #require(DeviceID(world.first.id))
        let device = try #require(try await routes.store.device(id))
        #expect(device.seenAt == world.now)
    }
}
