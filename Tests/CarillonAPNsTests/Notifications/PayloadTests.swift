import Foundation
import NIOCore
import TestSupport
import Testing

@testable import CarillonAPNs

/// The sent request, byte for byte.
struct PayloadTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let notification: APNsNotification
        let json: String
        var testDescription: String { json }

        init(_ notification: APNsNotification, _ json: String) {
            self.notification = notification
            self.json = json
        }
    }

    static let date = Date(timeIntervalSince1970: 1_700_000_000.75)

    struct State: Encodable, Sendable {
        var score = 3
        var since = Date(timeIntervalSinceReferenceDate: 60)
        var path = "a/b"
    }

    static let rows: [Row] = [
        Row(.alert("Hi"), #"{"aps":{"alert":"Hi"}}"#),
        Row(.alert(title: "T", subtitle: "S", body: "B"), #"{"aps":{"alert":{"title":"T","subtitle":"S","body":"B"}}}"#),
        Row(
            .alert(title: "Title", body: "A Test notification :)").badge(42).sound("Default").custom("key", "val"),
            #"{"aps":{"alert":{"title":"Title","body":"A Test notification :)"},"badge":42,"sound":"Default"},"key":"val"}"#),
        Row(.alert("plain").title("T"), #"{"aps":{"alert":{"title":"T","body":"plain"}}}"#),
        Row(
            .alert().localizedTitle("TK", arguments: ["a", "b"]).localizedSubtitle("SK").localizedBody("BK", arguments: []),
            #"{"aps":{"alert":{"title-loc-key":"TK","title-loc-args":["a","b"],"subtitle-loc-key":"SK","loc-key":"BK","loc-args":[]}}}"#
        ),
        Row(
            .alert().launchImage("i.png").action("Go").localizedAction("GO").summary(argument: "A", count: 2),
            #"{"aps":{"alert":{"launch-image":"i.png","action":"Go","action-loc-key":"GO","summary-arg":"A","summary-arg-count":2}}}"#
        ),
        Row(.alert().badge(0), #"{"aps":{"badge":0}}"#),
        Row(.alert().badge(3).noBadgeChange(), #"{"aps":{}}"#),
        Row(.alert().criticalSound(volume: 0.5), #"{"aps":{"sound":{"critical":1,"name":"default","volume":0.5}}}"#),
        Row(.alert().criticalSound("s.caf", volume: 1), #"{"aps":{"sound":{"critical":1,"name":"s.caf","volume":1}}}"#),
        Row(.alert().threadID("t").category("c"), #"{"aps":{"thread-id":"t","category":"c"}}"#),
        Row(.alert().contentAvailable().mutableContent(), #"{"aps":{"content-available":1,"mutable-content":1}}"#),
        Row(.alert().contentAvailable().contentUnavailable().mutableContent().mutableContent(false), #"{"aps":{}}"#),
        Row(
            .alert().targetContentID("w").interruptionLevel(.timeSensitive).relevanceScore(0.25).filterCriteria("f")
                .urlArguments(["x", "y"]),
            #"{"aps":{"target-content-id":"w","interruption-level":"time-sensitive","relevance-score":0.25,"filter-criteria":"f","url-args":["x","y"]}}"#
        ),
        Row(.background.custom("n", 7), #"{"aps":{"content-available":1},"n":7}"#),
        Row(.voip.custom("call", true), #"{"aps":{},"call":true}"#),
        Row(.pushToTalk.custom("speaker", "Ada"), #"{"aps":{},"speaker":"Ada"}"#),
        Row(.complication.custom("temperature", 21.5), #"{"aps":{},"temperature":21.5}"#),
        Row(
            .fileProvider(container: "NSFileProviderWorkingSetContainerItemIdentifier", domain: "d"),
            #"{"aps":{},"container-identifier":"NSFileProviderWorkingSetContainerItemIdentifier","domain":"d"}"#),
        Row(.location, #"{"aps":{}}"#),
        Row(.controls, #"{"aps":{"content-changed":true}}"#),
        Row(.widgets, #"{"aps":{"content-changed":true}}"#),
        Row(
            .accessory(encryptedData: "ZGF0YQ==", sessionIdentifier: "s", keyID: "k", messageIndex: "1"),
            #"{"aps":{"encryptedData":"ZGF0YQ==","sessionIdentifier":"s","keyID":"k","messageIndex":"1"}}"#),
        Row(.mdm(pushMagic: "magic", topic: "com.apple.mgmt.External.x"), #"{"mdm":"magic"}"#),
        Row(.raw(Array(#"{ "aps" : {} }"#.utf8), type: .alert).title("ignored"), #"{ "aps" : {} }"#),
        Row(
            .alert().custom("a", ["x": [1, 2]]).custom("b", json: "null").custom("a", 1),
            #"{"aps":{},"a":1,"b":null}"#),
        Row(.alert("\"\\\n\t\u{1}\u{7F}é\u{1F514}/"), "{\"aps\":{\"alert\":\"\\\"\\\\\\n\\t\\u0001\u{7F}é\u{1F514}/\"}}"),
        Row(
            .startLiveActivity(
                attributesType: "Match", attributes: ["home": "A"], contentState: State(), updates: .token, timestamp: date
            ).localizedTitle("T", arguments: ["1"]).body("B").sound("s").staleDate(date).relevanceScore(75),
            #"{"aps":{"timestamp":1700000000,"event":"start","content-state":{"path":"a/b","score":3,"since":60},"attributes-type":"Match","attributes":{"home":"A"},"stale-date":1700000000,"input-push-token":1,"alert":{"title":{"loc-key":"T","loc-args":["1"]},"body":"B","sound":"s"},"relevance-score":75}}"#
        ),
        Row(
            .startLiveActivity(
                attributesType: "Match", attributes: ["home": "A"], contentState: ["s": 1], updates: .channel("ch=="),
                timestamp: date
            ).title("T"),
            #"{"aps":{"timestamp":1700000000,"event":"start","content-state":{"s":1},"attributes-type":"Match","attributes":{"home":"A"},"input-push-channel":"ch==","alert":{"title":"T"}}}"#
        ),
        Row(
            .updateLiveActivity(contentState: ["s": 1], timestamp: date),
            #"{"aps":{"timestamp":1700000000,"event":"update","content-state":{"s":1}}}"#),
        Row(
            .endLiveActivity(contentState: ["s": 1], dismissalDate: date, timestamp: date),
            #"{"aps":{"timestamp":1700000000,"event":"end","content-state":{"s":1},"dismissal-date":1700000000}}"#),
        Row(.endLiveActivity(timestamp: date), #"{"aps":{"timestamp":1700000000,"event":"end"}}"#),
    ]

    @Test(arguments: rows) func `the payload is exactly the JSON of the table`(row: Row) throws {
        #expect(row.notification.jsonString == row.json)
        _ = try JSONSerialization.jsonObject(with: Data(row.json.utf8))
    }

    @Test func `any text is returned unchanged by any JSON reader`() throws {
        var generator = SeededRandom.forTest()
        for _ in 0..<500 {
            let text = String(
                String.UnicodeScalarView(
                    (0..<20).compactMap { _ in Unicode.Scalar(UInt32.random(in: 0...0x2_FFFF, using: &generator)) }))
            let decoded = try JSONDecoder().decode(
                [String: [String: String]].self, from: Data(APNsNotification.alert(text).jsonString.utf8))
            #expect(decoded["aps"]?["alert"] == text)
        }
    }

    @Test(arguments: [
        "1", "-0.5e+3", "\"a\\u00e9\\n\"", "{}", " { \"a\" : [ 1 , { } , null ] } ", "true", "[[],{\"x\":false}]",
    ])
    func `JSON of the caller's own is taken`(text: String) throws {
        #expect(JSONFragment.holds(Array(text.utf8)))
        _ = try JSONSerialization.jsonObject(with: Data(text.utf8), options: .fragmentsAllowed)
    }

    @Test(arguments: [
        "", " ", "01", "1.", ".5", "1e", "-", "+1", "nul", "truex", "{\"a\":1,}", "[1,]", "{a:1}", "{\"a\" 1}", "\"a",
        "\"\\x\"",
        "\"\\u12\"", "\"a\nb\"", "1 2", "}", "[", String(repeating: "[", count: 200),
    ])
    func `a text that is not JSON is refused`(text: String) { #expect(!JSONFragment.holds(Array(text.utf8))) }

    @Test func `random bytes are never taken for JSON that Foundation cannot read`() {
        let alphabet = Array("{}[]\",:01e-.tn\\u ".utf8)
        var generator = SeededRandom.forTest()
        for _ in 0..<20_000 {
            let length = Int.random(in: 1...12, using: &generator)
            let bytes = (0..<length).compactMap { _ in alphabet.randomElement(using: &generator) }
            guard JSONFragment.holds(bytes) else { continue }
            #expect(throws: Never.self, "\(String(decoding: bytes, as: UTF8.self))") {
                try JSONSerialization.jsonObject(with: Data(bytes), options: .fragmentsAllowed)
            }
        }
    }

    @Test func `the shown payload is the encoded one`() throws {
        let notification = APNsNotification.alert(title: "T").custom("k", [1, 2, 3])
        let prepared = try PreparedNotification(
            notification, in: .init(bundleID: "b", usesToken: true, channelID: nil, fallbackID: nil))
        #expect(String(buffer: prepared.payload.buffer) == notification.jsonString)
    }
}
