import CarillonBasics

/// Checks a payload that the caller encoded, by the rules of Apple's pages for its push type. ``ContentKey`` names the pages.
enum PayloadRules {
    private static let depth = 200

    static func check(_ payload: [UInt8], of type: APNsPushType, isBroadcast: Bool) throws(APNsError) {
        // An empty payload has its own error message.
        guard !payload.isEmpty, APNsPushType.known.contains(type) else { return }
        guard let json = JSONValue(parsing: payload, depth: depth), case .object(let members) = json else {
            if let number = NumberOutOfRange(in: payload, depth: depth) {
                throw NotificationRules.refuse("The payload is not valid: \(number.clause).")
            }
            guard let flaw = JSONFlaw(inObject: payload) else {
                throw NotificationRules.refuse("The payload must be one JSON object in UTF-8.")
            }
            // The app receives the whole payload, and its parser can accept more.
            if [.voip, .pushToTalk, .complication].contains(type) { return }
            throw NotificationRules.refuse(sentence(flaw))
        }
        let root = PayloadPart(json: json, type: type)
        if type == .mdm { return try checkManagement(root, names: members.map(\.name)) }
        guard let aps = try root.part("aps") else {
            return try check(PayloadPart(json: .object([]), path: "aps.", type: type), in: root, isBroadcast: isBroadcast)
        }
        for key in ContentKey.ignoredInOrder(by: type) { try aps.refuse(key.rawValue) }
        try check(aps, in: root, isBroadcast: isBroadcast)
    }

    private static func sentence(_ flaw: JSONFlaw) -> String {
        switch flaw {
        case .halfPair: "The payload has half of a surrogate pair, such as \"\\ud83d\" alone; write both halves of the pair."
        case .tooDeep: "The payload must be nested at most \(depth) levels deep."
        }
    }

    /// Whether a payload starts a Live Activity.
    static func isStart(_ payload: [UInt8]) -> Bool {
        JSONValue(parsing: payload, depth: depth)?["aps"]?["event"] == .string(ActivityFields.Event.start.rawValue)
    }

    private static func check(_ aps: PayloadPart, in root: PayloadPart, isBroadcast: Bool) throws(APNsError) {
        switch root.type {
        case .alert: try checkAlert(aps)
        case .background:
            guard aps.isSet("content-available") else { throw aps.needs("content-available", "the number 1") }
        case .widgets, .controls:
            guard aps.isSet("content-changed") else { throw aps.needs("content-changed", "true") }
        case .fileProvider:
            try root.check("container-identifier", .text, isNeeded: true)
            try root.check("domain", .text)
        case .accessory:
            for name in ["encryptedData", "sessionIdentifier", "keyID", "messageIndex"] {
                try aps.check(name, .text, isNeeded: true)
            }
        case .liveActivity: try checkActivity(aps, isBroadcast: isBroadcast)
        default: break
        }
    }

    /// The rules of "Generating a remote notification", table 1.
    private static func checkAlert(_ aps: PayloadPart) throws(APNsError) {
        let kinds: [(ContentKey, PayloadPart.Kind)] = [
            (.alert, .textOrObject), (.badge, .count), (.sound, .textOrObject), (.threadID, .text), (.category, .text),
            (.contentAvailable, .flag), (.mutableContent, .flag), (.targetContentID, .text), (.interruptionLevel, .text),
            (.relevanceScore, .fraction), (.filterCriteria, .text), (.urlArguments, .array),
        ]
        for (key, kind) in kinds { try aps.check(key.rawValue, kind) }
    }

    /// The rules of "Starting and updating Live Activities with ActivityKit push notifications".
    private static func checkActivity(_ aps: PayloadPart, isBroadcast: Bool) throws(APNsError) {
        try aps.check("event", .text, isNeeded: true)
        guard let event = aps.text("event").flatMap(ActivityFields.Event.init) else {
            throw NotificationRules.refuse("\"aps.event\" must be \"start\", \"update\" or \"end\".")
        }
        guard event != .start || !isBroadcast else { throw NotificationRules.startOfBroadcast }
        try aps.check("timestamp", .number, isNeeded: true)
        try aps.check("content-state", .object, isNeeded: event != .end)
        try aps.check("stale-date", .number)
        try aps.check("relevance-score", .number)
        guard event == .end || aps["dismissal-date"] == nil else {
            throw aps.belongs("dismissal-date", "to the event \"end\"")
        }
        try aps.check("dismissal-date", .number)
        for name in ["attributes-type", "attributes", "input-push-token", "input-push-channel"] where event != .start {
            guard aps[name] == nil else { throw aps.belongs(name, "to the event \"start\"") }
        }
        if event == .start { try checkStart(aps) }
        guard aps["sound"] == nil else { throw aps.belongs("sound", "into \"aps.alert\"") }
        try aps.check("alert", .textOrObject, isNeeded: event == .start)
        guard case .object? = aps["alert"], let alert = try aps.part("alert") else { return }
        for name in namesBeyondActivities { try alert.refuse(name) }
        for name in ["title", "body", "sound"] { try alert.check(name, .textOrObject) }
        guard event != .start || alert["title"] != nil || alert["body"] != nil else {
            throw NotificationRules.refuse("Starting a Live Activity needs an alert with \"title\" or \"body\".")
        }
    }

    private static func checkStart(_ aps: PayloadPart) throws(APNsError) {
        try aps.check("attributes-type", .text, isNeeded: true)
        guard aps.text("attributes-type")?.isEmpty == false else {
            throw NotificationRules.refuse("\"aps.attributes-type\" is empty; it must be the name of the attributes' type.")
        }
        try aps.check("attributes", .object, isNeeded: true)
        try aps.check("input-push-token", .number)
        try aps.check("input-push-channel", .text)
        guard aps["input-push-token"] == nil || aps["input-push-channel"] == nil else {
            throw NotificationRules.refuse("\"aps\" can have \"input-push-token\" or \"input-push-channel\", not both.")
        }
    }

    /// The members that only an ordinary alert has. In a Live Activity, the localised forms of the title and the body are
    /// nested.
    private static let namesBeyondActivities = [
        "subtitle", "title-loc-key", "title-loc-args", "subtitle-loc-key", "subtitle-loc-args", "loc-key", "loc-args",
        "launch-image", "action", "action-loc-key", "summary-arg", "summary-arg-count",
    ]

    /// The rules of "Setting Up Push Notifications for Your MDM Customers": the payload is the member `mdm`.
    private static func checkManagement(_ root: PayloadPart, names: [String]) throws(APNsError) {
        try root.check("mdm", .text, isNeeded: true)
        for name in names where name != "mdm" { try root.refuse(name) }
    }
}
