import CarillonBasics
import CarillonCore
import CarillonMessages
import CarillonWire
import Foundation
import HTTPTypes
import Testing

@testable import CarillonServer

/// Notifications that the vendor's service carries and cannot read.
@Suite(.timeLimit(.minutes(5)))
struct PrivateFormatTests {
    private let keys = SubscriptionKeys()

    private var privateKeys: String {
        let keys = PrivateKeys(publicKey: keys.publicKey, authSecret: keys.authSecret)
        return String(decoding: keys.json.bytes, as: UTF8.self)
    }

    private func world(alert: String? = #"{"title":"Neu","sound":"bell"}"#) async throws -> SubscriptionWorld {
        let world = try await SubscriptionWorld()
        if let alert {
            let answer = try await world.routes.request(
                .put, "/v1/apps/com.example.app/alert", key: world.routes.admin, alert)
            #expect(answer.status == 200)
        }
        return world
    }

    private func subscribe(_ world: SubscriptionWorld, _ rest: String = "") async throws {
        let format =
            #"{"title":"secret ${price}","body":"${name}","badge":"auto","collapse":"sec-${price}","private":\#(privateKeys)\#(rest)}"#
        try await world.subscribe(SubscriptionWorld.body(key: "secret-key", format: format))
    }

    private func opened(_ push: JSONValue) throws -> FiredNotification? {
        guard case .string(let text)? = push["carillon"]?["body"] else { return nil }
        let content = try keys.decrypt(try #require(Base64URL.decode(text)), ContentCoding(.aes128gcm))
        return JSONValue(parsing: content).flatMap(FiredNotification.init)
    }

    @Test(arguments: ["", #","route":"always""#])
    func `the vendor's service sees the app's own text, and the device the rendered one`(route: String) async throws {
        let world = try await world()
        try await subscribe(world, route)
        try await world.publish("stock.ACME", #"{"price":11,"name":"a name"}"#)
        let push = try #require(try await world.pushes().first)
        let seen = String(decoding: push.bytes, as: UTF8.self)
        for word in ["secret", "a name", "ACME", "sec-"] { #expect(!seen.contains(word), "\(seen)") }
        #expect(push["aps"]?["alert"]?["title"] == .string("Neu") && push["aps"]?["sound"] == .string("bell"))
        #expect(push["aps"]?["badge"] == .integer(1) && push["aps"]?["mutable-content"] == .integer(1))
        #expect(push["carillon"]?["kind"] == .string("fired") && push["carillon"]?["coding"] == .string("aes128gcm"))
        let fired = try #require(try opened(push))
        #expect(fired.notification["title"] == .string("secret 11") && fired.notification["body"] == .string("a name"))
        #expect(fired.key == "secret-key" && fired.item == "stock.ACME" && fired.notification["private"] == nil)
        let notified = try #require(try await world.fired().first)
        #expect(notified["notification"]?["title"] == .string("secret 11"))
        #expect(notified["subscription"] == .string(fired.subscription.description))
    }

    @Test func `a text that does not fit is omitted, and the app's own text is shown`() async throws {
        let world = try await world()
        try await subscribe(world)
        try await world.publish("stock.ACME", #"{"price":11,"name":"\#(String(repeating: "n", count: 4000))"}"#)
        let push = try #require(try await world.pushes().first)
        #expect(push["aps"]?["alert"]?["title"] == .string("Neu") && push["carillon"]?["body"] == nil)
        #expect(push["carillon"]?["message"] != nil)
    }

    @Test(arguments: [("", nil), (#","badge":7"#, 7), (#","badge":"auto""#, 1)] as [(String, Int?)])
    func `the number on the icon is the format's`(badge: String, expected: Int?) async throws {
        let world = try await world(alert: #"{"title":"Neu","badge":"auto"}"#)
        try await world.subscribe(
            SubscriptionWorld.body(format: #"{"title":"x","private":\#(privateKeys)\#(badge)}"#))
        try await world.publish("stock.ACME", #"{"price":11}"#)
        let push = try #require(try await world.pushes().first)
        #expect(push["aps"]?["badge"] == expected.map { .integer($0) })
    }

    @Test func `an app without a text is woken in the background`() async throws {
        let world = try await world(alert: nil)
        try await subscribe(world)
        try await world.publish("stock.ACME", #"{"price":11}"#)
        let push = try #require(try await world.pushes().first)
        #expect(push["aps"]?["content-available"] == .integer(1) && push["aps"]?["alert"] == nil)
        #expect(push["carillon"]?["kind"] == .string("wake"))
        // A subscription that is not private needs no text of the app.
        try await world.subscribe(SubscriptionWorld.body("price > 11.0"))
        try await world.publish("stock.ACME", #"{"price":12}"#)
        #expect(try await world.pushes().last?["aps"]?["alert"]?["title"] == .string("stock.ACME: 12"))
    }

    @Test(arguments: [
        "true", "{}", #"{"p256dh":"AAAA","auth":"AAAAAAAAAAAAAAAAAAAAAA"}"#, #"{"p256dh":"KEY","auth":"AAAA"}"#,
        #"{"p256dh":"KEY"}"#, #"{"p256dh":"KEY","auth":"AAAAAAAAAAAAAAAAAAAAAA","more":1}"#, #"{"p256dh":7,"auth":7}"#,
    ])
    func `keys that are none are refused`(json: String) async throws {
        let world = try await world()
        let json = json.replacing("KEY", with: Base64URL.encode(keys.publicKey))
        let body = SubscriptionWorld.body(format: #"{"title":"x","private":\#(json)}"#)
        #expect(try await world.subscribe(body, expecting: 400).code == "format_invalid")
        let point = Base64URL.encode([4] + [UInt8](repeating: 1, count: 64))
        let off = SubscriptionWorld.body(
            format: #"{"title":"x","private":{"p256dh":"\#(point)","auth":"AAAAAAAAAAAAAAAAAAAAAA"}}"#)
        #expect(try await world.subscribe(off, expecting: 400).code == "format_invalid", "no point of the curve")
    }
}
