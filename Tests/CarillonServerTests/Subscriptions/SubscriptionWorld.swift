import CarillonBasics
import CarillonCore
import CarillonWire
import HTTPTypes
import Synchronization
import TestSupport
import Testing

@testable import CarillonServer

/// An app whose items are open, a device of it whose pushes are stored and not sent, and a publisher, by HTTP and a clock that
/// the test moves.
final class SubscriptionWorld: Sendable {
    let routes: RouteFixture
    let device: String
    let id: String
    let clientKey: String
    let sender: String
    private let clock: Clock

    final class Clock: Sendable {
        private let now = Mutex(Timestamp(milliseconds: 1_700_000_000_000))
        var time: TimeSource { TimeSource { [self] in now.withLock { $0 } } }
        func set(_ moment: Timestamp) { now.withLock { $0 = moment } }
        func advance(seconds: Int64) { now.withLock { $0 = $0.adding(seconds: seconds) } }
    }

    static let openRules =
        #"{"items":[{"pattern":"stock.*","open":true},{"pattern":"events","open":true,"mode":"distinct"}]}"#

    init(
        rules: String = openRules, _ rateLimits: RateLimits.Settings = .init(), itemLimits: ItemEngine.Limits = .init(),
        store: (any Store)? = nil, ticks: TickSource = .system
    ) async throws {
        clock = Clock()
        routes = try await RouteFixture(rateLimits, itemLimits: itemLimits, store: store, time: clock.time, ticks: ticks)
        (id, device, clientKey) = try await routes.device()
        sender = try await routes.request(
            .post, "/v1/keys", key: routes.admin, #"{"role":"sender","app":"com.example.app"}"#)["secret"]
        try await routes.domain.gateways.open()
        let answer = try await routes.request(.put, "/v1/apps/com.example.app/items", key: routes.admin, rules)
        #expect(answer.status == 200, "\(String(decoding: answer.body, as: UTF8.self))")
        try await say(#"{"platform":"apple","pushToken":"aa01","environment":"test","locale":"de"}"#)
    }

    func advance(seconds: Int64) { clock.advance(seconds: seconds) }

    func say(_ profile: String, by device: String? = nil) async throws {
        let answer = try await routes.request(.patch, "/v1/device", key: device ?? self.device, profile)
        #expect(answer.status == 200, "\(String(decoding: answer.body, as: UTF8.self))")
    }

    // MARK: Publishing

    @discardableResult func publish(
        _ item: String, _ fields: String, _ rest: String = "", expecting status: Int = 200
    ) async throws -> RouteFixture.Answer {
        let answer = try await routes.request(
            .post, "/v1/items/\(item)/updates", key: sender, #"{"fields":\#(fields)\#(rest)}"#)
        #expect(answer.status == status, "\(String(decoding: answer.body, as: UTF8.self))")
        return answer
    }

    // MARK: Subscribing

    static func body(
        _ trigger: String? = "price > 10.0", item: String = "stock.ACME", key: String? = nil, format: String? = nil,
        rest: String = ""
    ) -> String {
        let format = format ?? #"{"title":"${item}: ${price}","badge":"auto"}"#
        return #"{"items":["\#(item)"],"fields":["price","name"],"format":\#(format)"#
            + (trigger.map { #","trigger":"\#($0)""# } ?? "") + (key.map { #","key":"\#($0)""# } ?? "") + rest + "}"
    }

    @discardableResult func subscribe(
        _ body: String = body(), by device: String? = nil, expecting status: Int = 201
    ) async throws -> RouteFixture.Answer {
        let answer = try await routes.request(.post, "/v1/device/subscriptions", key: device ?? self.device, body)
        #expect(answer.status == status, "\(String(decoding: answer.body, as: UTF8.self))")
        return answer
    }

    func status(of id: String) async throws -> String {
        try await routes.request(.get, "/v1/device/subscriptions/\(id)", key: device)["status"]
    }

    // MARK: Results

    /// Once the engine has nothing left to do, the notifications that wait, the oldest first.
    func fired(by device: String? = nil) async throws -> [JSONValue] {
        try await settle()
        let inbox = try await routes.request(.get, "/v1/inbox?carillon=4&max=500", key: device ?? self.device)
        guard case .array(let envelopes)? = inbox.json?["envelopes"] else { return [] }
        return envelopes.compactMap { $0["fired"] }
    }

    func titles(by device: String? = nil) async throws -> [String] {
        try await fired(by: device).map { fired in
            if case .string(let title)? = fired["notification"]?["title"] { title } else { "" }
        }
    }

    func settle() async throws {
        let deadline = ContinuousClock.now + .seconds(30)
        while await !routes.domain.itemEngine.isIdle, .now < deadline { try await Task.sleep(for: .milliseconds(2)) }
    }

    /// Sends the due pushes, and returns the payloads that the device received until now.
    func pushes() async throws -> [JSONValue] {
        try await settle()
        let domain = routes.domain
        for push in try await domain.outbox.due({ domain.gateways.isConfigured($0) }).pushes {
            let answer = await domain.gateways.gateway(push.queue)?.send(push) ?? .notSent
            _ = await domain.outbox.ended(push, answer, hasOther: false)
        }
        let sent = try await routes.request(.get, "/v1/apps/com.example.app/pushes/test", key: routes.admin)
        guard case .array(let pushes)? = sent.json?["pushes"] else { return [] }
        return pushes.compactMap { $0["payload"] }
    }

    func acknowledgeAll(by device: String? = nil) async throws {
        let inbox = try await routes.request(.get, "/v1/inbox?carillon=4&max=500", key: device ?? self.device)
        guard case .array(let envelopes)? = inbox.json?["envelopes"], !envelopes.isEmpty else { return }
        let results = envelopes.compactMap { envelope -> String? in
            guard case .string(let version)? = envelope["version"] else { return nil }
            return #"{"version":"\#(version)","result":"acknowledged"}"#
        }
        let answer = try await routes.request(
            .post, "/v1/inbox/results", key: device ?? self.device, #"{"results":[\#(results.joined(separator: ","))]}"#)
        #expect(answer.status == 204)
    }
}
