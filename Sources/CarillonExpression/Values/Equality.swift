extension ExpressionValue {
    /// Equality of the language ("Equality" in its definition). Numbers of different types are compared by value; an integer
    /// and a double are compared as doubles. NaN equals nothing. Values of different types are not equal, which is not an
    /// error.
    public func isEqual(to other: ExpressionValue) -> Bool {
        switch (self, other) {
        case (.int(let one), .int(let other)): return one == other
        case (.double(let one), .double(let other)): return one == other
        case (.string(let one), .string(let other)): return one.hasSameBytes(as: other)
        case (.bool(let one), .bool(let other)): return one == other
        case (.uint(let one), .uint(let other)): return one == other
        case (.null, .null): return true
        case (.bytes(let one), .bytes(let other)): return one == other
        case (.timestamp(let one), .timestamp(let other)): return one == other
        case (.duration(let one), .duration(let other)): return one == other
        case (.type(let one), .type(let other)): return one.name == other.name
        case (.list(let one), .list(let other)):
            guard one.count == other.count else { return false }
            return zip(one, other).allSatisfy { $0.isEqual(to: $1) }
        case (.map(let one), .map(let other)):
            guard one.count == other.count else { return false }
            return one.entries.allSatisfy { entry in
                other.value(for: entry.key).map { entry.value.isEqual(to: $0) } ?? false
            }
        default:
            return order(of: self, and: other) == .same
        }
    }
}

/// The order of two values.
package enum Order {
    case less
    case same
    case more
    /// One of them is NaN: all comparisons except `!=` are false.
    case neither

    init<Number: Comparable>(_ one: Number, _ other: Number) {
        self = one < other ? .less : one == other ? .same : one > other ? .more : .neither
    }

    init(_ compared: Int) { self.init(compared, 0) }
}

/// Returns the order of two values; nil if their types have no common order.
@inline(__always)
package func order(of one: ExpressionValue, and other: ExpressionValue) -> Order? {
    switch (one, other) {
    case (.double(let one), .double(let other)): Order(one, other)
    case (.int(let one), .int(let other)): Order(one, other)
    case (.double(let one), .int(let other)): Order(one, Double(other))
    case (.int(let one), .double(let other)): Order(Double(one), other)
    default: rarerOrder(of: one, and: other)
    }
}

private func rarerOrder(of one: ExpressionValue, and other: ExpressionValue) -> Order? {
    switch (one, other) {
    case (.uint(let one), .uint(let other)): Order(one, other)
    case (.int(let one), .uint(let other)): one < 0 ? .less : Order(UInt64(one), other)
    case (.uint(let one), .int(let other)): other < 0 ? .more : Order(one, UInt64(other))
    case (.uint(let one), .double(let other)): Order(Double(one), other)
    case (.double(let one), .uint(let other)): Order(one, Double(other))
    case (.string(let one), .string(let other)): Order(one.compareBytes(to: other))
    case (.bytes(let one), .bytes(let other)): Order(order(one, other))
    case (.bool(let one), .bool(let other)): Order(one ? 1 : 0, other ? 1 : 0)
    case (.timestamp(let one), .timestamp(let other)): Order(one, other)
    case (.duration(let one), .duration(let other)): Order(one.nanoseconds, other.nanoseconds)
    default: nil
    }
}
