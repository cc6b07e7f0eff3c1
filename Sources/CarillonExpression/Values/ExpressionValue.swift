/// A value of the language. Conditions compare values by ``isEqual(to:)``. The type is not `Equatable`, because `==` of
/// Swift's strings is a different equality.
public enum ExpressionValue: Sendable {
    case null
    case bool(Bool)
    case int(Int64)
    case uint(UInt64)
    case double(Double)
    /// A string of Unicode scalar values. Its size is their number, and different spellings of one letter are not equal.
    case string(String)
    case bytes([UInt8])
    case list([ExpressionValue])
    case map(ExpressionMap)
    case timestamp(ExpressionTimestamp)
    case duration(ExpressionDuration)
    case type(ExpressionType)

    /// The type of the value. The elements of a list or a map are not read.
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

    /// Whether the value is the Boolean `true`.
    public var isTrue: Bool {
        if case .bool(true) = self { true } else { false }
    }

    /// The size that counts for the cost; 1 for a value without a size.
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
