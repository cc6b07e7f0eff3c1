import CarillonExpression

extension ExpressionValue {
    /// Whether both values are written in the same way. Unlike in ``isEqual(to:)``, numbers of different types differ.
    func isSame(as other: ExpressionValue) -> Bool {
        switch (self, other) {
        case (.null, .null): true
        case (.bool(let one), .bool(let other)): one == other
        case (.int(let one), .int(let other)): one == other
        case (.uint(let one), .uint(let other)): one == other
        case (.double(let one), .double(let other)): one.bitPattern == other.bitPattern
        case (.string, .string), (.bytes, .bytes), (.timestamp, .timestamp), (.duration, .duration), (.type, .type):
            isEqual(to: other)
        case (.list(let one), .list(let other)):
            one.count == other.count && zip(one, other).allSatisfy { $0.isSame(as: $1) }
        default: false
        }
    }

    func hash(into hasher: inout Hasher) {
        switch self {
        case .null, .map: break
        case .bool(let value): hasher.combine(value)
        case .int(let value): hasher.combine(value)
        case .uint(let value): hasher.combine(value)
        case .double(let value): hasher.combine(value.bitPattern)
        case .string(let value): for byte in value.utf8 { hasher.combine(byte) }
        case .bytes(let value): hasher.combine(value)
        case .list(let values): for value in values { value.hash(into: &hasher) }
        case .timestamp(let value): hasher.combine(value)
        case .duration(let value): hasher.combine(value.nanoseconds)
        case .type(let value): hasher.combine(value)
        }
    }
}
