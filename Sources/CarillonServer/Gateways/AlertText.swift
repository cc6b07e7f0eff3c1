import CarillonAPNs
package import CarillonBasics
package import CarillonWire

/// The alert that an app shows for a message whose content the vendor must not read. It consists of texts, or of keys of texts in
/// the app, which the device shows in its user's language.
package struct AlertText: Equatable, Sendable {
    package static let memberNames: Set = ["title", "titleKey", "body", "bodyKey", "sound", "category", "badge"]
    package static let longestBytes = 512

    private var values: [String: String] = [:]

    /// - Parameter body: An object without unknown members.
    package init(_ body: JSONValue) throws(Refusal) {
        try self.init(read: body)
        let beyond = PushRendering.sizeOfLargest(with: self) - PushRendering.largestPayload
        guard beyond <= 0 else {
            throw Refusal(
                .fieldInvalid,
                "The texts are \(beyond) bytes too long, as JSON has them: beside them there must be room for a message.")
        }
    }

    private init(read body: JSONValue) throws(Refusal) {
        for name in Self.memberNames {
            switch body[name] {
            case nil, .null: break
            case .string(let text) where !text.isEmpty: values[name] = text
            default: throw Refusal(.fieldInvalid, "The field \"\(name)\" must be a text, and not an empty one.")
            }
        }
        guard !values.keys.allSatisfy(["sound", "category", "badge"].contains) else {
            throw Refusal(.fieldMissing, "An alert needs one of \"title\", \"titleKey\", \"body\" and \"bodyKey\".")
        }
        for (text, key) in [("title", "titleKey"), ("body", "bodyKey")] where values[text] != nil && values[key] != nil {
            throw Refusal(.fieldInvalid, "Say either \"\(text)\" or \"\(key)\".")
        }
        guard values["badge"] == nil || values["badge"] == Self.countedBadge else {
            throw Refusal(.fieldInvalid, "The field \"badge\" can be \"\(Self.countedBadge)\", or be left out.")
        }
        guard values.values.reduce(0, { $0 + $1.utf8.count }) <= Self.longestBytes else {
            throw Refusal(
                .fieldInvalid, "The texts may have \(Self.longestBytes) bytes together, so that there is room for a message."
            )
        }
    }

    package init?(document: [UInt8]) {
        guard let body = JSONValue(parsing: document), let text = try? AlertText(read: body) else { return nil }
        self = text
    }

    package var json: JSONValue {
        .object(values.sorted { $0.key < $1.key }.map { .init(name: $0.key, value: .string($0.value)) })
    }

    /// The value with which the server counts the number on the app's icon.
    private static let countedBadge = "auto"

    /// - Parameter badge: The number, if the alert uses the server's count; nil leaves the number on the icon unchanged.
    func notification(badge: Int?) -> APNsNotification {
        var alert = APNsNotification.alert().mutableContent()
        if let text = values["title"] { alert = alert.title(text) }
        if let key = values["titleKey"] { alert = alert.localizedTitle(key) }
        if let text = values["body"] { alert = alert.body(text) }
        if let key = values["bodyKey"] { alert = alert.localizedBody(key) }
        if let name = values["sound"] { alert = alert.sound(name) }
        if let name = values["category"] { alert = alert.category(name) }
        if values["badge"] != nil, let badge { alert = alert.badge(badge) }
        return alert
    }
}
