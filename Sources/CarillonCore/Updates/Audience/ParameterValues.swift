package import CarillonBasics
import CarillonExpression
package import CarillonWire

/// The parameter values that a device reports. A value that the device does not report is missing; no type has a default value.
package struct ParameterValues: Equatable, Sendable {
    /// The values by name, as in ``json``.
    package private(set) var values: [String: JSONValue] = [:]

    package init() {}

    /// - Throws: ``Refusal`` with the name of a parameter that is not declared, or whose value does not have the declared type.
    package init(_ json: JSONValue, by rules: ParameterRules) throws(Refusal) {
        guard case .object(let members) = json else { throw Refusal(.fieldInvalid, "\"values\" must be an object.") }
        for member in members where member.value != .null {
            guard let type = rules.parameters[member.name] else {
                let known = rules.parameters.keys.sorted().joined(separator: ", ")
                throw Refusal(
                    .fieldUnknown,
                    "The app declares no parameter \"\(member.name.prefix(60))\"; the declared parameters are: \(known).")
            }
            guard let value = Self.value(member.value, of: type) else {
                throw Refusal(.fieldInvalid, "The parameter \"\(member.name)\" must be \(type.wanted).")
            }
            guard values.updateValue(value, forKey: member.name) == nil else {
                throw Refusal(.fieldInvalid, "The parameter \"\(member.name)\" appears twice.")
            }
        }
        guard self.json.bytes.count <= ParameterRules.mostBytes else {
            throw Refusal(.fieldInvalid, "The parameters must have at most \(ParameterRules.mostBytes) bytes as JSON.")
        }
    }

    /// Restores values from the store, which keeps locations separately.
    package init(stored texts: [UInt8]...) {
        for text in texts {
            guard case .object(let members)? = JSONValue(parsing: text) else { continue }
            for member in members { values[member.name] = member.value }
        }
    }

    package var locations: ParameterValues { filtered(\.isObject) }
    package var withoutLocations: ParameterValues { filtered { !$0.isObject } }

    private func filtered(_ isWanted: (JSONValue) -> Bool) -> ParameterValues {
        var some = self
        some.values = values.filter { isWanted($0.value) }
        return some
    }

    package var json: JSONValue {
        .object(values.sorted { $0.key < $1.key }.map { .init(name: $0.key, value: $0.value) })
    }

    package var hasLocation: Bool { values.values.contains(where: \.isObject) }

    private static func value(_ json: JSONValue, of type: ParameterRules.ParameterType) -> JSONValue? {
        switch (type, json) {
        case (.string, .string(let text)): return text.utf8.count <= ParameterRules.mostTextBytes ? json : nil
        case (.int, .integer), (.double, .integer), (.double, .number), (.bool, .bool): return json
        case (.timestamp, .string(let text)): return Timestamp3339.milliseconds(text).map { .string(Timestamp3339.text($0)) }
        case (.strings, .array(let elements)) where elements.count <= ParameterRules.mostElements:
            let areTexts = elements.allSatisfy { element in
                if case .string(let text) = element { text.utf8.count <= ParameterRules.mostTextBytes } else { false }
            }
            return areTexts ? json : nil
        case (.location, .object): return location(json)
        default: return nil
        }
    }

    /// Returns a location rounded to a hundredth of a degree, which is about a kilometre. The exact location is never stored.
    private static func location(_ json: JSONValue) -> JSONValue? {
        guard json.names == ["latitude", "longitude"], let latitude = json["latitude"]?.double,
            let longitude = json["longitude"]?.double, (-90...90).contains(latitude), (-180...180).contains(longitude)
        else { return nil }
        func rounded(_ value: Double) -> JSONValue { .number((value * 100).rounded() / 100) }
        return ["latitude": rounded(latitude), "longitude": rounded(longitude)]
    }

    func value(_ name: String, as type: ParameterRules.ParameterType) -> ExpressionValue? {
        switch (type, values[name]) {
        case (.string, .string(let text)?): return .string(text)
        case (.int, .integer(let number)?): return .int(Int64(number))
        case (.double, let number?): return number.double.map { .double($0) }
        case (.bool, .bool(let truth)?): return .bool(truth)
        case (.timestamp, .string(let text)?):
            return Timestamp3339.milliseconds(text).flatMap(ExpressionTimestamp.init(milliseconds:)).map { .timestamp($0) }
        case (.strings, .array(let elements)?):
            return .list(elements.compactMap { if case .string(let text) = $0 { .string(text) } else { nil } })
        case (.location, let place?):
            guard let latitude = place["latitude"]?.double, let longitude = place["longitude"]?.double else { return nil }
            var map = ExpressionMap()
            _ = map.insert(.double(latitude), for: .string("latitude"))
            _ = map.insert(.double(longitude), for: .string("longitude"))
            return .map(map)
        default: return nil
        }
    }
}

extension ParameterRules.ParameterType {
    fileprivate var wanted: String {
        switch self {
        case .string: "a text of at most \(ParameterRules.mostTextBytes) bytes"
        case .int: "a whole number"
        case .double: "a number"
        case .bool: "true or false"
        case .timestamp: "a time such as 2026-01-31T12:00:00.000Z"
        case .strings:
            "a list of at most \(ParameterRules.mostElements) texts of at most \(ParameterRules.mostTextBytes) bytes"
        case .location: "an object with \"latitude\" and \"longitude\" in degrees"
        }
    }
}

extension JSONValue {
    /// Whether the value is an object. Only locations are objects.
    fileprivate var isObject: Bool { if case .object = self { true } else { false } }

    fileprivate var double: Double? {
        switch self {
        case .integer(let number): Double(number)
        case .number(let number): number
        default: nil
        }
    }
}
