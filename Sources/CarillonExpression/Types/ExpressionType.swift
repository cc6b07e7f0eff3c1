/// The type of a value, or the declared type of a variable.
public indirect enum ExpressionType: Sendable, Hashable {
    case null
    case bool
    case int
    case uint
    case double
    case string
    case bytes
    case timestamp
    case duration
    case list(ExpressionType)
    /// A map. Its keys are int, uint, bool or string.
    case map(key: ExpressionType, value: ExpressionType)
    /// The type of a type, such as the type of `type(1)`.
    case type
    /// A type that is known only during the evaluation. It accepts every type, and every type accepts it.
    case dynamic
    /// A type that the checker must find: of an empty list, or of a function that accepts any type.
    case free(Int)

    /// The name of the type in conditions, without the types of elements.
    public var name: String {
        switch self {
        case .null: "null_type"
        case .bool: "bool"
        case .int: "int"
        case .uint: "uint"
        case .double: "double"
        case .string: "string"
        case .bytes: "bytes"
        case .timestamp: "google.protobuf.Timestamp"
        case .duration: "google.protobuf.Duration"
        case .list: "list"
        case .map: "map"
        case .type: "type"
        case .dynamic, .free: "dyn"
        }
    }

    var isNumeric: Bool {
        switch self {
        case .int, .uint, .double: true
        default: false
        }
    }
}

extension ExpressionType {
    /// The type, with dynamic instead of the free types that were not found.
    var settled: ExpressionType {
        switch self {
        case .free: .dynamic
        case .list(let element): .list(element.settled)
        case .map(let key, let value): .map(key: key.settled, value: value.settled)
        default: self
        }
    }
}

extension ExpressionType: CustomStringConvertible {
    /// The type as in a declaration: `map(string, list(int))`.
    public var description: String {
        switch self {
        case .list(let element): "list(\(element))"
        case .map(let key, let value): "map(\(key), \(value))"
        default: name
        }
    }
}

extension ExpressionType {
    /// The types that a condition can name, except types with declared elements.
    static let named: [String: ExpressionType] = [
        "null_type": .null, "bool": .bool, "int": .int, "uint": .uint, "double": .double, "string": .string, "bytes": .bytes,
        "type": .type, "google.protobuf.Timestamp": .timestamp, "google.protobuf.Duration": .duration,
        "list": .list(.dynamic), "map": .map(key: .dynamic, value: .dynamic),
    ]

    /// Parses a type in the form of `description`. `timestamp` and `duration` are accepted without their package, and `dyn`
    /// is accepted. `list` and `map` without elements have elements of any type.
    public init?(_ text: String) {
        var reader = TypeReader(text: Substring(text))
        guard let type = reader.type(depth: 0), reader.isAtEnd else { return nil }
        self = type
    }
}

private struct TypeReader {
    var text: Substring

    var isAtEnd: Bool { text.allSatisfy { $0 == " " } }

    mutating func type(depth: Int) -> ExpressionType? {
        guard depth < 16 else { return nil }
        skipSpaces()
        let name = text.prefix { $0.isLetter || $0 == "." || $0 == "_" }
        text = text.dropFirst(name.count)
        switch name {
        case "dyn": return .dynamic
        case "timestamp": return .timestamp
        case "duration": return .duration
        case "list":
            guard accept("(") else { return .list(.dynamic) }
            guard let element = type(depth: depth + 1), accept(")") else { return nil }
            return .list(element)
        case "map":
            guard accept("(") else { return .map(key: .dynamic, value: .dynamic) }
            guard let key = type(depth: depth + 1), accept(","), let value = type(depth: depth + 1), accept(")") else {
                return nil
            }
            guard [.int, .uint, .bool, .string, .dynamic].contains(key) else { return nil }
            return .map(key: key, value: value)
        default: return ExpressionType.named[String(name)]
        }
    }

    private mutating func accept(_ character: Character) -> Bool {
        skipSpaces()
        guard text.first == character else { return false }
        text.removeFirst()
        return true
    }

    private mutating func skipSpaces() { text = text.drop { $0 == " " } }
}
