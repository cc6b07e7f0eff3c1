import Foundation
import Testing

@testable import CarillonAPNs

/// The values that a push type ignores or requires, with the library's methods and in raw payloads.
struct CheckTests {
    private static let state = ["score": 1]
    private static let start = APNsNotification.startLiveActivity(
        attributesType: "T", attributes: ["team": "A"], contentState: state
    ).title("x")
    private static let update = APNsNotification.updateLiveActivity(contentState: state)
    private static let mdm = APNsNotification.mdm(pushMagic: "m", topic: "com.apple.mgmt.External.1")

    private static func raw(_ json: String, _ type: APNsPushType) -> APNsNotification {
        let notification = APNsNotification.raw(Array(json.utf8), type: type)
        return type == .mdm ? notification.topic("com.apple.mgmt.External.1") : notification
    }

    private static func isRefused(_ notification: APNsNotification, naming name: String) -> Bool {
        do {
            _ = try RuleTests.prepare(notification)
            Issue.record("\(notification.jsonString) is not refused")
            return false
        } catch {
            #expect(error.code == .notificationInvalid)
            #expect(error.message.contains(name), "\(error.message)")
            #expect(throws: Never.self, "\(notification.jsonString)") {
                try RuleTests.prepare(notification.withoutChecks())
            }
            return true
        }
    }

    private static let ignored: [(APNsNotification, String)] = [
        (APNsNotification.alert("x").staleDate(.now), "staleDate(_:)"), (.voip.dismissalDate(.now), "dismissalDate(_:)"),
        (.background.badge(1), "badge(_:)"), (.background.sound("s"), "sound(_:)"),
        (.background.staleDate(.now), "staleDate(_:)"), (.background.subtitle("x"), "subtitle(_:)"),
        (.background.body("x"), "body(_:)"), (.background.criticalSound(), "criticalSound(_:volume:)"),
        (.background.localizedTitle("K"), "localizedTitle(_:arguments:)"),
        (.widgets.title("x"), "title(_:)"), (.controls.sound("s"), "sound(_:)"),
        (.widgets.contentAvailable(), "contentAvailable()"),
        (.fileProvider(container: "c").badge(1), "badge(_:)"), (mdm.title("x"), "title(_:)"), (mdm.badge(1), "badge(_:)"),
        (mdm.custom("key", 1), "custom(\"key\")"), (mdm.staleDate(.now), "staleDate(_:)"),
        (update.badge(1), "badge(_:)"), (update.threadID("t"), "threadID(_:)"), (update.category("c"), "category(_:)"),
        (update.contentAvailable(), "contentAvailable()"), (update.mutableContent(), "mutableContent(_:)"),
        (update.targetContentID("t"), "targetContentID(_:)"), (update.filterCriteria("f"), "filterCriteria(_:)"),
        (update.interruptionLevel(.active), "interruptionLevel(_:)"), (update.urlArguments(["a"]), "urlArguments(_:)"),
        (update.subtitle("x"), "subtitle(_:)"), (update.launchImage("i"), "launchImage(_:)"),
        (update.action("a"), "action(_:)"), (update.localizedAction("a"), "localizedAction(_:)"),
        (update.summary(argument: "a"), "summary(argument:count:)"), (update.dismissalDate(.now), "dismissalDate(_:)"),
        (start.dismissalDate(.now), "dismissalDate(_:)"),
        (.startLiveActivity(attributesType: "T", attributes: 5, contentState: state).title("x"), "attributes"),
        (.updateLiveActivity(contentState: 5), "content-state"),
        (raw(#"{"aps":{"alert":"x"}}"#, .alert).title("x"), "title(_:)"),
        (raw(#"{"aps":{"alert":"x"}}"#, .alert).custom("key", 1), "custom(\"key\")"),
        (raw(#"{"aps":{"alert":"x"}}"#, .alert).staleDate(.now), "staleDate(_:)"),
        (APNsNotification(type: .widgets), "content-changed"),
        (APNsNotification(type: .fileProvider), "fileProvider(container"),
        (APNsNotification(type: .accessory), "accessory("), (APNsNotification(type: .liveActivity), "startLiveActivity("),
        (APNsNotification(type: .mdm).topic("com.apple.mgmt.x"), "mdm(pushMagic:topic:)"),
    ]

    @Test(arguments: ignored)
    func `a method that the push type ignores, or content that it lacks, is named`(
        notification: APNsNotification, name: String
    ) {
        #expect(Self.isRefused(notification, naming: name))
    }

    @Test(arguments: APNsPushType.known.filter { $0.topicSuffix?.isEmpty == false })
    func `a topic without the suffix of the push type is refused`(type: APNsPushType) throws {
        let notification =
            switch type {
            case .liveActivity: Self.update
            case .fileProvider: APNsNotification.fileProvider(container: "c")
            case .controls: APNsNotification.controls
            case .widgets: APNsNotification.widgets
            case .accessory:
                APNsNotification.accessory(encryptedData: "", sessionIdentifier: "", keyID: "", messageIndex: "")
            default: APNsNotification(type: type)
            }
        let suffix = try #require(type.topicSuffix)
        #expect(Self.isRefused(notification.topic("com.example.app"), naming: "\"\(suffix)\""))
        let topic = "com.example.app\(suffix)"
        #expect(try RuleTests.prepare(notification.topic(topic))["apns-topic"] == topic)
    }

    private static let activity = #""event":"update","timestamp":1,"content-state":{}"#
    private static let begin = """
        "event":"start","timestamp":1,"content-state":{},"attributes-type":"T","attributes":{},"alert":{"title":"x"}
        """

    private static let wrong: [(APNsNotification, String?)] = [
        (raw("", .alert), nil), (raw("x", .alert), "JSON object"), (raw("[]", .voip), "JSON object"),
        (raw(#"{"aps":{"badge":1e999}}"#, .alert), "line 1, column 17 is out of range"),
        (raw(#"{"aps":5}"#, .alert), "\"aps\" must be an object"),
        (raw(#"{"aps":{"alert":5}}"#, .alert), "\"aps.alert\" must be a text or an object"),
        (raw(#"{"aps":{"badge":-1}}"#, .alert), "\"aps.badge\""), (raw(#"{"aps":{"badge":"1"}}"#, .alert), "\"aps.badge\""),
        (raw(#"{"aps":{"relevance-score":2}}"#, .alert), "\"aps.relevance-score\""),
        (raw(#"{"aps":{"alert":"x","stale-date":1}}"#, .alert), "\"aps.stale-date\""),
        (raw(#"{"aps":{"alert":"x","content-state":{}}}"#, .alert), "\"aps.content-state\""),
        (raw(#"{"aps":{"content-available":1,"alert":"x"}}"#, .background), "\"aps.alert\""),
        (raw(#"{"aps":{"content-available":1,"sound":"s"}}"#, .background), "\"aps.sound\""),
        (raw(#"{"aps":{"content-available":1,"badge":1}}"#, .background), "\"aps.badge\""),
        (raw(#"{"aps":{"content-available":1,"event":"update"}}"#, .background), "\"aps.event\""),
        (raw(#"{"aps":{}}"#, .background), "\"aps.content-available\""),
        (raw("{}", .background), "\"aps.content-available\""),
        (raw(#"{"aps":{}}"#, .widgets), "\"aps.content-changed\""),
        (raw(#"{"aps":{}}"#, .controls), "\"aps.content-changed\""),
        (raw(#"{"aps":{"content-changed":true,"badge":1}}"#, .widgets), "\"aps.badge\""),
        (raw(#"{"aps":{}}"#, .fileProvider), "\"container-identifier\""),
        (raw(#"{"container-identifier":5}"#, .fileProvider), "\"container-identifier\""),
        (raw(#"{"aps":{"sound":"s"},"container-identifier":"c"}"#, .fileProvider), "\"aps.sound\""),
        (
            raw(#"{"aps":{"encryptedData":"","sessionIdentifier":"","keyID":"","messageIndex":1}}"#, .accessory),
            "\"aps.messageIndex\""
        ),
        (raw(#"{"mdm":"m","alert":"x"}"#, .mdm), "\"alert\""), (raw(#"{"mdm":"m","aps":{"alert":"x"}}"#, .mdm), "\"aps\""),
        (raw(#"{"aps":{}}"#, .mdm), "\"mdm\""), (raw(#"{"mdm":5}"#, .mdm), "\"mdm\""),
        (raw("{}", .liveActivity), "\"aps.event\""),
        (raw(#"{"aps":{"event":"stop","timestamp":1,"content-state":{}}}"#, .liveActivity), "\"aps.event\""),
        (raw(#"{"aps":{"event":"update","content-state":{}}}"#, .liveActivity), "\"aps.timestamp\""),
        (raw(#"{"aps":{"event":"update","timestamp":"1","content-state":{}}}"#, .liveActivity), "\"aps.timestamp\""),
        (raw(#"{"aps":{"event":"update","timestamp":1}}"#, .liveActivity), "\"aps.content-state\""),
        (raw(#"{"aps":{"event":"update","timestamp":1,"content-state":5}}"#, .liveActivity), "\"aps.content-state\""),
        (raw(#"{"aps":{\#(activity),"attributes":5}}"#, .liveActivity), "\"aps.attributes\""),
        (raw(#"{"aps":{\#(activity),"dismissal-date":5}}"#, .liveActivity), "\"aps.dismissal-date\""),
        (raw(#"{"aps":{\#(activity),"stale-date":"5"}}"#, .liveActivity), "\"aps.stale-date\""),
        (raw(#"{"aps":{\#(activity),"relevance-score":"5"}}"#, .liveActivity), "\"aps.relevance-score\""),
        (raw(#"{"aps":{\#(activity),"badge":5}}"#, .liveActivity), "\"aps.badge\""),
        (raw(#"{"aps":{\#(activity),"sound":"s"}}"#, .liveActivity), "\"aps.sound\""),
        (raw(#"{"aps":{\#(activity),"alert":{"title":"x","subtitle":"y"}}}"#, .liveActivity), "\"aps.alert.subtitle\""),
        (raw(#"{"aps":{\#(activity),"alert":{"loc-key":"y"}}}"#, .liveActivity), "\"aps.alert.loc-key\""),
        (
            raw(#"{"aps":{"event":"start","timestamp":1,"content-state":{},"attributes":{},"alert":"x"}}"#, .liveActivity),
            "\"aps.attributes-type\""
        ),
        (raw(#"{"aps":{\#(begin),"attributes":5}}"#, .liveActivity), "\"aps.attributes\" must be an object"),
        (raw(#"{"aps":{\#(begin),"attributes-type":""}}"#, .liveActivity), "attributes-type"),
        (raw(#"{"aps":{\#(begin),"alert":{"sound":"s"}}}"#, .liveActivity), "\"title\" or \"body\""),
        (raw(#"{"aps":{\#(begin),"alert":null}}"#, .liveActivity), "\"aps.alert\""),
        (raw(#"{"aps":{\#(begin),"input-push-token":1,"input-push-channel":"c"}}"#, .liveActivity), "not both"),
    ]

    @Test(arguments: wrong)
    func `a raw payload must follow the rules of its push type`(notification: APNsNotification, name: String?) {
        guard let name else {
            let error = #expect(throws: APNsError.self) { try RuleTests.prepare(notification) }
            #expect(error?.message.contains("empty") == true)
            return
        }
        #expect(Self.isRefused(notification, naming: name))
    }

    @Test func `a number of a payload that is out of range is not repeated`() {
        let notification = Self.raw(#"{"aps":{"badge":4242e999}}"#, .alert)
        let error = #expect(throws: APNsError.self) { try RuleTests.prepare(notification) }
        #expect(error?.message.contains("is out of range") == true, "\(error?.message ?? "")")
        #expect(error?.message.contains("4242") == false, "\(error?.message ?? "")")
    }

    private static let right: [APNsNotification] = [
        raw("{}", .alert), raw(#"{"aps":{"alert":{"title":"x"},"badge":null,"sound":"s","x":1.5},"k":[1]}"#, .alert),
        raw(#"{"aps":{"content-available":1},"k":1}"#, .background), raw(#"{"aps":{"alert":"call"}}"#, .voip),
        raw(#"{"k":1}"#, .pushToTalk), raw(#"{"k":1}"#, .complication), raw(#"{"aps":{}}"#, .location),
        raw(#"{"aps":{"content-changed":true}}"#, .widgets), raw(#"{"container-identifier":"c"}"#, .fileProvider),
        raw(#"{"mdm":"m"}"#, .mdm), raw(#"{"aps":{\#(activity),"alert":"x","relevance-score":75}}"#, .liveActivity),
        raw(#"{"aps":{\#(activity),"alert":{"title":{"loc-key":"K"},"sound":"s"}}}"#, .liveActivity),
        raw(#"{"aps":{"event":"end","timestamp":1,"dismissal-date":5}}"#, .liveActivity),
        raw(#"{"aps":{\#(begin),"input-push-token":1}}"#, .liveActivity),
        raw("not JSON", APNsPushType("next")), raw(#"{"aps":{"content-state":5}}"#, APNsPushType("next")),
    ]

    @Test func `a background push can have every member beside an alert, a sound, a badge and a Live Activity`() throws {
        let notification = APNsNotification.background.category("c").threadID("t").mutableContent().targetContentID("w")
            .interruptionLevel(.passive).relevanceScore(1).filterCriteria("f").urlArguments(["a"])
        _ = try RuleTests.prepare(notification)
        _ = try RuleTests.prepare(Self.raw(notification.jsonString, .background))
        let changed = #"{"aps":{"content-available":1,"content-changed":true,"x":1}}"#
        _ = try RuleTests.prepare(Self.raw(changed, .background))
    }

    @Test(arguments: right)
    func `the content that the pages of the push type allow is accepted`(notification: APNsNotification) throws {
        _ = try RuleTests.prepare(notification)
    }

    @Test(arguments: PayloadTests.rows)
    func `a payload that the library encodes is good as a raw payload, too`(row: PayloadTests.Row) throws {
        let fields = row.notification.fields
        guard fields.raw == nil else { return }
        let payload = APNsNotification.raw(Array(row.json.utf8), type: fields.type).topic(
            fields.topic ?? "com.example.app\(fields.type.topicSuffix ?? "")")
        for notification in [row.notification, payload] { _ = try RuleTests.prepare(notification) }
    }

    @Test func `a start is no broadcast, also as a raw payload and without checks of a typed one`() {
        let start = Self.raw(#"{"aps":{\#(Self.begin)}}"#, .liveActivity)
        #expect(throws: APNsError.self) { try RuleTests.prepare(start, channelID: "c") }
        #expect(throws: APNsError.self) { try RuleTests.prepare(start.withoutChecks(), channelID: "c") }
        #expect(throws: Never.self) {
            let update = Self.raw(#"{"aps":{\#(Self.activity)}}"#, .liveActivity)
            _ = try RuleTests.prepare(update.withoutChecks(), channelID: "c")
        }
        #expect(throws: APNsError.self) { try RuleTests.prepare(Self.start.withoutChecks(), channelID: "c") }
    }

    @Test func `a raw payload is read once for a push and once for a broadcast, and again when it was changed`() throws {
        var start = Self.raw(#"{"aps":{\#(Self.begin)}}"#, .liveActivity)
        #expect(!start.hasGoodPayload(isBroadcast: false))
        _ = try RuleTests.prepare(start)
        let copy = start
        #expect(copy.hasGoodPayload(isBroadcast: false) && !copy.hasGoodPayload(isBroadcast: true))
        _ = try RuleTests.prepare(copy)
        #expect(throws: APNsError.self) { try RuleTests.prepare(copy, channelID: "c") }
        // The box of the copy is another one from here on.
        start.fields.raw = Array("{}".utf8)
        #expect(!start.hasGoodPayload(isBroadcast: false) && copy.hasGoodPayload(isBroadcast: false))
        let changed = start
        #expect(throws: APNsError.self) { try RuleTests.prepare(changed) }
        var alone = Self.raw("{}", .alert)
        _ = try RuleTests.prepare(alone)
        alone.fields.raw = Array("[]".utf8)
        #expect(!alone.hasGoodPayload(isBroadcast: false))
        // A payload that passed is not read again.
        alone.notePassed(isBroadcast: false)
        _ = try RuleTests.prepare(alone)
    }

    private static let flawed: [(String, String)] = [
        (#"{"aps":{},"k":"\ud83d"}"#, "has half of a surrogate pair"),
        (#"{"aps":{},"k":["\udc00x"]}"#, "has half of a surrogate pair"),
        (
            "{\"aps\":{},\"k\":" + String(repeating: "[", count: 300) + String(repeating: "]", count: 300) + "}",
            "must be nested at most 200"
        ),
    ]

    @Test(arguments: flawed)
    func `JSON that only other readers accept is named, and is sent if the app gets the whole payload`(
        json: String, words: String
    ) throws {
        #expect(Self.isRefused(Self.raw(json, .alert), naming: words))
        for type in [APNsPushType.voip, .pushToTalk, .complication] { _ = try RuleTests.prepare(Self.raw(json, type)) }
    }

    private static let unsendable: [(APNsNotification, String)] = [
        (APNsNotification.alert("x").topic("a b"), "topic"), (.alert("x").custom("aps", 1), "aps"),
        (.alert("x").custom("f", Double.nan), "cannot be encoded"), (.raw([], type: .alert), "empty"),
        (.updateLiveActivity(contentState: Double.nan), "content-state"), (.alert("x").collapseID("a\nb"), "printable"),
        (.alert("x").custom("f", json: "[1e999]"), "the number in line 1, column 2 is out of range"),
    ]

    @Test(arguments: unsendable)
    func `content that cannot be sent is refused without checks, too`(notification: APNsNotification, rule: String) {
        let error = #expect(throws: APNsError.self) { try RuleTests.prepare(notification.withoutChecks()) }
        #expect(error?.message.contains(rule) == true, "\(error?.message ?? "")")
    }

    @Test func `without checks, ranges and priorities are the service's affair`() throws {
        for notification in [
            APNsNotification.alert("x").badge(-1), .alert("x").relevanceScore(2), .background.priority(.immediate),
            .alert("x").priority(APNsPriority(rawValue: 7)),
        ] {
            #expect(throws: APNsError.self) { try RuleTests.prepare(notification) }
            _ = try RuleTests.prepare(notification.withoutChecks())
        }
        _ = try RuleTests.prepare(.location.withoutChecks(), usesToken: false)
    }
}
