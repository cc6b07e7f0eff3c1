import CarillonBasics
import CarillonCore
import CarillonWire
import HTTPTypes
import Logging
import Synchronization
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

/// An app's own server is asked, and its answer counts.
@Suite(.timeLimit(.minutes(5)))
struct ApprovalHookTests {
    /// Returns the configured answers, and stores the requests.
    final class Backend: Sendable {
        let answer = Mutex(ApprovalHookCaller.Answer.answered(status: 200, body: []))
        private let asked = Mutex<[ApprovalHookCaller.Question]>([])
        private let hold = Mutex<[CheckedContinuation<Void, Never>]?>(nil)

        var caller: ApprovalHookCaller {
            ApprovalHookCaller { [self] question in
                asked.withLock { $0.append(question) }
                if hold.withLock({ $0 != nil }) {
                    await withCheckedContinuation { continuation in hold.withLock { $0?.append(continuation) } }
                }
                return answer.withLock { $0 }
            }
        }

        var questions: [ApprovalHookCaller.Question] { asked.withLock { $0 } }
        var types: [String] {
            questions.map { question in
                if case .string(let type)? = JSONValue(parsing: question.body)?["type"] { type } else { "" }
            }
        }

        func answers(_ status: Int, _ body: String = "") {
            answer.withLock { $0 = .answered(status: status, body: Array(body.utf8)) }
        }
        func holds() { hold.withLock { $0 = [] } }
        func letGo() {
            let all = hold.withLock { hold in
                defer { hold = nil }
                return hold ?? []
            }
            for continuation in all { continuation.resume() }
        }
    }

    private let backend = Backend()
    private let path = "/v1/apps/com.example.app/veto"
    private let profile = #"{"platform":"apple","pushToken":"aa01","environment":"test"}"#
    private let subscription = SubscriptionWorld.body(key: "k")

    /// The device exists, and the items are open, before the first request.
    private func routes() async throws -> (routes: RouteFixture, device: String, clientKey: String, secret: String) {
        let routes = try await RouteFixture(approvalHookCaller: backend.caller)
        let (_, device, clientKey) = try await routes.device()
        _ = try await routes.request(
            .put, "/v1/apps/com.example.app/items", key: routes.admin, SubscriptionWorld.openRules)
        let set = try await routes.request(.put, path, key: routes.admin, #"{"url":"https://back.example.com/veto"}"#)
        #expect(set.status == 200)
        return (routes, device, clientKey, set["secret"])
    }

    @Test func `a request to an approval hook is signed, and contains the device and the request`() async throws {
        let (routes, device, clientKey, secret) = try await routes()
        #expect(try await routes.request(.patch, "/v1/device", key: device, profile).status == 200)
        #expect(try await routes.request(.post, "/v1/device/subscriptions", key: device, subscription).status == 201)
        #expect(try await routes.request(.post, "/v1/devices", key: clientKey, #"{"locale":"de"}"#).status == 201)
        #expect(backend.types == ["device.token", "subscription.activate", "device.register"])
        for question in backend.questions {
            #expect(question.address.text == "https://back.example.com/veto")
            let headers = Dictionary(uniqueKeysWithValues: question.headers.map { ($0.name, $0.value) })
            let encoded = try #require(secret.split(separator: "_").last)
            let key = SigningSecret(
                bytes: try #require(
                    Base64URL.decode(encoded.replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: ""))))
            let signature = key.signature(
                id: try #require(headers["webhook-id"]), seconds: try #require(Int64(headers["webhook-timestamp"] ?? "")),
                body: question.body)
            #expect(headers["webhook-signature"] == signature)
        }
        let data = backend.questions.map { JSONValue(parsing: $0.body)?["data"] }
        #expect(data[0]?["pushToken"] == .string("aa01") && data[0]?["environment"] == .string("test"))
        #expect(data[1]?["definition"]?["trigger"] == .string("price > 10.0"))
        #expect(data[2]?["locale"] == .string("de") && data[2]?["isAnonymous"] == .bool(false))
        #expect(data.allSatisfy { $0?["app"] == .string("com.example.app") })
    }

    @Test(
        arguments: [
            (#"{"code":"plan/basic","detail":"Bitte \"Premium\" wählen."}"#, "plan/basic", #"Bitte "Premium" wählen."#),
            (#"{"code":-7}"#, "-7", "approval hook"), ("", nil, "approval hook"), ("no JSON", nil, "approval hook"),
            (#"{"code":"","detail":""}"#, nil, "approval hook"),
            (#"{"code":"\#(String(repeating: "c", count: 129))"}"#, nil, "approval hook"),
        ] as [(String, String?, String)])
    func `the message of an approval hook reaches the device unchanged, and nothing is stored`(
        body: String, code: String?, word: String
    ) async throws {
        let (routes, device, clientKey, _) = try await routes()
        backend.answers(403, body)
        let devices = try await routes.request(.get, "/v1/apps/com.example.app/devices", key: routes.admin).body
        let answers = [
            try await routes.request(.patch, "/v1/device", key: device, profile),
            try await routes.request(.put, "/v1/device", key: device, profile),
            try await routes.request(.post, "/v1/device/subscriptions", key: device, subscription),
            try await routes.request(.post, "/v1/devices", key: clientKey, profile),
        ]
        for answer in answers {
            #expect(answer.status == 403 && answer.code == "vetoed")
            #expect(answer.json?["appCode"] == code.map { .string($0) })
            #expect(answer["detail"].contains(word))
        }
        let shown = try await routes.request(.get, "/v1/device", key: device)
        #expect(shown.json?["pushToken"] == nil || shown.json?["pushToken"] == .null)
        let list = try await routes.request(.get, "/v1/device/subscriptions", key: device)
        #expect(list.json?["subscriptions"] == .array([]))
        #expect(try await routes.request(.get, "/v1/apps/com.example.app/devices", key: routes.admin).body == devices)
    }

    @Test(arguments: [
        ApprovalHookCaller.Answer.failed("nobody there"), .answered(status: 500, body: []), .answered(status: 302, body: []),
        .answered(status: 404, body: []), .answered(status: 199, body: []), .answered(status: 300, body: []),
        .answered(status: 401, body: []),
    ])
    func `an unreachable approval hook allows nothing for now`(answer: ApprovalHookCaller.Answer) async throws {
        let (routes, device, clientKey, _) = try await routes()
        backend.answer.withLock { $0 = answer }
        for answer in [
            try await routes.request(.patch, "/v1/device", key: device, profile),
            try await routes.request(.post, "/v1/device/subscriptions", key: device, subscription),
            try await routes.request(.post, "/v1/devices", key: clientKey),
        ] {
            #expect(answer.status == 503 && answer.code == "veto_unavailable")
            #expect(answer.headers[.retryAfter] != nil)
        }
        backend.answers(299)
        #expect(try await routes.request(.patch, "/v1/device", key: device, profile).status == 200)
    }

    @Test(arguments: [(nil, "5"), (.seconds(1), "5"), (.seconds(120), "120")] as [(Duration?, String)])
    func `a device waits as long as the app's server sets`(_ wait: Duration?, _ seconds: String) async throws {
        let (routes, device, _, _) = try await routes()
        backend.answer.withLock { $0 = .answered(status: 503, body: [], wait: wait) }
        let answer = try await routes.request(.patch, "/v1/device", key: device, profile)
        #expect(answer.status == 503 && answer.headers[.retryAfter] == seconds)
    }

    @Test func `no request is sent about an unchanged registration`() async throws {
        let (routes, device, _, _) = try await routes()
        #expect(try await routes.request(.patch, "/v1/device", key: device, profile).status == 200)
        let made = try await routes.request(.post, "/v1/device/subscriptions", key: device, subscription)
        #expect(backend.types.count == 2)
        backend.answers(403)
        #expect(try await routes.request(.put, "/v1/device", key: device, profile).status == 200)
        #expect(try await routes.request(.patch, "/v1/device", key: device, #"{"locale":"fr"}"#).status == 200)
        let other = #"{"platform":"apple","pushToken":"aa01","environment":"production"}"#
        #expect(try await routes.request(.patch, "/v1/device", key: device, other).status == 200)
        #expect(try await routes.request(.post, "/v1/device/subscriptions", key: device, subscription).status == 200)
        #expect(backend.types.count == 2)
        // A change is another matter, be it as small as none, as it arms.
        let one = "/v1/device/subscriptions/\(made["id"])"
        #expect(try await routes.request(.patch, one, key: device, "{}").code == "vetoed")
        let changed = SubscriptionWorld.body("price > 11.0", key: "k")
        #expect(try await routes.request(.post, "/v1/device/subscriptions", key: device, changed).code == "vetoed")
        #expect(try await routes.request(.delete, one, key: device).status == 204)
        #expect(try await routes.request(.patch, "/v1/device", key: device, #"{"pushToken":null}"#).status == 200)
    }

    @Test func `a request to an approval hook names the user of the device, and the subscription that is changed`()
        async throws
    {
        let (routes, device, _, _) = try await routes()
        let found = try await routes.domain.devices.authenticate(bearer: device)
        let user = try #require(UserID("anna"))
        _ = try await routes.domain.devices.update(found, from: nil, confirms: false, of: { .signedIn(user) }) { $0 }
        _ = try await routes.request(.patch, "/v1/device", key: device, profile)
        let made = try await routes.request(.post, "/v1/device/subscriptions", key: device, subscription)
        let changed = SubscriptionWorld.body("price > 11.0", key: "k")
        #expect(try await routes.request(.post, "/v1/device/subscriptions", key: device, changed).status == 200)
        let data = backend.questions.map { JSONValue(parsing: $0.body)?["data"] }
        try #require(data.count == 3)
        for one in data { #expect(one?["user"] == .string("anna")) }
        #expect(data[1]?["subscription"] == nil && data[2]?["subscription"] == .string(made["id"]))
    }

    @Test func `four requests of a device wait, and no more`() async throws {
        let (routes, device, clientKey, _) = try await routes()
        backend.holds()
        try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 0..<AppApprovalHooks.mostUnderWayOfDevice {
                group.addTask {
                    let body = SubscriptionWorld.body(key: "\(number)")
                    return try await routes.request(.post, "/v1/device/subscriptions", key: device, body).status
                }
            }
            try await eventually { self.backend.questions.count == AppApprovalHooks.mostUnderWayOfDevice }
            let beyond = try await routes.request(.patch, "/v1/device", key: device, self.profile)
            #expect(beyond.code == "veto_unavailable")
            group.addTask { try await routes.request(.post, "/v1/devices", key: clientKey).status }
            try await eventually { self.backend.questions.count == AppApprovalHooks.mostUnderWayOfDevice + 1 }
            self.backend.letGo()
            for try await status in group { #expect(status == 201) }
        }
        #expect(try await routes.request(.patch, "/v1/device", key: device, profile).status == 200)
    }

    @Test func `a registration without a key, and one with another user, cause a request`() async throws {
        let (routes, _, _, _) = try await routes()
        backend.answers(403)
        await #expect(throws: Refusal.self) {
            _ = try await routes.domain.devices.registerAnonymous(
                UserAgentID(random: .system), app: try AppID.checked("com.example.app"), from: nil)
        }
        #expect(backend.types == ["device.register"])
        let data = JSONValue(parsing: try #require(backend.questions.first).body)?["data"]
        #expect(data?["isAnonymous"] == .bool(true))
    }

    @Test func `sixty-four requests of an app wait, and no more; those of another app are independent`() async throws {
        let (routes, device, clientKey, _) = try await routes()
        backend.holds()
        try await withThrowingTaskGroup(of: UInt.self) { group in
            for _ in 0..<AppApprovalHooks.mostUnderWay {
                group.addTask { UInt(try await routes.request(.post, "/v1/devices", key: clientKey).status) }
            }
            try await eventually { self.backend.questions.count == AppApprovalHooks.mostUnderWay }
            let beyond = try await routes.request(.patch, "/v1/device", key: device, self.profile)
            #expect(beyond.code == "veto_unavailable")
            #expect(self.backend.questions.count == AppApprovalHooks.mostUnderWay)
            _ = try await routes.request(.post, "/v1/apps", key: routes.admin, #"{"id":"com.example.other"}"#)
            let key = try await routes.request(
                .post, "/v1/keys", key: routes.admin, #"{"role":"client","app":"com.example.other"}"#)["secret"]
            #expect(try await routes.request(.post, "/v1/devices", key: key).status == 201)
            self.backend.letGo()
            for try await status in group { #expect(status == 201) }
        }
        #expect(try await routes.request(.patch, "/v1/device", key: device, profile).status == 200)
    }

    @Test func `the address of an approval hook is stored without its secret, and removed with the app`() async throws {
        let (routes, _, clientKey, secret) = try await routes()
        let shown = try await routes.request(.get, path, key: routes.admin)
        #expect(shown["url"] == "https://back.example.com/veto" && shown.json?["secret"] == nil)
        #expect(secret.hasPrefix("whsec_"))
        let again = try await routes.request(.put, path, key: routes.admin, #"{"url":"https://back.example.com/veto"}"#)
        #expect(again["secret"] != secret)
        for (body, code) in [
            (#"{"url":"http://back.example.com/"}"#, "veto_invalid"), (#"{"url":"https://127.0.0.1/"}"#, "veto_invalid"),
            (#"{"url":"https://localhost/"}"#, "veto_invalid"), (#"{"url":"back"}"#, "veto_invalid"),
            ("{}", "field_missing"), (#"{"url":7}"#, "field_invalid"), (#"{"uri":"x"}"#, "field_unknown"),
        ] { #expect(try await routes.request(.put, path, key: routes.admin, body).code == code, "\(body)") }
        for method in ["get", "put", "delete"] {
            let answer = try await routes.request(.init(method.uppercased()) ?? .get, path, key: clientKey, "{}")
            #expect(answer.status == 403)
        }
        backend.answers(403)
        #expect(try await routes.request(.delete, path, key: routes.admin).status == 204)
        #expect(try await routes.request(.delete, path, key: routes.admin).code == "veto_unknown")
        #expect(try await routes.request(.get, path, key: routes.admin).code == "veto_unknown")
        #expect(try await routes.request(.post, "/v1/devices", key: clientKey).status == 201)
        _ = try await routes.request(.put, path, key: routes.admin, #"{"url":"https://back.example.com/veto"}"#)
        let app = try await routes.domain.serial(ofApp: "com.example.app")
        #expect(try await routes.domain.approvalHooks.hasHook(app))
        let key = AppDocument.Key(.approvalHook, of: app)
        #expect(routes.domain.documents.remembers(key))
        _ = try await routes.request(.delete, "/v1/apps/com.example.app", key: routes.admin)
        #expect(!routes.domain.documents.remembers(key), "its secret leaves memory")
        #expect(try await !routes.domain.approvalHooks.hasHook(app))
    }

    @Test func `a subscription on an item that is closed during the request is refused`() async throws {
        let (routes, device, _, _) = try await routes()
        let app = try await routes.domain.serial(ofApp: "com.example.app")
        backend.holds()
        try await withThrowingTaskGroup(of: String?.self) { group in
            group.addTask {
                try await routes.request(.post, "/v1/device/subscriptions", key: device, self.subscription).code
            }
            try await eventually { self.backend.types == ["subscription.activate"] }
            let rules = AppDocument.Key(.itemRules, of: app)
            let closed = Array(#"{"items":[]}"#.utf8)
            _ = try await routes.store.putDocument(closed, as: rules, at: routes.domain.time.now())
            self.backend.letGo()
            for try await code in group { #expect(code == "item_closed") }
        }
        #expect(try await stores.count(.subscriptions, in: routes.store) == 0)
        #expect(backend.types == ["subscription.activate"], "closed items are refused before the app is asked")
    }

    @Test func `another server, and none, apply to the next request, with any caller that set them`() async throws {
        let (routes, device, clientKey, _) = try await routes()
        #expect(try await routes.request(.post, "/v1/devices", key: clientKey).status == 201)
        #expect(backend.questions.map(\.address.text) == ["https://back.example.com/veto"])
        let app = try await routes.domain.serial(ofApp: "com.example.app")
        let key = AppDocument.Key(.approvalHook, of: app)
        let stored = try #require(try await routes.store.document(key))
        var other = try #require(SealedDocument(stored.bytes))
        other.text = "https://other.example.com/"
        _ = try await routes.store.putDocument(other.bytes, as: key, at: stored.setAt)
        #expect(try await routes.request(.patch, "/v1/device", key: device, profile).status == 200)
        #expect(backend.questions.last?.address.text == "https://other.example.com/")
        _ = try await routes.store.removeDocument(key)
        #expect(try await routes.request(.post, "/v1/devices", key: clientKey).status == 201)
        #expect(backend.questions.count == 2)
    }

    @Test func `the approval hook of an app is read for this app alone`() async throws {
        let store = try await stores.open()
        let documents = DocumentReadings(store)
        let approvalHooks = AppApprovalHooks(
            apps: store, documents: AppDocuments(store: documents),
            keys: [TokenKey(id: 1, bytes: Array(repeating: 1, count: 32))], caller: backend.caller, rules: .init(),
            time: .system, random: .system, logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
        let start = Timestamp(milliseconds: 0)
        let app = try #require(try await store.createApp(try AppID.checked("com.example.app"), at: start))
        let other = try #require(try await store.createApp(try AppID.checked("com.example.other"), at: start))
        #expect(try await !approvalHooks.hasHook(app.serial))
        _ = try await approvalHooks.set("https://back.example.com/", of: app.id)
        #expect(try await approvalHooks.hasHook(app.serial))
        #expect(try await !approvalHooks.hasHook(other.serial))
        let device = DeviceID(Bytes16(high: 1, low: 1))
        for known in [app, other] {
            try await approvalHooks.ask(
                RegistrationQuestion.token(device, DeviceProfile(), nil), of: known.id, serial: known.serial)
        }
        #expect(backend.types == ["device.token"])
        try await approvalHooks.remove(of: app.id)
        #expect(try await !approvalHooks.hasHook(app.serial))
        #expect(documents.lists == 0)
    }

    @Test func `a server that starts anew calls approval hooks as before, and allows nothing if the secret cannot be read`()
        async throws
    {
        let store = try await stores.open()
        let random = RandomSource.system
        let app = try AppID.checked("com.example.app")
        _ = try await store.createApp(app, at: Timestamp(milliseconds: 0))
        func approvalHooks(_ key: UInt8) -> AppApprovalHooks {
            AppApprovalHooks(
                apps: store, documents: AppDocuments(store: store),
                keys: [TokenKey(id: key, bytes: Array(repeating: key, count: 32))], caller: backend.caller,
                rules: .init(), time: .system, random: random,
                logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
        }
        _ = try await approvalHooks(1).set("https://back.example.com/", of: app)
        try await approvalHooks(1).ask(RegistrationQuestion.registration(nil, nil, isAnonymous: true), of: app, serial: nil)
        #expect(backend.types == ["device.register"])
        await #expect(throws: Refusal.self) {
            try await approvalHooks(2).ask(
                RegistrationQuestion.registration(nil, nil, isAnonymous: true), of: app, serial: nil)
        }
        #expect(backend.types == ["device.register"])
    }
}
