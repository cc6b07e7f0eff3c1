package import CarillonBasics
package import CarillonExpression
package import CarillonWire

/// An app's rules for items: the items that devices may subscribe to, the effect of updates, and the types of fields. The first
/// rule whose pattern matches an item applies.
package struct ItemRules: Equatable, Sendable {
    package struct Rule: Equatable, Sendable {
        /// A pattern for names of items; `*` matches any text.
        package let pattern: String
        fileprivate let patternBytes: [UInt8]
        package var mode = ItemState.Mode.merge
        package var isOpen = false
        package var fields: [String: Field] = [:]
        /// An item without a subscription is deleted after so many seconds without an update; nil keeps it.
        package var idleSeconds: Int?

        fileprivate init(_ pattern: String) {
            self.pattern = pattern
            patternBytes = Array(pattern.utf8)
        }
    }

    package struct Field: Equatable, Sendable {
        package var type: FieldType
        /// The largest text in bytes; nil for ``ItemLimits/valueBytes``.
        package var maxBytes: Int?

        package init(_ type: FieldType, maxBytes: Int? = nil) {
            self.type = type
            self.maxBytes = maxBytes
        }
    }

    /// The type of a field that accepts only values of this type.
    package enum FieldType: String, CaseIterable, Sendable {
        case double, int, uint, string, bool, timestamp

        package var type: ExpressionType {
            switch self {
            case .double: .double
            case .int: .int
            case .uint: .uint
            case .string: .string
            case .bool: .bool
            case .timestamp: .timestamp
            }
        }
    }

    package private(set) var rules: [Rule] = []
    /// The cost limit of a device's condition, in units of the language.
    package private(set) var conditionCost = standardCost
    /// The functions that conditions of devices and expressions of formats may call; nil for all.
    package private(set) var functions: Set<String>?
    /// The operators that they may use; nil for all.
    package private(set) var operators: Set<String>?
    /// The names that they may use, as in ``ItemVocabulary``; nil for all.
    package private(set) var names: Set<String>?
    /// The largest number of subscriptions of one device.
    package private(set) var subscriptionsPerDevice = 1000

    package static let standardCost = 1000
    package static let mostRules = 100
    private static let mostNames = 1000
    package static let memberNames: Set = [
        "items", "conditionCost", "conditionFunctions", "conditionOperators", "conditionNames", "subscriptionsPerDevice",
    ]
    private static let ruleNames: Set = ["pattern", "mode", "open", "fields", "idleSeconds"]

    /// The rules of an app that has set none: all its items are closed.
    package init() {}

    /// - Parameter body: An object that has only known members.
    package init(_ body: JSONValue) throws(Refusal) {
        switch body["items"] {
        case nil, .null: break
        case .array(let rules) where rules.count <= Self.mostRules:
            for rule in rules { self.rules.append(try Self.rule(rule)) }
        default: throw Self.refusal("\"items\" must be a list of at most \(Self.mostRules) rules")
        }
        conditionCost = try Self.number("conditionCost", in: body, 1...Self.mostCost) ?? conditionCost
        functions = try Self.texts("conditionFunctions", in: body)
        if let unknown = functions?.subtracting(ItemVocabulary.allFunctions).min() {
            throw Self.refusal(
                "there is no function \"\(unknown.prefix(60))\"; the known functions are: \(ItemVocabulary.allFunctions.joined(separator: ", "))"
            )
        }
        operators = try Self.texts("conditionOperators", in: body)
        if let unknown = operators?.subtracting(ItemVocabulary.allOperators).min() {
            throw Self.refusal(
                "there is no operator \"\(unknown.prefix(60))\"; the known operators are: \(ItemVocabulary.allOperators.joined(separator: " "))"
            )
        }
        names = try Self.texts("conditionNames", in: body)
        subscriptionsPerDevice =
            try Self.number("subscriptionsPerDevice", in: body, 1...Self.mostSubscriptions) ?? subscriptionsPerDevice
    }

    private static func texts(_ name: String, in body: JSONValue) throws(Refusal) -> Set<String>? {
        switch body[name] {
        case nil, .null: return nil
        case .array(let values) where values.count <= mostNames:
            let texts = values.compactMap { value in
                if case .string(let text) = value, (1...ItemLimits.fieldNameBytes).contains(text.utf8.count) {
                    text
                } else {
                    nil
                }
            }
            if texts.count == values.count { return Set(texts) }
            fallthrough
        default: throw refusal("\"\(name)\" must be a list of at most \(mostNames) names")
        }
    }

    /// Returns why an expression is not allowed, as a part of a sentence; nil if it is allowed.
    package func objection(to vocabulary: ItemVocabulary) -> String? {
        if let functions, let other = vocabulary.functions.subtracting(functions).min() {
            return "calls \"\(other)\"; the allowed functions are \(Self.list(functions))"
        }
        if let operators, let other = vocabulary.operators.subtracting(operators).min() {
            return "uses the operator \(other); the allowed operators are \(Self.list(operators))"
        }
        let spoken =
            names?.contains("fields") == true
            ? vocabulary.names.intersection(ItemVocabulary.ownNames) : vocabulary.names
        if let names, let other = spoken.subtracting(names).min() {
            let what = other == "fields" ? "any field" : "\"\(other)\""
            return "uses \(what); the allowed fields are \(Self.list(names))"
        }
        return nil
    }

    private static func list(_ names: Set<String>) -> String {
        names.isEmpty ? "nothing" : "these: " + names.sorted().prefix(50).joined(separator: ", ")
    }

    /// The highest cost limit that an app can set.
    package static let mostCost = 10_000
    private static let mostSubscriptions = 10_000
    private static let idleSeconds = 60...31_536_000

    private static func number(_ name: String, in body: JSONValue, _ range: ClosedRange<Int>) throws(Refusal) -> Int? {
        switch body[name] {
        case nil, .null: return nil
        case .integer(let number) where range.contains(number): return number
        default: throw refusal("\"\(name)\" must be a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
    }

    private static func rule(_ body: JSONValue) throws(Refusal) -> Rule {
        if let unknown = body.names.subtracting(ruleNames).min() {
            throw refusal(
                "\"\(unknown.prefix(60))\" is unknown; the known members are: \(ruleNames.sorted().joined(separator: ", "))")
        }
        guard case .string(let pattern)? = body["pattern"], ItemName(pattern) != nil else {
            throw refusal("a rule needs a \"pattern\" of at most \(ItemName.longestBytes) bytes")
        }
        var rule = Rule(pattern)
        switch body["mode"] {
        case nil: break
        case .string(let name):
            guard let mode = ItemState.Mode(rawValue: name) else {
                throw refusal("\"mode\" must be \"merge\" or \"distinct\"")
            }
            rule.mode = mode
        default: throw refusal("\"mode\" must be \"merge\" or \"distinct\"")
        }
        switch body["open"] {
        case nil: break
        case .bool(let isOpen): rule.isOpen = isOpen
        default: throw refusal("\"open\" must be true or false")
        }
        rule.idleSeconds = try number("idleSeconds", in: body, idleSeconds)
        guard let fields = body["fields"] else { return rule }
        guard case .object(let members) = fields, members.count <= ItemLimits.fields else {
            throw refusal("\"fields\" must name the types of at most \(ItemLimits.fields) fields")
        }
        for member in members {
            guard (1...ItemLimits.fieldNameBytes).contains(member.name.utf8.count) else {
                throw refusal("the name of a field must have 1 to \(ItemLimits.fieldNameBytes) bytes")
            }
            rule.fields[member.name] = try field(member.value, "\"\(member.name.prefix(60))\"")
        }
        return rule
    }

    /// - Parameter body: The name of a type, or an object.
    private static func field(_ body: JSONValue, _ name: String) throws(Refusal) -> Field {
        if case .object = body, let unknown = body.names.subtracting(fieldMembers).min() {
            throw refusal("\"\(unknown.prefix(60))\" of the field \(name) is unknown; the known members are: type, maxBytes")
        }
        let named: JSONValue? = if case .object = body { body["type"] } else { body }
        guard case .string(let text)? = named, let type = FieldType(rawValue: text) else {
            let known = FieldType.allCases.map(\.rawValue).joined(separator: ", ")
            throw refusal("the type of \(name) must be one of: \(known)")
        }
        guard case .object = body, let limit = body["maxBytes"] else { return Field(type) }
        guard type == .string, case .integer(let bytes) = limit, (1...ItemLimits.valueBytes).contains(bytes) else {
            throw refusal(
                "\"maxBytes\" of \(name) must be a whole number from 1 to \(ItemLimits.valueBytes), and the type of \(name) must be string"
            )
        }
        return Field(type, maxBytes: bytes)
    }

    private static let fieldMembers: Set = ["type", "maxBytes"]

    private static func refusal(_ why: String) -> Refusal {
        Refusal(.itemRulesInvalid, "The item rules are not valid: \(why).")
    }

    /// The rules in the form that ``init(_:)`` reads.
    package var json: JSONValue {
        let rules = rules.map { rule -> JSONValue in
            let fields = rule.fields.sorted { $0.key < $1.key }.map { name, field in
                JSONValue.Member(name: name, value: field.json)
            }
            return [
                "pattern": .string(rule.pattern), "mode": .string(rule.mode.rawValue), "open": .bool(rule.isOpen),
                "fields": .object(fields), "idleSeconds": rule.idleSeconds.map(JSONValue.integer),
            ]
        }
        func list(_ texts: Set<String>?) -> JSONValue? { texts.map { .array($0.sorted().map(JSONValue.string)) } }
        return [
            "items": .array(rules), "conditionCost": .integer(conditionCost),
            "subscriptionsPerDevice": .integer(subscriptionsPerDevice), "conditionFunctions": list(functions),
            "conditionOperators": list(operators), "conditionNames": list(names),
        ]
    }

    /// Returns the rule for an item. If no pattern matches, the item is closed and has the mode `merge`.
    package func rule(for item: ItemName) -> Rule {
        let name = Array(item.text.utf8)
        return rules.first { Self.fits($0.patternBytes, name) } ?? Rule(item.text)
    }

    /// Whether a pattern matches a text. The time is at most proportional to the product of both lengths.
    static func fits(_ pattern: [UInt8], _ text: [UInt8]) -> Bool {
        var (place, at) = (0, 0)
        var star: (place: Int, at: Int)?
        while at < text.count {
            if place < pattern.count, pattern[place] == UInt8(ascii: "*") {
                star = (place, at)
                place += 1
            } else if place < pattern.count, pattern[place] == text[at] {
                place += 1
                at += 1
            } else if let last = star {
                star = (last.place, last.at + 1)
                place = last.place + 1
                at = last.at + 1
            } else {
                return false
            }
        }
        return pattern[place...].allSatisfy { $0 == UInt8(ascii: "*") }
    }
}

extension ItemRules.Field {
    fileprivate var json: JSONValue {
        guard let maxBytes else { return .string(type.rawValue) }
        return ["type": .string(type.rawValue), "maxBytes": .integer(maxBytes)]
    }
}
