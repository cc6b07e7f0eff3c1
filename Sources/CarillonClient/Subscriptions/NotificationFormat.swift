import CarillonBasics
import CarillonWire

/// The notification that a subscription shows when it fires.
///
/// Texts can contain placeholders, which the server replaces: `${price}`, `$[1]`, `${item}`, `${update.time}`,
/// `${subscription.id}`, `${subscription.key}`, and `${{ price * 2.0 | number(2) }}`. `$${` stands for the characters `${`. The
/// whole format has up to 8,192 bytes.
///
/// ```swift
/// var format = NotificationFormat(title: "${item}", body: "now at ${{ price | currency(EUR) }}")
/// format.badge = .automatic
/// ```
public struct NotificationFormat: Equatable, Sendable {
    /// The number on the app's icon.
    public enum Badge: Equatable, Sendable {
        /// The server counts the notifications of the device, over all its subscriptions.
        case automatic
        case number(Int)
        /// A text that is a number after its placeholders are replaced.
        case text(String)
    }

    /// The interruption level of the notification.
    public enum InterruptionLevel: String, Sendable, CaseIterable {
        case passive
        case active
        case timeSensitive = "time-sensitive"
        case critical
    }

    /// A value for the app's own use.
    public indirect enum Value: Equatable, Sendable {
        case null
        case flag(Bool)
        case integer(Int)
        case number(Double)
        /// Can contain placeholders.
        case text(String)
        case list([Value])
        case object([String: Value])
    }

    /// All members, also those that this version does not know.
    private(set) var json: JSONValue

    /// Makes a format with these texts. Each can contain placeholders.
    public init(title: String? = nil, subtitle: String? = nil, body: String? = nil) {
        json = .object([])
        self.title = title
        self.subtitle = subtitle
        self.body = body
    }

    init(json: JSONValue) {
        if case .object(let members) = json {
            self.json = .object(members.filter { $0.value != .null })
        } else {
            self.json = .object([])
        }
    }

    /// Makes a format from the server's JSON form.
    ///
    /// - Returns: Nil if the text is not a JSON object, or has a number beyond the range of `Double`.
    public init?(jsonText: String) {
        guard let json = JSONValue(parsing: Array(jsonText.utf8)), case .object = json else { return nil }
        self.init(json: json)
    }

    /// The server's JSON form.
    public var jsonText: String { String(decoding: json.bytes, as: UTF8.self) }

    // MARK: Alert

    /// The title.
    public var title: String? {
        get { text("title") }
        set { set("title", newValue) }
    }
    /// The text below the title.
    public var subtitle: String? {
        get { text("subtitle") }
        set { set("subtitle", newValue) }
    }
    /// The text of the alert.
    public var body: String? {
        get { text("body") }
        set { set("body", newValue) }
    }
    /// The key of a localised title in the app, in place of ``title``.
    public var titleKey: String? {
        get { text("titleKey") }
        set { set("titleKey", newValue) }
    }
    /// The arguments of the localised title.
    public var titleArguments: [String]? {
        get { texts("titleArguments") }
        set { set("titleArguments", newValue) }
    }
    /// The key of a localised subtitle in the app, in place of ``subtitle``.
    public var subtitleKey: String? {
        get { text("subtitleKey") }
        set { set("subtitleKey", newValue) }
    }
    /// The arguments of the localised subtitle.
    public var subtitleArguments: [String]? {
        get { texts("subtitleArguments") }
        set { set("subtitleArguments", newValue) }
    }
    /// The key of a localised text in the app, in place of ``body``.
    public var bodyKey: String? {
        get { text("bodyKey") }
        set { set("bodyKey", newValue) }
    }
    /// The arguments of the localised text.
    public var bodyArguments: [String]? {
        get { texts("bodyArguments") }
        set { set("bodyArguments", newValue) }
    }
    /// The name of the app's launch image, which is shown while the app starts.
    public var launchImage: String? {
        get { text("launchImage") }
        set { set("launchImage", newValue) }
    }

    /// The number on the app's icon; nil does not change it.
    public var badge: Badge? {
        get {
            switch json["badge"] {
            case .string("auto"): .automatic
            case .string(let text): .text(text)
            case .integer(let number): .number(number)
            default: nil
            }
        }
        set {
            switch newValue {
            case nil: set("badge", value: nil)
            case .automatic: set("badge", "auto")
            case .number(let number): set("badge", value: .integer(number))
            case .text(let text): set("badge", text)
            }
        }
    }

    /// The name of a sound; `default` is the system's.
    public var sound: String? {
        get { if case .string(let name)? = json["sound"]?["name"] { name } else { text("sound") } }
        set { set("sound", newValue) }
    }

    /// Sets a sound that is played also while the device is muted, with a volume from 0 to 1. The app needs Apple's entitlement
    /// for critical alerts.
    public mutating func setCriticalSound(_ name: String, volume: Double) {
        set(
            "sound",
            value: .object([
                .init(name: "name", value: .string(name)), .init(name: "critical", value: .bool(true)),
                .init(name: "volume", value: .number(volume)),
            ]))
    }

    // MARK: Delivery

    /// The notification category that the app registered with its actions.
    public var category: String? {
        get { text("category") }
        set { set("category", newValue) }
    }
    /// The thread that groups this notification with others.
    public var thread: String? {
        get { text("thread") }
        set { set("thread", newValue) }
    }
    /// The collapse key. A later notification with the same key replaces this one.
    public var collapse: String? {
        get { text("collapse") }
        set { set("collapse", newValue) }
    }
    /// The identifier of the window that is brought forward.
    public var targetContent: String? {
        get { text("targetContent") }
        set { set("targetContent", newValue) }
    }
    /// The value by which a Focus filters the notification.
    public var filterCriteria: String? {
        get { text("filterCriteria") }
        set { set("filterCriteria", newValue) }
    }
    /// Whether the notification wakes the app as well.
    public var isContentAvailable: Bool {
        get { json["contentAvailable"] == .bool(true) }
        set { set("contentAvailable", value: newValue ? .bool(true) : nil) }
    }
    /// Whether the app's notification service extension can change the notification.
    public var isMutableContent: Bool {
        get { json["mutableContent"] == .bool(true) }
        set { set("mutableContent", value: newValue ? .bool(true) : nil) }
    }
    /// The interruption level; nil also for a level that this version does not know.
    public var interruptionLevel: InterruptionLevel? {
        get { text("interruptionLevel").flatMap(InterruptionLevel.init) }
        set { set("interruptionLevel", newValue?.rawValue) }
    }
    /// The rank of the notification in a summary, from 0 to 1.
    public var relevance: Double? {
        get {
            switch json["relevance"] {
            case .integer(let number): Double(number)
            case .number(let number): number
            default: nil
            }
        }
        set { set("relevance", value: newValue.map { .number($0) }) }
    }
    /// Values for the app's own use, beside Apple's.
    public var custom: [String: Value] {
        get { if let custom = json["custom"], case .object(let values) = Value(custom) { values } else { [:] } }
        set { set("custom", value: newValue.isEmpty ? nil : Value.object(newValue).json) }
    }
    /// How long the notification waits for the device; nil is a week.
    public var lifetime: Duration? {
        get { if case .integer(let seconds)? = json["ttl"] { .seconds(seconds) } else { nil } }
        set { set("ttl", value: newValue.map { .integer(Int($0.components.seconds)) }) }
    }
    /// Whether the notification is encrypted on its way through Apple's push service. That service sees only the app's general
    /// alert text. The app's notification service extension shows the notification instead (`CarillonNotification`). This needs
    /// ``PushClient/Configuration/sharedDirectory``.
    public var isPrivate: Bool {
        get { json["private"] != nil }
        set { set("private", value: newValue ? .bool(true) : nil) }
    }
    /// Returns the format with the keys for which it is encrypted.
    func sealed(for keys: PrivateKeys) -> NotificationFormat {
        var format = self
        format.set("private", value: keys.json)
        return format
    }
    /// Whether the notification is pushed at once, also if the device is connected and acknowledges it.
    public var isAlwaysPushed: Bool {
        get { json["route"] == .string("always") }
        set { set("route", newValue ? "always" : nil) }
    }
    /// Whether the notification can be delayed to save the battery.
    public var considersPower: Bool {
        get { json["priority"] == .string("considerPower") }
        set { set("priority", newValue ? "considerPower" : nil) }
    }

    // MARK: Members

    private func text(_ name: String) -> String? { if case .string(let text)? = json[name] { text } else { nil } }

    private func texts(_ name: String) -> [String]? {
        guard case .array(let values)? = json[name] else { return nil }
        return values.compactMap { if case .string(let text) = $0 { text } else { nil } }
    }

    private mutating func set(_ name: String, _ text: String?) { set(name, value: text.map { .string($0) }) }

    private mutating func set(_ name: String, _ texts: [String]?) {
        set(name, value: texts.map { .array($0.map { .string($0) }) })
    }

    private mutating func set(_ name: String, value: JSONValue?) {
        guard case .object(var members) = json else { return }
        members.removeAll { $0.name == name }
        if let value { members.append(.init(name: name, value: value)) }
        // Sorted, so that formats are equal if their members are, in any order of the calls.
        json = .object(members.sorted { $0.name < $1.name })
    }

    public static func == (one: Self, other: Self) -> Bool {
        SubscriptionHash.text(of: one.json) == SubscriptionHash.text(of: other.json)
    }
}

extension NotificationFormat.Value {
    init(_ json: JSONValue) {
        switch json {
        case .null: self = .null
        case .bool(let value): self = .flag(value)
        case .integer(let number): self = .integer(number)
        case .number(let number): self = .number(number)
        case .string(let text): self = .text(text)
        case .array(let values): self = .list(values.map(Self.init))
        case .object(let members):
            self = .object(Dictionary(members.map { ($0.name, Self($0.value)) }, uniquingKeysWith: { $1 }))
        }
    }

    var json: JSONValue {
        switch self {
        case .null: .null
        case .flag(let value): .bool(value)
        case .integer(let number): .integer(number)
        case .number(let number): .number(number)
        case .text(let text): .string(text)
        case .list(let values): .array(values.map(\.json))
        case .object(let values):
            .object(values.sorted { $0.key < $1.key }.map { .init(name: $0.key, value: $0.value.json) })
        }
    }
}
