import CarillonBasics
import CarillonCore
import CarillonExpression
import CarillonWire
import Crypto
import Testing

@testable import CarillonAPNs
@testable import CarillonServer

/// The values of placeholders, with the styles of the system.
struct NotificationTemplateTests {
    private let conditions = ItemConditions(zoneOffset: TimeZones.offset)
    private static let fields = ["price", "name", "at", "none", "count"]

    private func render(
        _ format: String, _ reader: Reader = Reader(), key: String? = "k"
    ) throws -> NotificationTemplate.Rendered {
        let json = try #require(JSONValue(parsing: Array(format.utf8)))
        let template = try NotificationTemplate(try NotificationFormat(json), over: Self.fields, in: conditions)
        var state = ItemState(.merge)
        state.apply(.init(["price": ItemValue(.double(1000), digits: "1000.0")], at: Timestamp(milliseconds: 0)))
        state.apply(
            .init(
                [
                    "price": ItemValue(.double(1234.5), digits: "1234.50"), "name": ItemValue(.string(#"A "quoted" 😀"#)),
                    "none": ItemValue(.null), "count": ItemValue(.int(7), digits: "7"),
                    "at": ItemValue(try #require(ExpressionTimestamp("2026-03-01T22:30:00Z").map { .timestamp($0) })),
                ], at: Timestamp(milliseconds: 1_700_000_000_000)))
        let item = try #require(ItemName("stock.ACME"))
        let bindings = try #require(conditions.bindings(item.text, state))
        return template.render(
            .init(
                subscription: SubscriptionID(Bytes16(high: 0, low: 1)), key: key, item: item, state: state,
                bindings: bindings,
                reader: reader), FoundationStyles.styles)
    }

    private func title(_ text: String, _ reader: Reader = Reader(), key: String? = "k") throws -> String {
        let escaped = JSONValue.string(text).bytes
        let rendered = try render(#"{"title":\#(String(decoding: escaped, as: UTF8.self))}"#, reader, key: key)
        guard case .string(let title)? = rendered.json["title"] else { return "no title" }
        return title
    }

    @Test(arguments: [
        ("${price}", "1234.50"), ("$[1] $[2]", #"1234.50 A "quoted" 😀"#), ("[${none}]", "[]"), ("${item}", "stock.ACME"),
        ("${subscription.id}", "00000000000000000000000000000001"), ("${subscription.key}", "k"),
        ("${update.time}", "2023-11-14T22:13:20Z"), ("$${price} $$[1] $ $x ${price}$", "${price} $[1] $ $x 1234.50$"),
        ("${{ price * 2.0 }}", "2469"), ("${{ price - previous.price }}", "234.5"), ("${{ name.size() }}", "12"),
        ("${{ has(fields.other) || price > 1.0 ? 'up' : 'down' }}", "up"), ("${{ '|' + \"||\" }}", "|||"),
        ("${{ none }}", ""), ("${{ none | number(2) }}", ""), ("", ""), ("plain", "plain"),
    ])
    func `a placeholder shows its value`(text: String, shown: String) throws {
        #expect(try title(text) == shown)
    }

    @Test func `a subscription without a key shows none`() throws {
        #expect(try title("[${subscription.key}]", key: nil) == "[]")
    }

    @Test func `numbers and times are shown as their reader writes them`() throws {
        let german = Reader(locale: "de_DE", timeZone: "Europe/Berlin")
        let american = Reader(locale: "en_US", timeZone: "America/New_York")
        #expect(try title("${{ price | number(2) }}", german) == "1.234,50")
        #expect(try title("${{ price | number(2) }}", american) == "1,234.50")
        #expect(try title("${{ price | number }}", american) == "1,234.5")
        #expect(try title("${{ count | number }}", american) == "7")
        #expect(try title("${{ price / previous.price - 1.0 | percent(1) }}", american) == "23.4%")
        #expect(try title("${{ price | currency(EUR) }}", american).contains("1,234.50"))
        #expect(try title("${{ price | currency(EUR) }}", german).contains("1.234,50"))
        // The day differs on both sides of the sea.
        #expect(try title("${{ at | date(short) }}", german).contains("1.3."))
        #expect(try title("${{ at | date(short) }}", american).contains("3/1/2026"))
        #expect(try title("${{ at | time(short) }}", german).contains("23:30"))
        #expect(try title("${{ at | time(short) }}", american).contains("5:30"))
        #expect(try title("${{ at | dateTime(medium) }}", Reader(timeZone: "nowhere")).contains("10:30"))
    }

    @Test(arguments: [
        "$[0]", "$[-1]", "$[6]", "$[-9223372036854775808]", "$[9223372036854775807]", "$[99999999999999999999]",
    ])
    func `a field that there is not is refused`(text: String) {
        #expect(throws: Refusal.self) { _ = try title(text) }
    }

    @Test func `texts end where a notification is long enough`() throws {
        let rendered = try render(
            #"{"title":"${price}","body":"\#(String(repeating: "$[2]", count: 2000))","custom":{"a":"${price}"}}"#)
        guard case .string(let body)? = rendered.json["body"] else { throw StoreFault(.unavailable, "") }
        #expect(body.utf8.count <= NotificationTemplate.renderedBytes)
        #expect(body.utf8.count > NotificationTemplate.renderedBytes - 20)
        #expect(rendered.json["title"] == .string("1234.50"))
        #expect(rendered.json["custom"]?["a"] == .string(""))
        #expect(rendered.errors > 0)
    }

    @Test func `a placeholder without a value shows nothing, and is counted`() throws {
        for text in ["${{ fields.other }}", "${{ name | number(2) }}", "${{ price | date(short) }}", "${{ 1 / 0 }}"] {
            let rendered = try render(#"{"title":"[\#(text)]"}"#)
            #expect(rendered.json["title"] == .string("[]"))
            #expect(rendered.errors == 1)
        }
    }

    @Test func `placeholders are replaced in the allowed places, and nowhere else`() throws {
        let rendered = try render(
            #"""
            {"titleKey":"${price}","titleArguments":["${price}","x"],"sound":{"name":"${item}","volume":1},"badge":"${count}",
             "category":"c${count}","thread":"${item}","collapse":"${item}","custom":{"a":["${count}",7],"${count}":{"b":"${count}"}},
             "ttl":60}
            """#)
        let expected = #"""
            {"titleKey":"${price}","titleArguments":["1234.50","x"],"sound":{"name":"stock.ACME","volume":1},"badge":7,"category":"c7","thread":"stock.ACME","collapse":"stock.ACME","custom":{"a":["7",7],"${count}":{"b":"7"}}}
            """#
        #expect(String(decoding: rendered.json.bytes, as: UTF8.self) == expected)
        for badge in ["${count}.0", "0.${count}e1"] {
            #expect(try render(#"{"title":"x","badge":"\#(badge)"}"#).json["badge"] == .integer(7))
        }
        for badge in ["${name}", "-${count}", "${count}.5"] {
            let wrong = try render(#"{"title":"x","badge":"\#(badge)"}"#)
            #expect(wrong.json.names == ["title"] && wrong.errors == 1)
        }
    }

    @Test func `expressions cost their sum`() throws {
        func cost(_ format: String) throws -> Int {
            let json = try #require(JSONValue(parsing: Array(format.utf8)))
            return try NotificationTemplate(try NotificationFormat(json), over: Self.fields, in: conditions).cost
        }
        let one = try cost(#"{"title":"${{ price + 1.0 }}"}"#)
        #expect(one > 0)
        #expect(
            try cost(#"{"title":"${{ price + 1.0 }}","custom":{"a":["${{ price + 1.0 }} ${{ price + 1.0 }}"]}}"#) == 3 * one)
        #expect(try cost(#"{"title":"${price}"}"#) == 0)
    }

    // MARK: The push

    private static let key = SymmetricKey(size: .bits256)

    private func envelope(_ notification: String) throws -> (payload: JSONValue, size: Int) {
        let json = try #require(JSONValue(parsing: Array(notification.utf8)))
        let size = PushRendering.payloadSize(of: fired(json))
        return (try #require(JSONValue(parsing: Array(try push(notification).jsonString.utf8))), size)
    }

    private func fired(_ json: JSONValue) -> FiredNotification {
        FiredNotification(
            subscription: SubscriptionID(Bytes16(high: 0, low: 1)), key: "k", item: "i", at: 5, notification: json)
    }

    private func push(_ notification: String, topic: String? = "fired", position: Int64 = 1) throws -> APNsNotification {
        let json = try #require(JSONValue(parsing: Array(notification.utf8)))
        let fired = fired(json)
        let device = DeviceSerial(1)
        let envelope = Envelope(
            id: MessageID(position: position, secret: Bytes16(high: 1, low: 1)), device: device, app: AppSerial(1),
            origin: Origin(.subscription, serial: 1, id: Bytes16(high: 0, low: 1)),
            kind: .fired(body: fired.json.bytes, countsBadge: fired.countsBadge), acceptedAt: Timestamp(milliseconds: 0),
            expiresAt: .never, urgency: .high)
        return PushRendering(key: Self.key).fired(envelope, topic, nil, 3)
    }

    @Test(arguments: [
        ("plain 1", true), (String(repeating: "a", count: 64), true), (String(repeating: "a", count: 65), false),
        ("Crédit", false), ("a\nb", false), (" a", false), ("a ", false),
    ])
    func `a key that a header cannot contain collapses all the same`(collapse: String, isAsWritten: Bool) throws {
        let push = try self.push(
            #"{"title":"x","collapse":\#(String(decoding: JSONValue.string(collapse).bytes, as: UTF8.self))}"#)
        let other = try self.push(#"{"title":"x","collapse":"another"}"#)
        #expect((push.fields.collapseID == collapse) == isAsWritten)
        #expect(push.fields.collapseID?.utf8.allSatisfy { (0x21...0x7E).contains($0) || $0 == 0x20 } == true)
        #expect(
            try self.push(#"{"title":"y","collapse":\#(String(decoding: JSONValue.string(collapse).bytes, as: UTF8.self))}"#)
                .fields.collapseID == push.fields.collapseID)
        #expect(other.fields.collapseID != push.fields.collapseID)
    }

    @Test func `a push with everything that a format can have passes the checks of the push library`() throws {
        let whole = try push(
            """
            {"title":"t","subtitle":"s","body":"b","launchImage":"i","category":"c","thread":"t","targetContent":"w",
            "filterCriteria":"f","interruptionLevel":"critical","relevance":0.5,"contentAvailable":true,"mutableContent":true,
            "badge":"auto","sound":{"name":"s","critical":true,"volume":1},"custom":{"a":[1]},"collapse":"k"}
            """)
        let wake = APNsNotification.background.collapseID("carillon").custom("carillon", ["kind": "wake"])
        for notification in [whole, wake] {
            let raw = APNsNotification.raw(Array(notification.jsonString.utf8), type: notification.fields.type)
            for each in [notification, raw] {
                _ = try PreparedNotification(
                    each, in: .init(bundleID: "com.example.app", usesToken: true, channelID: nil, fallbackID: nil))
            }
        }
    }

    @Test func `private text is in no header`() throws {
        let point = P256.KeyAgreement.PrivateKey().publicKey.x963Representation
        let keys = PrivateKeys(publicKey: Array(point), authSecret: Array(repeating: 7, count: 16))
        func sealed(_ collapse: String) throws -> APNsNotification {
            try push(
                #"{"title":"secret","thread":"secret","category":"secret","collapse":"\#(collapse)","private":\#(String(decoding: keys.json.bytes, as: UTF8.self))}"#
            )
        }
        let shown = try sealed("secret-11")
        #expect(shown.fields.collapseID?.contains("secret") == false && !shown.jsonString.contains("secret"))
        #expect(try shown.fields.collapseID == sealed("secret-11").fields.collapseID)
        #expect(try shown.fields.collapseID != sealed("secret-12").fields.collapseID)
    }

    @Test func `firings of a subscription take each other's place, but for those that are always pushed`() throws {
        func collapseID(_ topic: String?, _ position: Int64) throws -> String? {
            try push(#"{"title":"x"}"#, topic: topic, position: position).fields.collapseID
        }
        #expect(try collapseID("fired", 1) == collapseID("fired", 2))
        #expect(try collapseID(nil, 1) != collapseID(nil, 2))
        #expect(try collapseID(nil, 1) == collapseID(nil, 1), "tried again, it is the same")
    }

    @Test func `a rendered notification is Apple's payload`() throws {
        let (payload, _) = try envelope(
            #"""
            {"titleKey":"T","titleArguments":["a"],"subtitle":"s","body":"b","badge":"auto","sound":{"name":"n","critical":true,"volume":0.5},
             "category":"c","thread":"t","interruptionLevel":"time-sensitive","relevance":0.5,"mutableContent":true,"custom":{"x":{"y":1}}}
            """#)
        let aps = try #require(payload["aps"])
        #expect(aps["alert"]?["title-loc-key"] == .string("T"))
        #expect(aps["alert"]?["title-loc-args"] == .array([.string("a")]))
        #expect(aps["alert"]?["subtitle"] == .string("s") && aps["alert"]?["body"] == .string("b"))
        #expect(aps["badge"] == .integer(3) && aps["category"] == .string("c") && aps["thread-id"] == .string("t"))
        #expect(aps["sound"]?["name"] == .string("n") && aps["sound"]?["critical"] == .integer(1))
        #expect(aps["interruption-level"] == .string("time-sensitive") && aps["relevance-score"] == .number(0.5))
        #expect(aps["mutable-content"] == .integer(1))
        #expect(payload["x"]?["y"] == .integer(1))
        #expect(payload["carillon"]?["kind"] == .string("fired") && payload["carillon"]?["key"] == .string("k"))
        #expect(payload["carillon"]?["item"] == .string("i") && payload["carillon"]?["at"] == .integer(5))
    }

    @Test func `its size is the one that Apple counts`() throws {
        for badge in [#""auto""#, "7"] {
            let (payload, size) = try envelope(#"{"title":"é","badge":\#(badge)}"#)
            // A number that the server counts has its longest form.
            let slack = badge == "7" ? 0 : String(Int.max).utf8.count - 1
            #expect(size == payload.bytes.count + slack)
        }
    }
}
