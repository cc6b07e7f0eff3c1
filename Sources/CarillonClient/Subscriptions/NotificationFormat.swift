import CarillonBasics
import CarillonWire

/// What a subscription shows when it fires.
///
/// Texts may have placeholders, which the server fills in: `${price}`, `$[1]`, `${item}`, `${update.time}`, `${subscription.id}`,
/// `${subscription.key}`, and `${{ price * 2.0 | number(2) }}`; `$${` is the sign itself. The whole may have 8,192 bytes.
///
/// ```swift
/// var format = NotificationFormat(title: "${item}", body: "now at ${{ price | currency(EUR) }}")
/// format.badge = .automatic
/// ```
public struct NotificationFormat: Equatable, Sendable {
    /// The number on the app's icon.
    public enum Badge: Equatable, Sendable {
        /// The server counts for the device, over all its subscriptions.
        case automatic
        case number(Int)
        /// A number once its placeholders are filled in.
        case text(String)
    }

    /// How much the notification disturbs.
    public enum InterruptionLevel: String, Sendable, CaseIterable {
        case passive
        case active
        case timeSensitive = "time-sensitive"
        case critical
    }

    /// A value of the app's own.
    public indirect enum Value: Equatable, Sendable {
        case null
        case flag(Bool)
        case integer(Int)
        case number(Double)
        /// May have placeholders.
        case text(String)
        case list([Value])
        case object([String: Value])
    }

    /// All that there is, also what this version does not know.
    private(set) var json: JSONValue

    /// A format with these texts, of which each may have placeholders.
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

    /// A format as the server has it.
    ///
    /// - Returns: Nil for a text that is no JSON object, or that has a number beyond the range of `Double`.
    public init?(jsonText: String) {
        guard let json = JSONValue(parsing: Array(jsonText.utf8)), case .object = json else { return nil }
        self.init(json: json)
    }

    /// As the server has it.
    public var jsonText: String { String(decoding: json.bytes, as: UTF8.self) }

    // MARK: What is shown

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
    /// The text.
    public var body: String? {
        get { text("body") }
        set { set("body", newValue) }
    }
    /// A title that the app has in its own language; in place of ``title``.
    public var titleKey: String? {
        get { text("titleKey") }
        set { set("titleKey", newValue) }
    }
    /// What stands in it.
    public var titleArguments: [String]? {
        get { texts("titleArguments") }
        set { set("titleArguments", newValue) }
    }
    /// A subtitle that the app has in its own language; in place of ``subtitle``.
    public var subtitleKey: String? {
        get { text("subtitleKey") }
        set { set("subtitleKey", newValue) }
    }
    /// What stands in it.
    public var subtitleArguments: [String]? {
        get { texts("subtitleArguments") }
        set { set("subtitleArguments", newValue) }
    }
    /// A text that the app has in its own language; in place of ``body``.
    public var bodyKey: String? {
        get { text("bodyKey") }
        set { set("bodyKey", newValue) }
    }
    /// What stands in it.
    public var bodyArguments: [String]? {
        get { texts("bodyArguments") }
        set { set("bodyArguments", newValue) }
    }
    /// The picture of the app's that is shown while it starts.
    public var launchImage: String? {
        get { text("launchImage") }
        set { set("launchImage", newValue) }
    }

    /// The number on the app's icon; nil leaves it.
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

    /// A sound's name; `default` is the system's.
    public var sound: String? {
        get { if case .string(let name)? = json["sound"]?["name"] { name } else { text("sound") } }
        set { set("sound", newValue) }
    }

    /// A sound that is heard also while the device is muted, as loud as this from 0 to 1. The app needs Apple's leave for it.
    public mutating func setCriticalSound(_ name: String, volume: Double) {
        set(
            "sound",
            value: .object([
                .init(name: "name", value: .string(name)), .init(name: "critical", value: .bool(true)),
                .init(name: "volume", value: .number(volume)),
            ]))
    }

    // MARK: What goes with it

    /// The category, whose actions the app has.
    public var category: String? {
        get { text("category") }
        set { set("category", newValue) }
    }
    /// The group of notifications that this one stands in.
    public var thread: String? {
        get { text("thread") }
        set { set("thread", newValue) }
    }
    /// A later notification with the same takes this one's place.
    public var collapse: String? {
        get { text("collapse") }
        set { set("collapse", newValue) }
    }
    /// The window that is brought forward.
    public var targetContent: String? {
        get { text("targetContent") }
        set { set("targetContent", newValue) }
    }
    /// What a Focus decides by.
    public var filterCriteria: String? {
        get { text("filterCriteria") }
        set { set("filterCriteria", newValue) }
    }
    /// Whether the app is woken as well.
    public var isContentAvailable: Bool {
        get { json["contentAvailable"] == .bool(true) }
        set { set("contentAvailable", value: newValue ? .bool(true) : nil) }
    }
    /// Whether the app's notification service extension may change it.
    public var isMutableContent: Bool {
        get { json["mutableContent"] == .bool(true) }
        set { set("mutableContent", value: newValue ? .bool(true) : nil) }
    }
    /// How much it disturbs; nil also for a level that this version does not know.
    public var interruptionLevel: InterruptionLevel? {
        get { text("interruptionLevel").flatMap(InterruptionLevel.init) }
        set { set("interruptionLevel", newValue?.rawValue) }
    }
    /// How it stands in a summary, from 0 to 1.
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
    /// Values of the app's own, beside Apple's.
    public var custom: [String: Value] {
        get { if let custom = json["custom"], case .object(let values) = Value(custom) { values } else { [:] } }
        set { set("custom", value: newValue.isEmpty ? nil : Value.object(newValue).json) }
    }
    /// How long the notification waits for the device; nil is a week.
    public var lifetime: Duration? {
        get { if case .integer(let seconds)? = json["ttl"] { .seconds(seconds) } else { nil } }
        set { set("ttl", value: newValue.map { .integer(Int($0.components.seconds)) }) }
    }
    /// Whether it travels encrypted through Apple's service: there the app's own alert text is seen, and the app's notification service
    /// extension shows this instead (`CarillonNotification`). It needs ``PushClient/Configuration/sharedDirectory``.
    public var isPrivate: Bool {
        get { json["private"] != nil }
        set { set("private", value: newValue ? .bool(true) : nil) }
    }
    /// With the keys for which it is encrypted.
    func sealed(for keys: PrivateKeys) -> NotificationFormat {
        var format = self
        format.set("private", value: keys.json)
        return format
    }
    /// Whether it is pushed at once, also to a device that is connected, whatever that acknowledges.
    public var isAlwaysPushed: Bool {
        get { json["route"] == .string("always") }
        set { set("route", newValue ? "always" : nil) }
    }
    /// Whether it may come later to save the battery.
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
        // In one order, so that equal formats are equal however they were made.
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
