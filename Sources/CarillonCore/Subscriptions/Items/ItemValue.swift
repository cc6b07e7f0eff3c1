package import CarillonExpression

/// The value of a field, as sent by a publisher.
package struct ItemValue: Sendable {
    package var value: ExpressionValue
    /// The digits of a number as the publisher wrote them. Notifications show these digits.
    package var digits: String?

    package init(_ value: ExpressionValue, digits: String? = nil) {
        self.value = value
        self.digits = digits
    }

    /// The text that notifications show; empty for null.
    package var text: String {
        if let digits { return digits }
        return switch value {
        case .null: ""
        case .bool(let value): value ? "true" : "false"
        case .int(let value): String(value)
        case .uint(let value): String(value)
        case .double(let value): Int64(exactly: value).map(String.init) ?? String(value)
        case .string(let value): value
        case .timestamp(let value): value.description
        case .duration(let value): value.description
        case .bytes, .list, .map, .type: ""
        }
    }

    /// The bytes of the value, as counted for limits.
    package var byteCount: Int {
        if case .string(let text) = value { text.utf8.count } else { digits?.utf8.count ?? 8 }
    }

    package func isSame(as other: ItemValue) -> Bool { value.isSame(as: other.value) && digits == other.digits }
}
