package import CarillonBasics
package import CarillonExpression
package import CarillonWire

/// The parameters that an app's devices report and that audiences can use: names and types.
package struct ParameterRules: Equatable, Sendable {
    package enum ParameterType: String, CaseIterable, Sendable {
        case string, int, double, bool, timestamp, strings, location

        package var type: ExpressionType {
            switch self {
            case .string: .string
            case .int: .int
            case .double: .double
            case .bool: .bool
            case .timestamp: .timestamp
            case .strings: .list(.string)
            case .location: .map(key: .string, value: .dynamic)
            }
        }
    }

    package private(set) var parameters: [String: ParameterType] = [:]

    package static let memberNames: Set = ["parameters"]
    package static let most = 100
    package static let longestNameBytes = 64
    package static let mostTextBytes = 1024
    package static let mostElements = 100
    /// The largest size of all values of a device together, as JSON.
    package static let mostBytes = 16_384
    /// The names of values that the server sets for each device.
    package static let own: Set = ["user", "device", "app"]

    /// The rules of an app that has declared no parameters. Its audiences can use `user`, `device` and `app`.
    package init() {}

    /// - Parameter body: An object that has only known members.
    package init(_ body: JSONValue) throws(Refusal) {
        guard case .object(let members)? = body["parameters"], members.count <= Self.most else {
            throw Self.refusal("\"parameters\" must name the types of at most \(Self.most) parameters")
        }
        for member in members {
            guard Self.isName(member.name) else {
                throw Self.refusal(
                    "a name must have at most \(Self.longestNameBytes) bytes, consist of ASCII letters, digits and _, not begin with a digit, and be no word of the condition language and none of: \(Self.own.sorted().joined(separator: ", "))"
                )
            }
            guard case .string(let name) = member.value, let type = ParameterType(rawValue: name) else {
                let known = ParameterType.allCases.map(\.rawValue).joined(separator: ", ")
                throw Self.refusal("the type of \"\(member.name)\" must be one of: \(known)")
            }
            guard parameters.updateValue(type, forKey: member.name) == nil else {
                throw Self.refusal("\"\(member.name)\" appears twice")
            }
        }
    }

    private static func isName(_ name: String) -> Bool {
        guard let first = name.utf8.first, !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first) else { return false }
        return name.utf8.count <= longestNameBytes && !own.contains(name) && !reserved.contains(name)
            && name.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
                    true
                default: false
                }
            }
    }

    /// Reserved words of the language, and the names of its types.
    private static let reserved: Set = [
        "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
        "loop", "package", "namespace", "return", "var", "void", "while", "bool", "int", "uint", "double", "string", "bytes",
        "list", "map", "type", "null_type",
    ]

    private static func refusal(_ why: String) -> Refusal {
        Refusal(.parameterRulesInvalid, "The declaration of the parameters is not valid: \(why).")
    }

    package var json: JSONValue {
        let sorted = parameters.sorted { $0.key < $1.key }
        return ["parameters": .object(sorted.map { .init(name: $0.key, value: .string($0.value.rawValue)) })]
    }
}
