import CarillonBasics
import CarillonWire
import Testing

struct UpdatePayloadTests {
    private func read(_ kind: String, _ text: String) throws -> UpdatePayload {
        try UpdatePayload(JSONValue(parsing: Array(text.utf8)), of: try #require(UpdateKind(kind)))
    }

    @Test(arguments: [
        (#"{"action":"refresh","object":"o"}"#, ContentChange.refresh(object: "o", parents: 0, children: 0)),
        (#"{"action":"refresh","object":"o","parents":1,"children":100}"#, .refresh(object: "o", parents: 1, children: 100)),
        (#"{"action":"remove","object":"o"}"#, .remove(object: "o")), (#"{"action":"roots"}"#, .roots),
        (#"{"action":"infrastructures"}"#, .infrastructures), (#"{"action":"resync"}"#, .resync),
    ])
    func `content names the objects to fetch or remove`(text: String, change: ContentChange) throws {
        #expect(try read("content", text) == .content(change))
    }

    @Test func `a status is maintenance from and until a moment, or over`() throws {
        #expect(try read("status", #"{"status":"over"}"#) == .status(.over))
        #expect(try read("status", #"{"status":"maintenance"}"#) == .status(.maintenance(from: nil, until: nil)))
        #expect(
            try read(
                "status",
                #"{"status":"maintenance","from":"2026-01-31T12:00:00.000Z","until":"2026-01-31T13:00:00.000Z"}"#)
                == .status(.maintenance(from: 1_769_860_800_000, until: 1_769_864_400_000)))
    }

    @Test func `a popup has a style, a title and lines, and an object or a document`() throws {
        let popup = Popup(style: .emergency, title: "Fire", lines: ["Leave", ""], attachment: .document("plan"))
        #expect(
            try read("popup", #"{"style":"emergency","title":"Fire","lines":["Leave",""],"document":"plan"}"#)
                == .popup(popup))
        #expect(
            try read("popup", #"{"style":"notification","title":"t","object":"o"}"#)
                == .popup(Popup(style: .notification, title: "t", lines: [], attachment: .object("o"))))
    }

    @Test func `definitions have no payload, and kinds of the app any`() throws {
        #expect(try read("definitions", "{}") == .definitions)
        #expect(try read("com.example.route", #"{"x":[1]}"#) == .open(JSONValue(parsing: Array(#"{"x":[1]}"#.utf8))!))
        #expect(try UpdatePayload(nil, of: .definitions) == .definitions)
    }

    @Test(arguments: [
        ("content", "{}", "payload.action"), ("content", #"{"action":"eat"}"#, "refresh, remove, roots"),
        ("content", #"{"action":"refresh"}"#, "payload.object"),
        ("content", #"{"action":"refresh","object":""}"#, "payload.object"),
        ("content", #"{"action":"refresh","object":"o","children":-1}"#, "payload.children"),
        ("content", #"{"action":"refresh","object":"o","parents":101}"#, "payload.parents"),
        ("content", #"{"action":"remove","object":"o","children":1}"#, "payload.children"),
        ("content", #"{"action":"roots","object":"o"}"#, "payload.object"),
        ("content", #"{"action":"roots","action":"roots"}"#, "twice"), ("content", "[]", "object"),
        ("definitions", #"{"a":1}"#, "payload.a"), ("status", #"{"status":"gone"}"#, "maintenance, over"),
        ("status", #"{"status":"over","from":"2026-01-31T12:00:00.000Z"}"#, "payload.from"),
        ("status", #"{"status":"maintenance","from":"noon"}"#, "payload.from"),
        (
            "status", #"{"status":"maintenance","from":"2026-01-31T12:00:00.000Z","until":"2026-01-31T12:00:00.000Z"}"#,
            "payload.until"
        ),
        ("popup", #"{"style":"shout","title":"t"}"#, "emergency, failure"),
        ("popup", #"{"style":"failure"}"#, "payload.title"),
        ("popup", #"{"style":"failure","title":"t","lines":[1]}"#, "payload.lines"),
        ("popup", #"{"style":"failure","title":"t","object":"a","document":"b"}"#, "payload.document"),
        ("popup", #"{"style":"failure","title":"t","sound":"x"}"#, "payload.sound"),
    ])
    func `a payload that does not fit its kind is refused with its place`(kind: String, text: String, place: String) throws {
        let refusal = try #require(throws: Refusal.self) { try read(kind, text) }
        #expect(refusal.detail.contains(place), "\(refusal.detail)")
    }

    @Test func `a payload has a bound, and so have its texts`() throws {
        func popup(title: Int, lines: Int = 0, of bytes: Int = 1) -> String {
            let lines = repeatElement(#""\#(String(repeating: "l", count: bytes))""#, count: lines).joined(separator: ",")
            return #"{"style":"failure","title":"\#(String(repeating: "t", count: title))","lines":[\#(lines)]}"#
        }
        _ = try read("popup", popup(title: Popup.mostTitleBytes, lines: Popup.mostLines))
        _ = try read("popup", popup(title: 1, lines: 1, of: Popup.mostLineBytes))
        for text in [
            popup(title: Popup.mostTitleBytes + 1), popup(title: 1, lines: Popup.mostLines + 1),
            popup(title: 1, lines: 1, of: Popup.mostLineBytes + 1),
        ] {
            #expect(throws: Refusal.self) { try read("popup", text) }
        }
        func open(_ bytes: Int) -> String { #"{"a":"\#(String(repeating: "x", count: bytes - 8))"}"# }
        _ = try read("a.b", open(UpdatePayload.mostBytes))
        #expect(throws: Refusal.self) { try read("a.b", open(UpdatePayload.mostBytes + 1)) }
        let name = String(repeating: "o", count: longestObjectName)
        _ = try read("content", #"{"action":"remove","object":"\#(name)"}"#)
        #expect(throws: Refusal.self) { try read("content", #"{"action":"remove","object":"\#(name)o"}"#) }
    }

    @Test func `a kind of the app's own has a dot in its name`() {
        for name in ["a.b", "com.example.field-service.route_2"] { #expect(UpdateKind(name) == .open(name)) }
        for name in ["", "a", "a.", ".b", "a..b", "a b.c", "ä.b", "resync", String(repeating: "a", count: 63) + ".b"] {
            #expect(UpdateKind(name) == nil, "\(name)")
        }
        for name in ["content", "definitions", "status", "popup"] { #expect(UpdateKind(name)?.name == name) }
    }
}
