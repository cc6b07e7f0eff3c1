/// A value of the language. Two are the same to a condition when ``isEqual(to:)`` says so; `==` of Swift's strings is another
/// equality, so there is none here.
public enum ExpressionValue: Sendable {
    case null
    case bool(Bool)
    case int(Int64)
    case uint(UInt64)
    case double(Double)
    /// Unicode scalar values; its size is their number, and no two spellings of one letter are equal.
    case string(String)
    case bytes([UInt8])
    case list([ExpressionValue])
    case map(ExpressionMap)
    case timestamp(ExpressionTimestamp)
    case duration(ExpressionDuration)
    case type(ExpressionType)

    /// Its type. Of a list or a map the elements are not looked at.
    public var type: ExpressionType {
        switch self {
        case .null: .null
        case .bool: .bool
        case .int: .int
        case .uint: .uint
        case .double: .double
        case .string: .string
        case .bytes: .bytes
        case .list: .list(.dynamic)
        case .map: .map(key: .dynamic, value: .dynamic)
        case .timestamp: .timestamp
        case .duration: .duration
        case .type: .type
        }
    }

    /// Whether it is the Boolean `true`.
    public var isTrue: Bool {
        if case .bool(true) = self { true } else { false }
    }

    /// `size()` of it; 1 for what has none.
    var extent: Int {
        switch self {
        case .string(let text): text.utf8.count
        case .bytes(let bytes): bytes.count
        case .list(let elements): elements.count
        case .map(let map): map.count
        default: 1
        }
    }
}
