import CarillonBasics
import CarillonCore
import CarillonWire
import Foundation
import HTTPTypes
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

/// On every route, an object of another app is treated like an object that does not exist.
@Suite(.timeLimit(.minutes(5)))
struct ForeignObjectTests {
    /// The objects that a route names by an id.
    enum Kind: String, CaseIterable {
        case device, channel, subscription, update, message, attachment, request, item
    }

    enum Asker {
        case device, sender
    }

    struct Case: CustomTestStringConvertible {
        var method: HTTPRequest.Method
        /// As it is declared, with the parameter that the id replaces.
        var route: String
        var kind: Kind
        var asker: Asker
        /// With `ID` for the id.
        var query = ""
        var body: String?
        var headers: [HTTPField] = []
        /// The status of both answers.
        var status: Int

        var testDescription: String { "\(method) \(route)\(query) \(body ?? "")" }
    }

    private static let append = fields([
        "Upload-Offset": "0", "Upload-Complete": "?1", "Content-Type": "application/partial-upload",
    ])

    private static func fields(_ values: KeyValuePairs<String, String>) -> [HTTPField] {
        values.compactMap { name, value in HTTPField.Name(name).map { HTTPField(name: $0, value: value) } }
    }

    private static let cases: [Case] = [
        .init(method: .get, route: "/v1/messages/{id}", kind: .message, asker: .sender, status: 404),
        .init(method: .delete, route: "/v1/device/channels/{channel}", kind: .channel, asker: .device, status: 404),
        .init(
            method: .get, route: "/v1/device/subscriptions/{subscription}", kind: .subscription, asker: .device, status: 404),
        .init(
            method: .patch, route: "/v1/device/subscriptions/{subscription}", kind: .subscription, asker: .device,
            body: "{}",
            status: 404),
        .init(
            method: .delete, route: "/v1/device/subscriptions/{subscription}", kind: .subscription, asker: .device,
            status: 404
        ),
        .init(
            method: .get, route: "/v1/device/subscriptions", kind: .subscription, asker: .device, query: "?after=ID",
            status: 404),
        .init(method: .get, route: "/v1/items/{item}", kind: .item, asker: .sender, status: 404),
        .init(method: .delete, route: "/v1/items/{item}", kind: .item, asker: .sender, status: 404),
        .init(method: .post, route: "/v1/items/{item}/updates", kind: .item, asker: .sender, body: "{}", status: 400),
        .init(method: .get, route: "/v1/updates/{update}", kind: .update, asker: .sender, status: 404),
        .init(method: .delete, route: "/v1/updates/{update}", kind: .update, asker: .sender, status: 404),
        .init(method: .get, route: "/v1/updates/{update}/devices", kind: .update, asker: .sender, status: 404),
        .init(method: .post, route: "/v1/updates/{update}/requeue", kind: .update, asker: .sender, status: 404),
        .init(method: .post, route: "/v1/updates/{update}/resume", kind: .update, asker: .sender, status: 404),
        .init(method: .get, route: "/v1/updates", kind: .update, asker: .sender, query: "?before=ID", status: 404),
        .init(
            method: .post, route: "/v1/updates", kind: .update, asker: .sender,
            body: #"{"kind":"status","payload":{"status":"maintenance"},"supersedes":"ID"}"#, status: 404),
        .init(
            method: .post, route: "/v1/updates/explain", kind: .update, asker: .sender, body: #"{"update":"ID"}"#,
            status: 404),
        .init(
            method: .post, route: "/v1/updates/explain", kind: .device, asker: .sender, body: #"{"device":"ID"}"#,
            status: 404),
        .init(method: .get, route: "/v1/attachments/{attachment}", kind: .attachment, asker: .device, status: 404),
        .init(method: .get, route: "/v1/attachments/{attachment}", kind: .attachment, asker: .sender, status: 404),
        .init(method: .delete, route: "/v1/attachments/{attachment}", kind: .attachment, asker: .device, status: 404),
        .init(
            method: .patch, route: "/v1/attachments/{attachment}", kind: .attachment, asker: .device, body: "xyz",
            headers: append, status: 404),
        .init(method: .put, route: "/v1/attachments/{attachment}", kind: .attachment, asker: .device, status: 400),
        .init(
            method: .post, route: "/v1/attachments", kind: .device, asker: .device, query: "?readers=ID", body: "xyz",
            status: 404),
        .init(
            method: .post, route: "/v1/attachments", kind: .device, asker: .sender, query: "?readers=ID", body: "xyz",
            status: 404),
        .init(method: .delete, route: "/v1/services/requests/{request}", kind: .request, asker: .device, status: 404),
        .init(method: .post, route: "/v1/services/requests/{request}/received", kind: .request, asker: .device, status: 404),
        .init(
            method: .post, route: "/v1/services/requests/{request}/reply", kind: .request, asker: .device,
            body: String(decoding: JSONValue.object(ServiceWorld.content.members).bytes, as: UTF8.self), status: 404),
        .init(
            method: .post, route: "/v1/services/requests", kind: .device, asker: .device,
            body: ServiceWorld.request(
                ServiceWorld.id(77),
                to: .init(id: "ID", credential: "", app: "com.example.game", serial: .init(0))), status: 404),
        .init(
            method: .delete, route: "/v1/services/requests", kind: .device, asker: .device,
            query: "?app=com.example.game&device=ID", status: 404),
        .init(
            method: .get, route: "/v1/services/icon", kind: .device, asker: .device,
            query: "?app=com.example.game&device=ID", status: 404),
        .init(
            method: .get, route: "/v1/services", kind: .device, asker: .device, query: "?app=com.example.game&device=ID",
            status: 200),
        .init(
            method: .post, route: "/v1/inbox/results", kind: .message, asker: .device,
            body: #"{"results":[{"version":"ID","result":"acknowledged"}]}"#, status: 204),
    ]

    /// Routes with an id that no app has for itself.
    private static let exempt: [(prefix: String, reason: String)] = [
        ("/v1/apps/{app}", "for operators, who may see all apps"), ("/v1/devices/{device}", "for operators"),
        ("/v1/keys/{key}", "for operators"), ("/push/{token}", "who knows the token may use the channel"),
        ("/message/{id}", "who knows the id sent the message"),
    ]

    @Test func `each route with an id is in the table`() async throws {
        for (method, path) in try await RouteFixture().declared where path.contains("{") {
            let isTried = Self.cases.contains { $0.method == method && $0.route == path }
            #expect(isTried || Self.exempt.contains { path.hasPrefix($0.prefix) }, "\(method) \(path)")
        }
        for one in Self.cases {
            let known = try await RouteFixture().declared
            #expect(known.contains { $0.method == one.method && $0.path == one.route }, "\(one.testDescription)")
        }
    }

    // MARK: Objects of the other app

    private struct World {
        let routes: RouteFixture
        let device: String
        let sender: String
        let ids: [Kind: String]
    }

    private static let other = "com.example.game"

    private func key(_ role: String, _ app: String, _ routes: RouteFixture) async throws -> String {
        try await routes.request(.post, "/v1/keys", key: routes.admin, #"{"role":"\#(role)","app":"\#(app)"}"#)["secret"]
    }

    /// A device of an app, which belongs to a user and offers a service.
    private func device(_ app: String, _ routes: RouteFixture) async throws -> (id: String, credential: String) {
        let made = try await routes.request(.post, "/v1/devices", key: try await key("client", app, routes))
        let id = try #require(DeviceID(made["id"]))
        let serial = try #require(try await routes.store.device(id)).serial
        let user = try #require(UserID("ada"))
        let request = RegistrationRequest.reports(DeviceProfile(), confirms: false, user: .signedIn(user))
        _ = try await routes.store.changeRegistration(of: serial, at: .init(milliseconds: 0)) { _ in request }
        let keys = String(decoding: ServiceWorld.keys().json.bytes, as: UTF8.self)
        let offered = try await routes.request(
            .put, "/v1/device/services", key: made["credential"],
            #"{"name":"Files","version":"1","services":[{"id":"\#(ServiceWorld.service)","version":"1.0.0.0"}],"keys":\#(keys)}"#
        )
        #expect(offered.status == 204)
        return (made["id"], made["credential"])
    }

    private func world() async throws -> World {
        let routes = try await RouteFixture(
            attachmentFiles: stores.factory.attachmentFiles(of: try TemporaryDirectory.make()))
        for app in ["com.example.mail", Self.other] {
            _ = try await routes.request(.post, "/v1/apps", key: routes.admin, #"{"id":"\#(app)"}"#)
            let rules = #"{"items":[{"pattern":"*","open":true}]}"#
            _ = try await routes.request(.put, "/v1/apps/\(app)/items", key: routes.admin, rules)
        }
        let asker = try await device("com.example.mail", routes)
        let (one, two) = (try await device(Self.other, routes), try await device(Self.other, routes))
        let sender = try await key("sender", Self.other, routes)
        var ids: [Kind: String] = [.device: one.id, .item: "score", .request: ServiceWorld.id(5)]
        let channel = "6f3f1e0e-1111-4222-8333-444455556666"
        ids[.channel] = channel
        let opened = try await routes.request(
            .post, "/v1/device/channels", key: one.credential, #"{"channelID":"\#(channel)"}"#)
        let published = try await routes.domain.publisher.publish(
            PublishRequest(body: [1], coding: ContentCoding(.identity), ttl: 1000),
            to: try await routes.domain.publisher.channel(of: opened["token"]))
        ids[.message] = published.id.description
        ids[.subscription] =
            try await routes.request(
                .post, "/v1/device/subscriptions", key: one.credential,
                #"{"items":["score"],"fields":["x"],"format":{"title":"x"}}"#)["id"]
        _ = try await routes.request(.post, "/v1/items/score/updates", key: sender, #"{"fields":{"x":1}}"#)
        ids[.update] =
            try await routes.request(
                .post, "/v1/updates", key: sender, #"{"kind":"status","payload":{"status":"maintenance"}}"#)["id"]
        let attached = try await routes.request(
            .post, "/v1/attachments?readers=senders,\(two.id)", key: one.credential, "xyz",
            headers: [.init(name: .contentLength, value: "3")])
        ids[.attachment] = attached.headers[.location].flatMap { $0.split(separator: "/").last.map(String.init) }
        let asked = try await routes.request(
            .post, "/v1/services/requests", key: one.credential,
            ServiceWorld.request(
                ServiceWorld.id(5), to: .init(id: two.id, credential: "", app: Self.other, serial: .init(0))))
        #expect(asked.status == 201, "\(String(decoding: asked.body, as: UTF8.self))")
        for kind in Kind.allCases { #expect(ids[kind]?.isEmpty == false, "\(kind) was not made") }
        return World(
            routes: routes, device: asker.credential, sender: try await key("sender", "com.example.mail", routes), ids: ids)
    }

    private func ask(_ one: Case, _ id: String, _ world: World) async throws -> (status: Int, code: String, text: String) {
        var path = one.route + one.query.replacing("ID", with: id)
        if let start = path.firstIndex(of: "{"), let end = path.firstIndex(of: "}") {
            path.replaceSubrange(start...end, with: id)
        }
        var headers = one.headers
        let body = one.body?.replacing("\"ID\"", with: "\"\(id)\"")
        if let body { headers.append(.init(name: .contentLength, value: "\(body.utf8.count)")) }
        let answer = try await world.routes.request(
            one.method, path, key: one.asker == .device ? world.device : world.sender, body,
            headers: headers)
        let text = String(decoding: answer.body, as: UTF8.self).replacing(id, with: "ID")
        return (answer.status, answer.code ?? "", text)
    }

    @Test func `an object of another app is answered for as one that does not exist`() async throws {
        let world = try await world()
        for one in Self.cases {
            let id = try #require(world.ids[one.kind])
            let missing = one.kind == .item ? "none" : "\(id.dropLast())\(id.last == "0" ? "1" : "0")"
            let (foreign, absent) = (try await ask(one, id, world), try await ask(one, missing, world))
            #expect(foreign.status == absent.status, "\(one.testDescription): \(foreign) and \(absent)")
            #expect(foreign.code == absent.code, "\(one.testDescription): \(foreign) and \(absent)")
            #expect(foreign.text == absent.text, "\(one.testDescription): \(foreign) and \(absent)")
            #expect(foreign.status == one.status, "\(one.testDescription): \(foreign)")
        }
    }

    @Test func `a device of another app of the realm can be named as a reader`() async throws {
        let world = try await world()
        let reader = try #require(world.ids[.device])
        func create() async throws -> Int {
            try await world.routes.request(
                .post, "/v1/attachments?readers=\(reader)", key: world.device, "xyz",
                headers: [.init(name: .contentLength, value: "3")]
            ).status
        }
        #expect(try await create() == 404)
        for app in ["com.example.mail", Self.other] {
            let set = try await world.routes.request(
                .put, "/v1/apps/\(app)/realm", key: world.routes.admin, #"{"realm":"house"}"#)
            #expect(set.status == 200)
        }
        #expect(try await create() == 201)
    }
}
