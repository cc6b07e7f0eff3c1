import CarillonBasics
import CarillonCore
import CarillonExpression
import CarillonWire

/// Reads an item subscription from JSON: complete, or as a merge patch (RFC 7396) of the members that can change while it is
/// active.
extension Subscription.Definition {
    static let memberNames: Set = [
        "items", "fields", "mode", "trigger", "format", "policy", "coolDown", "maxFrequency", "bufferSize", "key",
        "tags", "expiresAt",
    ]
    static let changeableNames: Set = [
        "trigger", "format", "policy", "coolDown", "maxFrequency", "bufferSize", "tags", "expiresAt",
    ]

    /// - Parameter body: An object without unknown members.
    init(_ body: JSONValue) throws(Refusal) {
        guard let format = body["format"] else { throw Refusal(.fieldMissing, "The field \"format\" is missing.") }
        self.init(
            items: try Self.items(body["items"]), fields: try Self.fields(body["fields"]),
            format: try NotificationFormat(format))
        if let name = try body.textMember("mode") {
            guard let mode = ItemState.Mode(rawValue: name) else {
                throw Refusal(.fieldInvalid, "The field \"mode\" can be: merge, distinct.")
            }
            self.mode = mode
        }
        if let key = try body.textMember("key") {
            guard (1...SubscriptionLimits.keyBytes).contains(key.utf8.count) else {
                throw Refusal(.fieldInvalid, "A key may have 1 to \(SubscriptionLimits.keyBytes) bytes.")
            }
            self.key = key
        }
        try merge(body)
    }

    /// Sets the default policy: a subscription without a trigger fires with each update, one with a trigger fires once.
    private mutating func followTrigger() { if trigger == nil, policy == .once { policy = .every(coolDownSeconds: 0) } }

    mutating func merge(_ patch: JSONValue) throws(Refusal) {
        switch patch["trigger"] {
        case nil: break
        case .null, .string(""): trigger = nil
        case .string(let text) where text.utf8.count <= SubscriptionLimits.triggerBytes: trigger = text
        default:
            throw Refusal(.fieldInvalid, "A trigger is a text of at most \(SubscriptionLimits.triggerBytes) bytes.")
        }
        if let json = patch["format"] { format = try NotificationFormat(json) }
        if patch["policy"] == nil || patch["policy"] == .null { followTrigger() }
        try mergePolicy(patch)
        try mergePace(patch)
        switch patch["tags"] {
        case nil: break
        case .null: tags = []
        case let value?:
            tags = try Self.texts(value, "tags", atMost: SubscriptionLimits.tags, bytes: SubscriptionLimits.tagBytes)
        }
        switch patch["expiresAt"] {
        case nil: break
        case .null: expiresAt = nil
        case .string(let text):
            guard let time = ExpressionTimestamp(text) else { fallthrough }
            expiresAt = Timestamp(milliseconds: time.seconds * 1000 + Int64(time.nanoseconds) / 1_000_000)
        default: throw Refusal(.fieldInvalid, "The field \"expiresAt\" must be a time as 2026-01-31T12:00:00Z.")
        }
    }

    private mutating func mergePolicy(_ patch: JSONValue) throws(Refusal) {
        var coolDown: Int64 = if case .every(let seconds) = policy { seconds } else { 0 }
        switch patch["coolDown"] {
        case nil: break
        case .null: coolDown = 0
        case .integer(let seconds) where seconds >= 0 && Int64(seconds) <= SubscriptionLimits.coolDownSeconds:
            coolDown = Int64(seconds)
        default:
            throw Refusal(
                .fieldInvalid,
                "The field \"coolDown\" is a number of seconds, \(SubscriptionLimits.coolDownSeconds) at most.")
        }
        switch try patch.textMember("policy") {
        case nil: if case .every = policy { policy = .every(coolDownSeconds: coolDown) }
        case "once": policy = .once
        case "everyCrossing": policy = .everyCrossing
        case "every": policy = .every(coolDownSeconds: coolDown)
        default: throw Refusal(.fieldInvalid, "The field \"policy\" can be: once, everyCrossing, every.")
        }
        if coolDown > 0, case .every = policy { return }
        guard coolDown == 0 || patch["coolDown"] == nil || patch["coolDown"] == .null else {
            throw Refusal(.fieldInvalid, "The field \"coolDown\" is that of the policy \"every\".")
        }
    }

    private mutating func mergePace(_ patch: JSONValue) throws(Refusal) {
        let frequency: Double? =
            switch patch["maxFrequency"] {
            case nil: pace?.maxFrequency
            case .null: nil
            case .integer(let number): Double(number)
            case .number(let number): number
            default: .nan
            }
        guard frequency.map(FiringPace.frequencies.contains) ?? true else {
            throw Refusal(
                .fieldInvalid, "The field \"maxFrequency\" is a number of firings a second, from 0.00001 to 1000.")
        }
        var buffer = pace?.bufferSize
        switch patch["bufferSize"] {
        case nil: break
        case .null: buffer = nil
        case .integer(let number) where (1...FiringPace.largestBuffer).contains(number): buffer = number
        default:
            throw Refusal(
                .fieldInvalid, "The field \"bufferSize\" is a number of firings, from 1 to \(FiringPace.largestBuffer).")
        }
        pace = frequency.map { FiringPace(maxFrequency: $0, bufferSize: buffer) }
        if pace == nil, case .integer? = patch["bufferSize"] {
            throw Refusal(.fieldInvalid, "The field \"bufferSize\" is that of a \"maxFrequency\".")
        }
    }

    private static func items(_ value: JSONValue?) throws(Refusal) -> [ItemName] {
        guard let value else { throw Refusal(.fieldMissing, "The field \"items\" is missing.") }
        var items: [ItemName] = []
        for text in try texts(value, "items", atMost: SubscriptionLimits.items, bytes: ItemName.longestBytes) {
            items.append(try ItemName.checked(text))
        }
        return items
    }

    private static func fields(_ value: JSONValue?) throws(Refusal) -> [String] {
        guard let value else { throw Refusal(.fieldMissing, "The field \"fields\" is missing.") }
        return try texts(value, "fields", atMost: ItemLimits.fields, bytes: ItemLimits.fieldNameBytes)
    }

    private static func texts(
        _ value: JSONValue, _ name: String, atMost limit: Int, bytes: Int
    ) throws(Refusal) -> [String] {
        let refusal = Refusal(
            .fieldInvalid, "The field \"\(name)\" must be a list of 1 to \(limit) different texts of at most \(bytes) bytes."
        )
        guard case .array(let values) = value, values.count <= limit, !values.isEmpty || name == "tags" else {
            throw refusal
        }
        var texts: [String] = []
        for value in values {
            guard case .string(let text) = value, (1...bytes).contains(text.utf8.count), !texts.contains(text) else {
                throw refusal
            }
            texts.append(text)
        }
        return texts
    }

    /// The definition in the form that ``init(_:)`` reads.
    var json: JSONValue {
        SubscriptionDocument.json(
            items: items.map(\.text), fields: fields, mode: mode?.rawValue, trigger: trigger, format: format.json,
            policy: policy.name, coolDown: policy.coolDown, maxFrequency: pace?.maxFrequency, bufferSize: pace?.bufferSize,
            key: key, tags: tags, expiresAt: expiresAt?.milliseconds)
    }

    var hash: String { SubscriptionHash.text(of: json) }
}

extension ItemName {
    static func checked(_ text: some StringProtocol) throws(Refusal) -> ItemName {
        guard let name = ItemName(text) else {
            throw Refusal(
                .fieldInvalid, "An item's name has 1 to \(longestBytes) bytes of UTF-8, and no control characters.")
        }
        return name
    }
}

extension SubscriptionMachine.Policy {
    fileprivate var name: String {
        switch self {
        case .once: "once"
        case .everyCrossing: "everyCrossing"
        case .every: "every"
        }
    }

    fileprivate var coolDown: Int64? {
        if case .every(let seconds) = self, seconds > 0 { seconds } else { nil }
    }
}

extension SubscriptionBody {
    init(_ subscription: Subscription) {
        let (definition, machine) = (subscription.definition, subscription.machine)
        self.init(
            id: subscription.id.description, items: definition.items.map(\.text), fields: definition.fields,
            mode: definition.mode?.rawValue, trigger: definition.trigger, format: definition.format.json,
            policy: definition.policy.name, coolDown: definition.policy.coolDown,
            maxFrequency: definition.pace?.maxFrequency, bufferSize: definition.pace?.bufferSize, key: definition.key,
            tags: definition.tags,
            expiresAt: definition.expiresAt.map { Timestamp3339.text($0.milliseconds) },
            status: machine.status.rawValue, statusAt: Timestamp3339.text(machine.statusAt.milliseconds),
            createdAt: Timestamp3339.text(subscription.createdAt.milliseconds),
            firedAt: machine.lastFiredAt.map { Timestamp3339.text($0.milliseconds) }, hash: definition.hash)
    }
}
