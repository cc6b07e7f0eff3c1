import CarillonBasics
import CarillonCore
import CarillonWire
import Crypto
import Foundation
import HTTPTypes
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

/// A deleted app, and another one that is created with its name.
@Suite(.timeLimit(.minutes(5)))
struct DeletedAppTests {
    private let path = "/v1/apps/com.example.app"

    /// Sets everything that an operator can set for an app, and that the server keeps in memory.
    private func prepare(_ routes: RouteFixture) async throws {
        let p8 = ["p8": P256.Signing.PrivateKey().pemRepresentation, "keyID": "ABC1234567", "teamID": "DEF1234567"]
        let bodies = [
            "/items": SubscriptionWorld.openRules, "/veto": #"{"url":"https://back.example.com/veto"}"#,
            "/users": #"{"secrets":["\#(String(repeating: "x", count: 40))"]}"#,
            "/credentials/production": String(decoding: try JSONEncoder().encode(p8), as: UTF8.self),
        ]
        for (part, body) in bodies {
            let answer = try await routes.request(.put, path + part, key: routes.admin, body)
            #expect(answer.status == 200, "\(part): \(String(decoding: answer.body, as: UTF8.self))")
        }
        let sender = try await routes.request(
            .post, "/v1/keys", key: routes.admin, #"{"role":"sender","app":"com.example.app"}"#)["secret"]
        let update = try await routes.request(
            .post, "/v1/items/stock.ACME/updates", key: sender, #"{"fields":{"price":1}}"#)
        #expect(update.status == 200)
    }

    @Test func `an app that is made again has nothing of the deleted one`() async throws {
        let backend = ApprovalHookTests.Backend()
        let routes = try await RouteFixture(
            key: WrappingKey(bytes: Array(repeating: 1, count: 32)), approvalHookCaller: backend.caller)
        let domain = routes.domain
        try await domain.gateways.open()
        _ = try await routes.device()
        try await prepare(routes)
        let queue = PushQueue(app: try await domain.serial(ofApp: "com.example.app"), environment: .production)
        #expect(domain.gateways.isConfigured(queue))
        try await eventually { await domain.itemEngine.isIdle }
        #expect(await domain.itemEngine.population.items == 1)
        #expect(try await routes.request(.delete, path, key: routes.admin).status == 204)
        #expect(!domain.gateways.isConfigured(queue), "its pushes are not sent any more")
        #expect(await domain.itemEngine.population.items == 0)

        let asked = backend.questions.count
        backend.answers(403)
        let device = try await routes.device()
        #expect(!device.credential.isEmpty, "the deleted app's server may refuse nothing")
        #expect(backend.questions.count == asked)
        for part in ["/veto", "/users"] {
            #expect(try await routes.request(.get, path + part, key: routes.admin).status == 404, "\(part)")
        }
        let list = try await routes.request(.get, path + "/credentials", key: routes.admin)
        #expect(list.json?["credentials"] == .array([]))
        let subscribed = try await routes.request(
            .post, "/v1/device/subscriptions", key: device.credential, SubscriptionWorld.body())
        #expect(subscribed.status >= 400, "no item is open")
    }

    @Test func `an app whose rows cannot be removed yet is deleted, and nothing of it is remembered`() async throws {
        let (store, catcher) = (try await stores.open(), LogCatcher())
        let key = WrappingKey(bytes: Array(repeating: 1, count: 32))
        let routes = try await RouteFixture(
            key: key, approvalHookCaller: ApprovalHookTests.Backend().caller, store: store, logger: catcher.logger)
        let domain = routes.domain
        try await domain.gateways.open()
        _ = try await routes.device()
        try await prepare(routes)
        try await eventually { await domain.itemEngine.isIdle }
        let app = try await domain.serial(ofApp: "com.example.app")
        for part in ["/veto", "/users"] {
            #expect(try await routes.request(.get, path + part, key: routes.admin).status == 200)
        }
        let kinds: [AppDocument.Kind] = [.approvalHook, .userRules]
        #expect(kinds.allSatisfy { domain.documents.remembers(AppDocument.Key($0, of: app)) })
        // The home of the former server removes no rows of devices any more.
        let next = try await RouteFixture(key: key, store: store)
        #expect(try await routes.request(.delete, path, key: routes.admin).status == 204)
        #expect(!domain.gateways.isConfigured(PushQueue(app: app, environment: .production)))
        #expect(!kinds.contains { domain.documents.remembers(AppDocument.Key($0, of: app)) })
        #expect(await domain.itemEngine.population.items == 0)
        #expect(catcher.warnings.contains { $0.contains("cannot remove rows of deleted app") })
        #expect(try await routes.request(.delete, path, key: routes.admin).code == "app_unknown")
        while try await !next.domain.deletions.proceed() {}
    }
}
