import CarillonAPNs
import CarillonBasics
import CarillonCore
import CarillonMessages
import CarillonWire

/// Converts firings of item subscriptions to notifications for Apple's push service.
extension PushRendering {
    /// - Parameter isShortened: Whether the texts are too long for a payload and must be shortened.
    func fired(
        _ envelope: Envelope, _ topic: String?, _ text: AlertText?, _ badge: Int, isShortened: Bool = false
    ) -> APNsNotification {
        guard var fired = envelope.fired else { return APNsNotification.alert() }
        if let keys = fired.privateKeys { return privately(fired, keys, envelope, topic, text, badge) }
        if isShortened {
            fired = NotificationShortening.shortened(fired, within: Self.largestPayload, Self.payloadSize)
        }
        var notification = Self.notification(
            of: fired, message: MessageHash.text(of: envelope.id.description), badge: badge)
        if case .string(let collapse)? = fired.notification["collapse"], Self.isCollapseID(collapse) {
            notification = notification.collapseID(collapse)
        } else if case .string(let collapse)? = fired.notification["collapse"], !collapse.isEmpty {
            notification = notification.collapseID(collapseID(of: envelope, "fired \(collapse)"))
        } else {
            notification = notification.collapseID(collapseID(of: envelope, topic))
        }
        return notification.priority(envelope.urgency == .high ? .immediate : .considerPower)
    }

    /// Returns the app's own alert. The app's extension replaces its text by the encrypted notification, which is in the same
    /// push.
    private func privately(
        _ fired: FiredNotification, _ keys: PrivateKeys, _ envelope: Envelope, _ topic: String?, _ text: AlertText?,
        _ badge: Int
    ) -> APNsNotification {
        let bare = Self.badged(
            text?.notification(badge: nil) ?? APNsNotification.alert().mutableContent(), fired.notification, badge)
        let fields = PushFields(kind: "fired", message: MessageHash.text(of: envelope.id.description))
        var notification = bare.custom("carillon", fields)
        if let sealed = try? keys.encrypt(fired.content.json.bytes, with: .aes128gcm) {
            notification = Self.carrying(sealed.body, sealed.coding, bare, fields)
        }
        var topic = topic
        if case .string(let collapse)? = fired.notification["collapse"], !collapse.isEmpty { topic = "fired \(collapse)" }
        return notification.collapseID(collapseID(of: envelope, topic))
            .priority(envelope.urgency == .high ? .immediate : .considerPower)
    }

    private static func badged(_ notification: APNsNotification, _ format: JSONValue, _ badge: Int) -> APNsNotification {
        switch format["badge"] {
        case .string: notification.badge(badge)
        case .integer(let number)?: notification.badge(number)
        default: notification
        }
    }

    /// Whether a text can be used unchanged as `apns-collapse-id`.
    private static func isCollapseID(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count) && text.utf8.allSatisfy { (0x20...0x7E).contains($0) } && text.first != " "
            && text.last != " "
    }

    /// Returns the largest size of the payload.
    static func payloadSize(of fired: FiredNotification) -> Int {
        // A notification that does not fit is left out, and the app's own alert is shown.
        if fired.privateKeys != nil { return 0 }
        return notification(of: fired, message: MessageHash.text(of: ""), badge: .max).jsonString.utf8.count
    }

    private static func notification(of fired: FiredNotification, message: String, badge: Int) -> APNsNotification {
        let format = fired.notification
        var notification = badged(texts(of: format), format, badge)
        switch format["sound"] {
        case .string(let name)?: notification = notification.sound(name)
        case .object?:
            guard case .string(let name)? = format["sound"]?["name"] else { break }
            let volume = format["sound"]?["volume"]?.double
            notification =
                format["sound"]?["critical"] == .bool(true)
                ? notification.criticalSound(name, volume: volume) : notification.sound(name)
        default: break
        }
        if case .object(let members)? = format["custom"] {
            for member in members {
                notification = notification.custom(member.name, json: String(decoding: member.value.bytes, as: UTF8.self))
            }
        }
        let fields = FiredFields(
            message: message, subscription: fired.subscription.description, key: fired.key, item: fired.item, at: fired.at)
        return notification.custom("carillon", fields)
    }

    private static func texts(of format: JSONValue) -> APNsNotification {
        func text(_ name: String) -> String? {
            if case .string(let text)? = format[name], !text.isEmpty { text } else { nil }
        }
        func arguments(_ name: String) -> [String]? {
            guard case .array(let values)? = format[name] else { return nil }
            return values.map { if case .string(let text) = $0 { text } else { "" } }
        }
        var alert = APNsNotification.alert(title: text("title"), subtitle: text("subtitle"), body: text("body"))
        if let key = text("titleKey") { alert = alert.localizedTitle(key, arguments: arguments("titleArguments")) }
        if let key = text("subtitleKey") {
            alert = alert.localizedSubtitle(key, arguments: arguments("subtitleArguments"))
        }
        if let key = text("bodyKey") { alert = alert.localizedBody(key, arguments: arguments("bodyArguments")) }
        if let name = text("launchImage") { alert = alert.launchImage(name) }
        if let name = text("category") { alert = alert.category(name) }
        if let name = text("thread") { alert = alert.threadID(name) }
        if let id = text("targetContent") { alert = alert.targetContentID(id) }
        if let criteria = text("filterCriteria") { alert = alert.filterCriteria(criteria) }
        if let level = text("interruptionLevel") { alert = alert.interruptionLevel(.init(rawValue: level)) }
        if let score = format["relevance"]?.double { alert = alert.relevanceScore(score) }
        if format["contentAvailable"] == .bool(true) { alert = alert.contentAvailable() }
        if format["mutableContent"] == .bool(true) { alert = alert.mutableContent() }
        return alert
    }
}

/// The custom fields of such a push, beside Apple's own members.
private struct FiredFields: Codable, Sendable {
    var kind = "fired"
    /// See ``MessageHash``.
    var message: String
    var subscription: String
    var key: String?
    var item: String
    var at: Int64
}

extension Envelope {
    fileprivate var firedBody: [UInt8]? { if case .fired(let body, _) = kind { body } else { nil } }

    var fired: FiredNotification? { firedBody.flatMap { JSONValue(parsing: $0) }.flatMap(FiredNotification.init) }
}

extension JSONValue {
    fileprivate var double: Double? {
        switch self {
        case .integer(let number): Double(number)
        case .number(let number): number
        default: nil
        }
    }
}
