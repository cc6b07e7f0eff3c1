import CarillonBasics
import CarillonCore
import CarillonWire
import HTTPTypes
import Testing

@testable import CarillonServer

/// The errors of publishers, devices and operators, and the answers to them.
@Suite(.timeLimit(.minutes(5)))
struct SubscriptionRefusalTests {
    struct Wrong: Sendable, CustomTestStringConvertible {
        var body: String
        var code: String
        var word: String

        init(_ body: String, _ code: String, _ word: String = "") {
            (self.body, self.code, self.word) = (body, code, word)
        }

        var testDescription: String { String(body.prefix(80)) }
    }

    private static func body(_ members: String) -> String {
        #"{"items":["stock.A"],"fields":["price"],"format":{"title":"x"},\#(members)}"#
    }

    private static func names(_ count: Int, _ prefix: String) -> String {
        (0..<count).map { "\"\(prefix)\($0)\"" }.joined(separator: ",")
    }

    private static func format(_ format: String) -> String {
        #"{"items":["stock.A"],"fields":["price"],"format":\#(format)}"#
    }

    static let subscriptions: [Wrong] = [
        Wrong(body(#""trigger":"price >""#), "trigger_invalid", "1:8"),
        Wrong(body(#""trigger":"prise > 1""#), "trigger_invalid", "prise"),
        Wrong(body(#""trigger":"1 + 1""#), "trigger_invalid", "bool"),
        Wrong(body(#""trigger":"now() > update.time""#), "trigger_invalid"),
        Wrong(body(#""trigger":7"#), "field_invalid"),
        Wrong(body(#""trigger":"\#(String(repeating: "a", count: 4097))""#), "field_invalid", "4096"),
        Wrong(body(#""policy":"twice""#), "field_invalid", "everyCrossing"),
        Wrong(body(#""coolDown":5,"trigger":"price > 1.0""#), "field_invalid", "every"),
        Wrong(body(#""policy":"every","coolDown":-1"#), "field_invalid"),
        Wrong(body(#""policy":"every","coolDown":2592001"#), "field_invalid"),
        Wrong(body(#""mode":"raw""#), "field_invalid", "distinct"),
        Wrong(body(#""mode":"distinct""#), "mode_forbidden", "merge"),
        Wrong(body(#""key":"""#), "field_invalid"),
        Wrong(body(#""key":"\#(String(repeating: "k", count: 129))""#), "field_invalid", "128"),
        Wrong(body(#""tags":["a","a"]"#), "field_invalid", "tags"),
        Wrong(body(#""tags":["\#(String(repeating: "t", count: 65))"]"#), "field_invalid", "tags"),
        Wrong(body(#""expiresAt":"tomorrow""#), "field_invalid", "expiresAt"),
        Wrong(body(#""other":1"#), "field_unknown", "other"),
        Wrong(#"{"fields":["price"],"format":{"title":"x"}}"#, "field_missing", "items"),
        Wrong(#"{"items":[],"fields":["price"],"format":{"title":"x"}}"#, "field_invalid", "items"),
        Wrong(#"{"items":["stock.A"],"format":{"title":"x"}}"#, "field_missing", "fields"),
        Wrong(#"{"items":["stock.A"],"fields":[],"format":{"title":"x"}}"#, "field_invalid", "fields"),
        Wrong(#"{"items":["stock.A"],"fields":["a"]}"#, "field_missing", "format"),
        Wrong(#"{"items":["stock.A","other"],"fields":["a"],"format":{"title":"x"}}"#, "item_closed", "other"),
        Wrong(#"{"items":[\#(names(101, "stock."))],"fields":["a"],"format":{"title":"x"}}"#, "field_invalid", "items"),
        Wrong(#"{"items":["stock.A"],"fields":[\#(names(101, "f"))],"format":{"title":"x"}}"#, "field_invalid", "fields"),
        Wrong(body(#""tags":[\#(names(17, "t"))]"#), "field_invalid", "tags"),
        Wrong(
            #"{"items":["\#(String(repeating: "i", count: 129))"],"fields":["a"],"format":{"title":"x"}}"#, "field_invalid"),
        Wrong(
            format(
                #"{"title":"x","custom":{"a":\#(String(repeating: "[", count: 8) + String(repeating: "]", count: 8))}}"#),
            "format_invalid", "deep"),
        Wrong(#"{"items":["a\u0000"],"fields":["a"],"format":{"title":"x"}}"#, "field_invalid"),
        Wrong(
            #"{"items":["stock.A"],"fields":["name"],"format":{"title":"\#(String(repeating: "${{ name + name }}", count: 400))"}}"#,
            "placeholder_invalid", "cost"),
        Wrong(
            #"{"items":[\#((0..<100).map { "\"stock.\($0)\"" }.joined(separator: ","))],"fields":["a"],"format":{"title":"x"},"trigger":"a == '\#(String(repeating: "x", count: 700))'"}"#,
            "trigger_forbidden", "constants"),
        Wrong(format("{}"), "format_empty"),
        Wrong(format(#"{"category":"c"}"#), "format_empty"),
        Wrong(format(#""text""#), "format_invalid"),
        Wrong(format(#"{"title":7}"#), "format_invalid", "title"),
        Wrong(format(#"{"titel":"x"}"#), "format_invalid", "titel"),
        Wrong(format(#"{"title":"x","titleKey":"y"}"#), "format_invalid", "either"),
        Wrong(format(#"{"title":"x","bodyArguments":["y"]}"#), "format_invalid", "bodyKey"),
        Wrong(format(#"{"title":"x","badge":-1}"#), "format_invalid", "badge"),
        Wrong(format(#"{"title":"x","ttl":0}"#), "format_invalid", "ttl"),
        Wrong(format(#"{"title":"x","ttl":2592001}"#), "format_invalid", "ttl"),
        Wrong(format(#"{"title":"x","relevance":1.5}"#), "format_invalid", "relevance"),
        Wrong(format(#"{"title":"x","interruptionLevel":"loud"}"#), "format_invalid", "interruptionLevel"),
        Wrong(format(#"{"title":"x","custom":{"aps":1}}"#), "format_invalid", "aps"),
        Wrong(format(#"{"title":"x","custom":{"carillon":1}}"#), "format_invalid", "carillon"),
        Wrong(format(#"{"title":"x","sound":{"volume":1}}"#), "format_invalid", "sound"),
        Wrong(format(#"{"title":"\#(String(repeating: "x", count: 8192))"}"#), "format_too_long", "8192"),
        Wrong(format(#"{"title":"\#(String(repeating: "x", count: 4096))"}"#), "notification_too_large", "4096"),
        Wrong(format(#"{"title":"${prise}"}"#), "placeholder_invalid", "prise"),
        Wrong(format(#"{"title":"$[2]"}"#), "placeholder_invalid", "no field 2"),
        Wrong(format(#"{"title":"$[0]"}"#), "placeholder_invalid", "no field 0"),
        Wrong(format(#"{"title":"${price"}"#), "placeholder_invalid"),
        Wrong(format(#"{"title":"${{ price + }}"}"#), "placeholder_invalid", "expression"),
        Wrong(format(#"{"title":"${{ price | loud }}"}"#), "placeholder_invalid", "not a style"),
        Wrong(format(#"{"title":"${{ price | number(99) }}"}"#), "placeholder_invalid", "not a style"),
        Wrong(format(#"{"title":"x","custom":{"deep":["${prise}"]}}"#), "placeholder_invalid", "prise"),
    ]

    @Test(arguments: subscriptions) func `a subscription that cannot be is refused with why`(wrong: Wrong) async throws {
        let world = try await SubscriptionWorld()
        let answer = try await world.routes.request(.post, "/v1/device/subscriptions", key: world.device, wrong.body)
        let text = String(decoding: answer.body, as: UTF8.self)
        #expect(answer.code == wrong.code, "\(text)")
        #expect(text.contains(wrong.word), "\(text)")
        let list = try await world.routes.request(.get, "/v1/device/subscriptions", key: world.device)
        #expect(list.json?["subscriptions"] == .array([]))
    }

    static let updates: [Wrong] = [
        Wrong("", "json_invalid"), Wrong("[]", "json_invalid"), Wrong("{}", "field_missing", "fields"),
        Wrong(#"{"fields":7}"#, "field_invalid"), Wrong(#"{"fields":{"a":[1]}}"#, "field_invalid", "a"),
        Wrong(#"{"fields":{"a":{}}}"#, "field_invalid"), Wrong(#"{"fields":{"a":NaN}}"#, "json_invalid"),
        Wrong(#"{"fields":{"a":1e999}}"#, "field_invalid", "fields.a"),
        Wrong(#"{"fields":{"a":1,"a":2}}"#, "field_invalid", "twice"),
        Wrong(#"{"fields":{"":1}}"#, "field_invalid"),
        Wrong(#"{"fields":{"\#(String(repeating: "f", count: 65))":1}}"#, "field_invalid", "64"),
        Wrong(#"{"fields":{"a":"\#(String(repeating: "v", count: 4097))"}}"#, "field_invalid", "4096"),
        Wrong(#"{"fields":{},"source":"s"}"#, "field_missing", "sequence"),
        Wrong(#"{"fields":{},"sequence":1}"#, "field_missing", "source"),
        Wrong(#"{"fields":{},"source":"","sequence":1}"#, "field_invalid", "64"),
        Wrong(#"{"fields":{},"source":"\#(String(repeating: "s", count: 65))","sequence":1}"#, "field_invalid", "64"),
        Wrong(#"{"fields":{},"source":"s","sequence":1.5}"#, "field_invalid", "sequence"),
        Wrong(#"{"fields":{},"item":"x"}"#, "field_invalid"), Wrong(#"{"fields":{},"more":1}"#, "field_unknown", "more"),
        Wrong("{\"fields\":{\(Self.fields(101))}}", "item_too_large", "100"),
    ]

    private static func fields(_ count: Int, of text: String = "1") -> String {
        (0..<count).map { "\"f\($0)\":\(text)" }.joined(separator: ",")
    }

    @Test(arguments: updates) func `an update that cannot be is refused, and changes nothing`(wrong: Wrong) async throws {
        let world = try await SubscriptionWorld()
        let answer = try await world.routes.request(.post, "/v1/items/stock.A/updates", key: world.sender, wrong.body)
        let text = String(decoding: answer.body, as: UTF8.self)
        #expect(answer.code == wrong.code, "\(text)")
        #expect(text.contains(wrong.word), "\(text)")
        #expect(try await world.routes.request(.get, "/v1/items/stock.A", key: world.sender).status == 404)
    }

    @Test func `an item has up to a hundred fields and a limit in bytes, in one update or in many`() async throws {
        let world = try await SubscriptionWorld()
        try await world.publish("stock.A", "{\(Self.fields(100))}")
        #expect(try await world.publish("stock.A", #"{"one more":1}"#, expecting: 413).code == "item_too_large")
        try await world.publish("stock.A", #"{"f0":2}"#)
        let long = "\"" + String(repeating: "x", count: 4000) + "\""
        for number in 0..<8 { try await world.publish("stock.B", #"{"f\#(number)":\#(long)}"#) }
        #expect(try await world.publish("stock.B", #"{"f8":\#(long)}"#, expecting: 413).code == "item_too_large")
        try await world.publish("stock.B", #"{"f0":"short"}"#)
        try await world.publish("stock.B", #"{"f8":"y"}"#)
    }

    @Test func `a text has at most as many bytes as the app allows`() async throws {
        let world = try await SubscriptionWorld(
            rules: #"{"items":[{"pattern":"t","open":true,"fields":{"s":{"type":"string","maxBytes":5}}}]}"#)
        for good in [#""abcde""#, #""äa""#, "null"] { try await world.publish("t", #"{"s":\#(good)}"#) }
        for bad in [#""abcdef""#, #""äää""#, "5"] {
            #expect(try await world.publish("t", #"{"s":\#(bad)}"#, expecting: 400).code == "field_invalid", "\(bad)")
        }
        try await world.publish("t", #"{"other":"abcdef"}"#)
    }

    @Test func `values have the types that the app declares`() async throws {
        let world = try await SubscriptionWorld(
            rules: #"""
                {"items":[{"pattern":"t","open":true,"fields":{
                    "d":"double","i":"int","u":"uint","s":"string","b":"bool","t":"timestamp"}}]}
                """#)
        for good in [
            #""d":1.5"#, #""d":2"#, #""i":-9223372036854775808"#, #""u":18446744073709551615"#, #""s":"x""#, #""b":true"#,
            #""t":"2026-01-01T00:00:00Z""#, #""d":null,"i":null"#, #""i":301.0"#, #""i":3e2"#, #""i":-0.0"#,
            #""i":9223372036854775807.0"#, #""u":-0.0"#, #""u":1.8446744073709551615e19"#,
        ] { try await world.publish("t", "{\(good)}") }
        for bad in [
            #""d":"1.5""#, #""i":1.5"#, #""i":9223372036854775808"#, #""u":-1"#, #""u":18446744073709551616"#, #""s":1"#,
            #""b":1"#, #""t":"today""#, #""t":5"#, #""i":1.00000000000000000001"#, #""u":1.5e0"#,
            #""i":1.\#(String(repeating: "0", count: 63))"#,
        ] { #expect(try await world.publish("t", "{\(bad)}", expecting: 400).code == "field_invalid", "\(bad)") }
        let typed = #"{"items":["t"],"fields":["i"],"format":{"title":"x"},"trigger":"i > true"}"#
        #expect(try await world.subscribe(typed, expecting: 400).code == "trigger_invalid")
        try await world.subscribe(typed.replacing("true", with: "1"))
    }

    static let rules: [Wrong] = [
        Wrong(#"{"items":7}"#, "item_rules_invalid"), Wrong(#"{"items":[{}]}"#, "item_rules_invalid", "pattern"),
        Wrong(#"{"items":[{"pattern":"a","mode":"raw"}]}"#, "item_rules_invalid", "distinct"),
        Wrong(#"{"items":[{"pattern":"a","open":1}]}"#, "item_rules_invalid", "open"),
        Wrong(#"{"items":[{"pattern":"a","fields":{"x":"float"}}]}"#, "item_rules_invalid", "double"),
        Wrong(#"{"items":[{"pattern":"a","other":1}]}"#, "item_rules_invalid", "other"),
        Wrong(#"{"items":[{"pattern":"a","idleSeconds":59}]}"#, "item_rules_invalid", "60"),
        Wrong(#"{"items":[{"pattern":"a","idleSeconds":31536001}]}"#, "item_rules_invalid", "31536000"),
        Wrong(#"{"conditionCost":0}"#, "item_rules_invalid"),
        Wrong(#"{"conditionCost":10001}"#, "item_rules_invalid", "10000"),
        Wrong(#"{"conditionFunctions":["fetch"]}"#, "item_rules_invalid", "fetch"),
        Wrong(#"{"conditionFunctions":"size"}"#, "item_rules_invalid", "list"),
        Wrong(#"{"conditionOperators":["**"]}"#, "item_rules_invalid", "**"),
        Wrong(#"{"conditionOperators":"+"}"#, "item_rules_invalid", "list"),
        Wrong(#"{"conditionNames":[7]}"#, "item_rules_invalid", "list"),
        Wrong(#"{"subscriptionsPerDevice":0}"#, "item_rules_invalid"), Wrong(#"{"other":1}"#, "field_unknown"),
        Wrong(
            #"{"items":[\#(Array(repeating: #"{"pattern":"a"}"#, count: 101).joined(separator: ","))]}"#,
            "item_rules_invalid",
            "100"),
    ]

    @Test(arguments: [
        ("price > 1", true), ("fields.price > 1", true), ("fields['price'] > 1", true), ("has(fields.price)", true),
        ("has(previous.price) && price > previous.price", true), ("size(string(price)) > 1", true),
        ("[1, 2].all(x, price > x)", false), ("name == 'a'", false), ("fields.name == 'a'", false),
        ("fields['name'] == 'a'", false), ("has(fields.name)", false), ("previous.name == 'a'", false),
        ("fields.size() > 1", false), ("fields[item] == 1", false), ("item == 'a'", false),
        ("string(price).matches('1')", false),
        ("update.time > timestamp(0)", false), ("size(string(price)) > size(previous)", false),
    ])
    func `an app sets the functions and names that conditions can use`(trigger: String, isAllowed: Bool) async throws {
        let world = try await SubscriptionWorld(
            rules: #"""
                {"items":[{"pattern":"stock.*","open":true}],"conditionFunctions":["size","string","timestamp"],
                 "conditionNames":["price","previous"]}
                """#)
        let body = SubscriptionWorld.body(trigger, format: #"{"title":"x"}"#)
        let answer = try await world.subscribe(body, expecting: isAllowed ? 201 : 403)
        #expect(isAllowed || answer.code == "trigger_forbidden")
        let shown = trigger.replacing("'", with: "\"").replacing("\"", with: "\\\"")
        let format = SubscriptionWorld.body(nil, format: #"{"title":"${{ \#(shown) }}"}"#)
        #expect(
            try await world.subscribe(format, expecting: isAllowed ? 201 : 400).code
                == (isAllowed ? nil : "placeholder_invalid"))
    }

    @Test(arguments: [
        ("price > 1.0", true), ("price > -1.0", true), ("price > 1.0 && name == 'a'", true), ("fields['price'] > 1.0", true),
        ("size(name) > 1", true), ("price - price > 1.0", false), ("price > 1.0 || name == 'a'", false),
        ("!(price > 1.0)", false), ("-price > 1.0", false), ("price >= 1.0", false), ("price != 1.0", false),
        ("price > 1.0 ? true : false", false), ("name in ['a', 'b']", false), ("fields[name] == 1.0", false),
        ("[name][0] == 'a'", false), ("(price + price) > 1.0", false), ("[1.0].exists(x, price * x > 1.0)", false),
    ])
    func `an app sets the operators that conditions can use`(trigger: String, isAllowed: Bool) async throws {
        let world = try await SubscriptionWorld(
            rules: #"{"items":[{"pattern":"stock.*","open":true}],"conditionOperators":[">","&&","=="]}"#)
        let body = SubscriptionWorld.body(trigger, format: #"{"title":"x"}"#)
        let answer = try await world.subscribe(body, expecting: isAllowed ? 201 : 403)
        #expect(isAllowed || answer.code == "trigger_forbidden")
        if !isAllowed { #expect(answer["detail"].contains("operators are these: &&, ==, >"), "\(answer["detail"])") }
        let format = SubscriptionWorld.body(nil, format: #"{"title":"${{ \#(trigger) }}"}"#)
        #expect(
            try await world.subscribe(format, expecting: isAllowed ? 201 : 400).code
                == (isAllowed ? nil : "placeholder_invalid"))
        let rules = try await world.routes.request(.get, "/v1/apps/com.example.app/items", key: world.routes.admin)
        #expect(rules.json?["conditionOperators"] == .array([.string("&&"), .string("=="), .string(">")]))
    }

    @Test func `a compared expression has 20 names, constants, operators and calls at most`() async throws {
        let world = try await SubscriptionWorld()
        func trigger(_ count: Int) -> String { Array(repeating: "price", count: count).joined(separator: " - ") + " > 1.0" }
        // Of ten names and nine operators, and of eleven and ten.
        try await world.subscribe(SubscriptionWorld.body(trigger(10)))
        let refused = try await world.subscribe(SubscriptionWorld.body(trigger(11)), expecting: 403)
        #expect(refused.code == "trigger_forbidden" && refused["detail"].contains("21"), "\(refused["detail"])")
        try await world.subscribe(SubscriptionWorld.body("-(\(trigger(10).dropLast(6))) > 1.0"))
        try await world.subscribe(SubscriptionWorld.body("name == 'a' && \(trigger(11))"), expecting: 403)
    }

    @Test(arguments: [
        (#"["fields"]"#, "price > 1", true), (#"["fields"]"#, "fields[item] == 1", false),
        (#"["fields","item"]"#, "fields[item] == 1", true), (#"["fields"]"#, "previous.price == 1", false),
        (#"["order"]"#, "order > 1", true), (#"["order"]"#, "order.total > 1", false),
        (#"["order.total"]"#, "order.total > 1", false), (#"["order","order.total"]"#, "order.total > 1", true),
        (#"["item"]"#, "fields.item == 'x'", false), (#"["fields.item"]"#, "fields.item == 'x'", true),
    ])
    func `names are those of fields as an item may come to have them`(
        names: String, trigger: String, isAllowed: Bool
    ) async throws {
        let world = try await SubscriptionWorld(
            rules: #"{"items":[{"pattern":"*","open":true}],"conditionNames":\#(names)}"#)
        let body = #"{"items":["i"],"fields":["price","order","item"],"trigger":"\#(trigger)","format":{"title":"x"}}"#
        let answer = try await world.subscribe(body, expecting: isAllowed ? 201 : 403)
        #expect(answer.code == (isAllowed ? nil : "trigger_forbidden"))
    }

    @Test func `an app that allows nothing allows constants, and texts without fields`() async throws {
        let world = try await SubscriptionWorld(
            rules: #"{"items":[{"pattern":"stock.*","open":true}],"conditionFunctions":[],"conditionNames":[]}"#)
        try await world.subscribe(SubscriptionWorld.body("true", format: #"{"title":"x ${subscription.id}"}"#))
        for format in [
            #"{"title":"${price}"}"#, #"{"title":"$[1]"}"#, #"{"title":"${item}"}"#, #"{"title":"${update.time}"}"#,
        ] {
            let answer = try await world.subscribe(SubscriptionWorld.body(nil, format: format), expecting: 400)
            #expect(answer.code == "placeholder_invalid")
        }
        let forbidden = try await world.subscribe(SubscriptionWorld.body("price > 1"), expecting: 400)
        #expect(forbidden.code == "placeholder_invalid")
        let rules = try await world.routes.request(.get, "/v1/apps/com.example.app/items", key: world.routes.admin)
        #expect(rules.json?["conditionFunctions"] == .array([]) && rules.json?["conditionNames"] == .array([]))
    }

    @Test(arguments: rules) func `rules that cannot be are refused, and those before stay`(wrong: Wrong) async throws {
        let world = try await SubscriptionWorld()
        let path = "/v1/apps/com.example.app/items"
        let answer = try await world.routes.request(.put, path, key: world.routes.admin, wrong.body)
        let text = String(decoding: answer.body, as: UTF8.self)
        #expect(answer.code == wrong.code, "\(text)")
        #expect(text.contains(wrong.word), "\(text)")
        let rules = try await world.routes.request(.get, path, key: world.routes.admin)
        #expect(String(decoding: rules.body, as: UTF8.self).contains("stock.*"))
        try await world.subscribe()
    }

    @Test func `a caller without permission is refused`() async throws {
        let world = try await SubscriptionWorld()
        let routes = world.routes
        let update = #"{"fields":{"price":1}}"#
        for key in [world.clientKey, world.device] {
            let answer = try await routes.request(.post, "/v1/items/stock.A/updates", key: key, update)
            #expect(answer.status == 401 || answer.status == 403)
        }
        #expect(try await routes.request(.post, "/v1/items/stock.A/updates", key: nil, update).status == 401)
        #expect(try await routes.request(.post, "/v1/items/stock.A/updates", key: routes.admin, update).status == 400)
        let named = "/v1/items/stock.A/updates?app=com.example.app"
        #expect(try await routes.request(.post, named, key: routes.admin, update).status == 200)
        #expect(try await routes.request(.post, named, key: world.sender, update).status == 200)
        let other = "/v1/items/stock.A/updates?app=com.example.other"
        #expect(try await routes.request(.post, other, key: world.sender, update).status == 403)
        #expect(try await routes.request(.post, other, key: routes.admin, update).status == 404)
        for (method, path) in [(HTTPRequest.Method.get, ""), (.put, ""), (.delete, "")] {
            let answer = try await routes.request(method, "/v1/device/subscriptions" + path, key: world.sender, "{}")
            #expect(answer.status == 401)
        }
        #expect(try await routes.request(.put, "/v1/apps/com.example.app/items", key: world.sender, "{}").status == 403)
        #expect(try await routes.request(.get, "/v1/apps/com.example.app/items", key: world.sender).status == 403)
        let id = try await world.subscribe()["id"]
        let ofDevice = "/v1/devices/\(world.id)/subscriptions"
        for path in [ofDevice, "\(ofDevice)/\(id)/explanation"] {
            for key in [world.sender, world.clientKey, world.device, nil] {
                let answer = try await routes.request(.get, path, key: key)
                #expect([401, 403].contains(answer.status), "\(path)")
            }
            #expect(try await routes.request(.get, path, key: routes.admin).status == 200)
        }
    }

    @Test func `a device sees and changes its own subscriptions, and nobody else's`() async throws {
        let world = try await SubscriptionWorld()
        let id = try await world.subscribe()["id"]
        let other = try await world.routes.request(.post, "/v1/devices", key: world.clientKey)["credential"]
        for method in [HTTPRequest.Method.get, .patch, .delete] {
            let answer = try await world.routes.request(method, "/v1/device/subscriptions/\(id)", key: other, "{}")
            #expect(answer.code == "subscription_unknown")
        }
        let none = try await world.routes.request(.delete, "/v1/device/subscriptions", key: other)
        #expect(none.json?["removed"] == .integer(0))
        #expect(try await world.status(of: id) == "subscribed")
    }

    @Test func `frozen settings cannot be changed while they are active`() async throws {
        let world = try await SubscriptionWorld()
        let body = SubscriptionWorld.body(key: "k")
        let id = try await world.subscribe(body)["id"]
        for other in [
            body.replacing("stock.ACME", with: "stock.B"), body.replacing(#""name""#, with: #""other""#),
        ] { #expect(try await world.subscribe(other, expecting: 409).code == "subscription_frozen") }
        let patch = try await world.routes.request(
            .patch, "/v1/device/subscriptions/\(id)", key: world.device, #"{"items":["stock.B"]}"#)
        #expect(patch.code == "field_unknown")
        try await world.subscribe(body.replacing("10.0", with: "20.0"), expecting: 200)
        try await world.publish("stock.ACME", #"{"price":15}"#)
        #expect(try await world.titles().isEmpty)
        try await world.publish("stock.ACME", #"{"price":25}"#)
        #expect(try await world.titles() == ["stock.ACME: 25"])
    }

    @Test func `two concurrent changes both take effect`() async throws {
        let world = try await SubscriptionWorld()
        let id = try await world.subscribe(SubscriptionWorld.body(key: "k"))["id"]
        for round in 0..<20 {
            async let trigger = world.routes.request(
                .patch, "/v1/device/subscriptions/\(id)", key: world.device, #"{"trigger":"price > \#(round).0"}"#)
            async let tags = world.routes.request(
                .patch, "/v1/device/subscriptions/\(id)", key: world.device, #"{"tags":["t\#(round)"]}"#)
            let statuses = try await [trigger.status, tags.status]
            #expect(statuses == [200, 200])
            let now = try await world.routes.request(.get, "/v1/device/subscriptions/\(id)", key: world.device)
            #expect(now["trigger"] == "price > \(round).0")
            #expect(String(decoding: now.body, as: UTF8.self).contains("\"t\(round)\""))
        }
    }

    @Test(arguments: ["tags=a", "id=00000000000000000000000000000001", "limit=1"])
    func `an unknown parameter of a query removes nothing`(query: String) async throws {
        let world = try await SubscriptionWorld()
        try await world.subscribe(SubscriptionWorld.body(key: "k"))
        let answer = try await world.routes.request(.delete, "/v1/device/subscriptions?\(query)", key: world.device)
        #expect(answer.status == 400 && answer.code == "parameter_invalid")
        let list = try await world.routes.request(.get, "/v1/device/subscriptions", key: world.device)
        #expect(String(decoding: list.body, as: UTF8.self).contains(#""key":"k""#))
    }

    @Test func `a list of large subscriptions has pages that fit into a socket frame`() async throws {
        let world = try await SubscriptionWorld()
        let text = String(repeating: "x", count: 3500)
        for number in 0..<40 {
            try await world.subscribe(
                #"{"items":["stock.A"],"fields":["x"],"format":{"title":"x","custom":{"a":"\#(text)"}},"key":"\#(number)"}"#)
        }
        var (pages, count, after) = (0, 0, "")
        repeat {
            let page = try await world.routes.request(
                .get, "/v1/device/subscriptions?limit=1000\(after)", key: world.device)
            #expect(page.body.count < 80_000)
            let json = try #require(JSONValue(parsing: Array(page.body)))
            guard case .array(let some)? = json["subscriptions"] else { throw StoreFault(.unavailable, "") }
            (pages, count) = (pages + 1, count + some.count)
            after = if case .string(let next)? = json["next"] { "&after=\(next)" } else { "" }
        } while !after.isEmpty
        #expect(count == 40 && pages > 1)
    }

    @Test func `a name that only resembles an open one is different`() async throws {
        let world = try await SubscriptionWorld(
            rules: #"{"items":[{"pattern":"secret.caf\u00e9","open":false},{"pattern":"*","open":true}]}"#)
        func body(_ item: String) -> String { #"{"items":["\#(item)"],"fields":["x"],"format":{"title":"${x}"}}"# }
        #expect(try await world.subscribe(body("secret.caf\u{e9}"), expecting: 403).code == "item_closed")
        try await world.subscribe(body("secret.cafe\u{301}"))
        try await world.publish("secret.caf%C3%A9", #"{"x":5678}"#)
        #expect(try await world.titles().isEmpty)
        try await world.publish("secret.cafe%CC%81", #"{"x":1}"#)
        #expect(try await world.titles() == ["1"])
    }

    @Test func `a device has as many subscriptions as its app allows`() async throws {
        let world = try await SubscriptionWorld(
            rules: #"{"items":[{"pattern":"stock.*","open":true}],"subscriptionsPerDevice":2}"#)
        try await world.subscribe(SubscriptionWorld.body(key: "a"))
        try await world.subscribe(SubscriptionWorld.body(key: "b"))
        #expect(try await world.subscribe(SubscriptionWorld.body(key: "c"), expecting: 409).code == "subscriptions_too_many")
        try await world.subscribe(SubscriptionWorld.body(key: "a"), expecting: 200)
        _ = try await world.routes.request(.delete, "/v1/device/subscriptions?key=a", key: world.device)
        try await world.subscribe(SubscriptionWorld.body(key: "c"))
    }
}
