import Foundation
import Testing

@testable import CarillonAPNs

/// The checks before sending, and the computation of topic, priority and limit.
struct RuleTests {
    static func prepare(
        _ notification: APNsNotification, bundleID: String? = "com.example.app", usesToken: Bool = true,
        channelID: String? = nil
    ) throws(APNsError) -> [String: String] {
        let prepared = try PreparedNotification(
            notification, in: .init(bundleID: bundleID, usesToken: usesToken, channelID: channelID, fallbackID: nil))
        return Dictionary(uniqueKeysWithValues: prepared.head.fields.map { ($0.name.rawValue, $0.value) })
    }

    @Test(arguments: [
        (APNsNotification.alert("x"), "alert", "com.example.app", "10"),
        (.background, "background", "com.example.app", "5"),
        (.voip, "voip", "com.example.app.voip", "10"),
        (.pushToTalk, "pushtotalk", "com.example.app.voip-ptt", "10"),
        (.complication, "complication", "com.example.app.complication", "10"),
        (.fileProvider(container: "c"), "fileprovider", "com.example.app.pushkit.fileprovider", "10"),
        (.location, "location", "com.example.app.location-query", "10"),
        (.updateLiveActivity(contentState: ["s": 1]), "liveactivity", "com.example.app.push-type.liveactivity", "10"),
        (.controls, "controls", "com.example.app.push-type.controls", "10"),
        (.widgets, "widgets", "com.example.app.push-type.widgets", "10"),
        (
            .accessory(encryptedData: "", sessionIdentifier: "", keyID: "", messageIndex: ""), "accessory",
            "com.example.app.push-type.accessory", "10"
        ),
        (.mdm(pushMagic: "m", topic: "com.apple.mgmt.x"), "mdm", "com.apple.mgmt.x", "10"),
    ])
    func `type, topic and priority follow from the push type`(
        notification: APNsNotification, type: String, topic: String, priority: String
    ) throws {
        let headers = try Self.prepare(notification)
        #expect(headers == ["apns-push-type": type, "apns-topic": topic, "apns-priority": priority])
    }

    @Test func `an unknown type is accepted`() throws {
        let headers = try Self.prepare(APNsNotification(type: APNsPushType("next", topicSuffix: ".next")))
        #expect(headers == ["apns-push-type": "next", "apns-topic": "com.example.app.next"])
    }

    @Test func `the notification's own topic, app and priority come first`() throws {
        #expect(try Self.prepare(.voip.bundleID("other"))["apns-topic"] == "other.voip")
        #expect(try Self.prepare(.voip.topic("exact.voip"))["apns-topic"] == "exact.voip")
        for priority in [APNsPriority.immediate, .considerPower, .neverWake] {
            #expect(try Self.prepare(.alert("x").priority(priority))["apns-priority"] == String(priority.rawValue))
        }
        #expect(try Self.prepare(.alert("x"), bundleID: nil, usesToken: false)["apns-topic"] == nil)
    }

    @Test func `expiration is whole seconds`() throws {
        #expect(try Self.prepare(.alert("x").expiration(.immediately))["apns-expiration"] == "0")
        #expect(
            try Self.prepare(.alert("x").expiration(Date(timeIntervalSince1970: 12.9)))["apns-expiration"] == "12")
        #expect(try Self.prepare(.alert("x"))["apns-expiration"] == nil)
    }

    @Test(arguments: [
        (APNsNotification.background.priority(.immediate), "priority 5"),
        (.alert("x").priority(APNsPriority(rawValue: 7)), "must be 1, 5 or 10"),
        (.updateLiveActivity(contentState: ["s": 1]).priority(.neverWake), "5 or 10"),
        (.alert("x").collapseID(String(repeating: "x", count: 65)), "65 bytes"),
        (.alert("x").collapseID(""), "0 bytes"),
        (.alert("x").collapseID("a\nb"), "printable"),
        (.alert("x").collapseID("a "), "space"),
        (.alert("x").topic(String(repeating: "t", count: 513)), "512"),
        (APNsNotification(type: APNsPushType(String(repeating: "t", count: 65))), "64"),
        (.updateLiveActivity(contentState: ["s": 1]).launchImage("i"), "launchImage(_:)"),
        (.startLiveActivity(attributesType: "T", attributes: ["a": 1], contentState: ["s": 1]).sound("s"), "needs an alert"),
        (.alert("x").topic("a b"), "topic"),
        (.alert("x").topic(""), "topic"),
        (.alert("x").custom("aps", 1), "aps"),
        (.alert("x").custom("f", Double.nan), "cannot be encoded"),
        (.alert("x").custom("f", json: "{\"a\":01}"), "not JSON"),
        (.alert("x").badge(-1), "badge"),
        (.alert("x").criticalSound(volume: 1.5), "volume"),
        (.alert("x").relevanceScore(1.5), "relevance"),
        (.alert("x").relevanceScore(.infinity), "relevance"),
        (.alert("x").expiration(Date(timeIntervalSince1970: -5)), "1970"),
        (.background.contentUnavailable(), "content-available"),
        (.background.title("x"), "shows nothing"),
        (.startLiveActivity(attributesType: "T", attributes: ["a": 1], contentState: ["s": 1]), "alert"),
        (.startLiveActivity(attributesType: "", attributes: ["a": 1], contentState: ["s": 1]).title("x"), "attributes"),
        (.updateLiveActivity(contentState: Double.nan), "content-state"),
        (.raw([], type: .alert), "empty"),
        (APNsNotification(type: .mdm), "topic of its own"),
    ])
    func `content that the service would refuse is refused with the rule`(notification: APNsNotification, rule: String) {
        let error = #expect(throws: APNsError.self) { try Self.prepare(notification) }
        #expect(error?.code == .notificationInvalid)
        #expect(error?.message.contains(rule) == true, "\(error?.message ?? "")")
        #expect(error?.mayHaveBeenProcessed == false)
    }

    @Test func `a token key needs a topic, and location needs a token key`() {
        #expect(throws: APNsError.self) { try Self.prepare(.alert("x"), bundleID: nil) }
        #expect(throws: APNsError.self) { try Self.prepare(.location, usesToken: false) }
    }

    @Test(arguments: [(APNsNotification.alert(), 4096), (.voip, 5120), (.background, 4096)])
    func `the limit is exact, and can be switched off`(empty: APNsNotification, limit: Int) throws {
        let room = limit - empty.jsonString.utf8.count - #","k":"""#.utf8.count
        _ = try Self.prepare(empty.custom("k", String(repeating: "x", count: room)))
        let large = empty.custom("k", String(repeating: "x", count: room + 1))
        let error = #expect(throws: APNsError.self) { try Self.prepare(large) }
        #expect(error?.code == .payloadTooLarge)
        #expect(error?.message.contains("\(limit + 1)") == true)
        _ = try Self.prepare(large.withoutSizeCheck())
    }

    @Test func `a broadcast may be larger than a push to a device`() throws {
        let room = 5120 - APNsNotification.updateLiveActivity(contentState: ["s": ""]).jsonString.utf8.count
        let full = APNsNotification.updateLiveActivity(contentState: ["s": String(repeating: "x", count: room)])
        _ = try Self.prepare(full, channelID: "ch==")
        #expect(throws: APNsError.self) { try Self.prepare(full) }
        let over = APNsNotification.updateLiveActivity(contentState: ["s": String(repeating: "x", count: room + 1)])
        #expect(throws: APNsError.self) { try Self.prepare(over, channelID: "ch==") }
    }

    @Test func `an error reports that a value cannot be encoded, and does not contain the value`() {
        let error = #expect(throws: APNsError.self) {
            try Self.prepare(.alert("x").custom("card", ["number": [4242.5, Double.nan]]))
        }
        #expect(error?.message.contains("index 1") == true, "\(error?.message ?? "")")
        #expect(error?.message.contains("4242") == false)
        #expect(error?.message.contains("number") == false)
    }

    @Test func `a broadcast has a channel instead of a topic, and expires at once`() throws {
        let headers = try Self.prepare(.updateLiveActivity(contentState: ["s": 1]), channelID: "ch==")
        #expect(
            headers == [
                "apns-channel-id": "ch==", "apns-push-type": "liveactivity", "apns-priority": "10", "apns-expiration": "0",
            ])
        let start = APNsNotification.startLiveActivity(attributesType: "T", attributes: ["a": 1], contentState: ["s": 1])
            .title("x")
        #expect(throws: APNsError.self) { try Self.prepare(start, channelID: "c") }
        #expect(throws: APNsError.self) { try Self.prepare(.alert("x"), channelID: "c") }
    }
}
