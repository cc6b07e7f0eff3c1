package import CarillonBasics

/// The parameters that an app reports for a device, under names that the app chose. Conditions of audiences refer to them.
package struct DeviceParameters: Equatable, Sendable {
    package enum Value: Equatable, Sendable {
        case bool(Bool)
        case integer(Int64)
        case number(Double)
        case text(String)
        case texts([String])
    }

    package static let most = 64
    package static let longestNameBytes = 64
    package static let longestTextBytes = 1024
    package static let mostTexts = 64
    /// The largest size of all parameters together, in bytes of JSON.
    package static let largestBytes = 8192

    package private(set) var values: [String: Value]

    package static let none = DeviceParameters()

    private init() { values = [:] }

    /// Reads the members of a JSON object.
    package init(_ value: JSONValue) throws(Refusal) {
        guard case .object(let members) = value else {
            throw Self.refusal("\"parameters\" must be an object of names and values.")
        }
        self = try Self.none.merging(.object(members))
    }

    /// Returns the parameters after a merge patch (RFC 7396). Null removes a parameter; an absent parameter is kept.
    package func merging(_ patch: JSONValue) throws(Refusal) -> DeviceParameters {
        guard case .object(let members) = patch else {
            throw Self.refusal("\"parameters\" must be an object of names and values, or null.")
        }
        var merged = self
        var names: Set<String> = []
        for member in members {
            guard names.insert(member.name).inserted else {
                throw Self.refusal("The parameter \"\(member.name.prefix(60))\" is there twice.")
            }
            merged.values[member.name] =
                member.value == .null ? nil : try Self.value(member.value, of: member.name)
        }
        try merged.check()
        return merged
    }

    /// The parameters as JSON, sorted by name. Equal parameters have equal bytes.
    package var json: [UInt8] {
        JSONWriter.object { writer in
            for (name, value) in values.sorted(by: { $0.key < $1.key }) {
                writer.key(untrusted: name)
                switch value {
                case .bool(let value): writer.value(.bool(value))
                case .integer(let value): writer.value(.integer(Int(value)))
                case .number(let value): writer.value(.number(value))
                case .text(let value): writer.value(.string(value))
                case .texts(let values): writer.value(.array(values.map(JSONValue.string)))
                }
            }
        }
    }

    private static func value(_ value: JSONValue, of name: String) throws(Refusal) -> Value {
        switch value {
        case .bool(let value): return .bool(value)
        case .integer(let value): return .integer(Int64(value))
        case .number(let value): return .number(value)
        case .string(let value): return .text(value)
        case .array(let elements):
            var texts: [String] = []
            for element in elements {
                guard case .string(let text) = element else { throw wrongType(name) }
                texts.append(text)
            }
            return .texts(texts)
        case .object, .null: throw wrongType(name)
        }
    }

    private static func wrongType(_ name: String) -> Refusal {
        refusal("The parameter \"\(name.prefix(60))\" must be a text, a number, true, false, or an array of texts.")
    }

    private func check() throws(Refusal) {
        guard values.count <= Self.most else {
            throw Self.refusal("There may be \(Self.most) parameters, not \(values.count).")
        }
        for (name, value) in values {
            guard Self.isName(name) else {
                throw Self.refusal(
                    "The name of a parameter has 1 to \(Self.longestNameBytes) letters, digits and underscores, and begins with no digit; \"\(name.prefix(60))\" is none."
                )
            }
            switch value {
            case .text(let text): try Self.check(text, of: name)
            case .texts(let texts):
                guard texts.count <= Self.mostTexts else {
                    throw Self.refusal("The parameter \"\(name)\" may have \(Self.mostTexts) texts.")
                }
                for text in texts { try Self.check(text, of: name) }
            case .bool, .integer, .number: break
            }
        }
        guard json.count <= Self.largestBytes else {
            throw Self.refusal("The parameters may have \(Self.largestBytes) bytes in all, written as JSON.")
        }
    }

    private static func check(_ text: String, of name: String) throws(Refusal) {
        guard text.utf8.count <= longestTextBytes else {
            throw refusal("The parameter \"\(name)\" may have \(longestTextBytes) bytes.")
        }
    }

    /// Whether a condition can use the name without quoting.
    private static func isName(_ name: String) -> Bool {
        guard (1...longestNameBytes).contains(name.utf8.count), let first = name.utf8.first else { return false }
        let isDigit = { (byte: UInt8) in (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
        return !isDigit(first)
            && name.utf8.allSatisfy { byte in
                isDigit(byte) || byte == UInt8(ascii: "_") || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
            }
    }

    private static func refusal(_ sentence: String) -> Refusal { Refusal(.parametersInvalid, sentence) }
}
