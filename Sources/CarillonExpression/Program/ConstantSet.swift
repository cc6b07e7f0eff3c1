/// A set of constants of one type, in which a value is looked up.
struct ConstantSet: Sendable {
    private enum Values {
        case texts(Set<TextBytes>, longest: Int)
        case ints(Set<Int64>)
        case doubles(Set<Double>)
        case truths(Set<Bool>)
    }

    /// The units of a lookup, including the read of the variable. A list costs ``cost(ofElements:)`` in addition.
    let cost: Int
    private let values: Values

    /// - Parameter membership: The membership, whose constants all have the type of its variable or of the variable's
    ///   elements.
    init(_ membership: Membership) {
        let constants = membership.constants
        cost = Self.cost(of: constants.count)
        values =
            switch constants.first {
            case .int?: .ints(Set(constants.compactMap(\.int)))
            case .double?: .doubles(Set(constants.compactMap(\.double)))
            case .bool?: .truths(Set(constants.compactMap(\.bool)))
            default: Self.texts(constants.compactMap(\.text))
            }
    }

    /// The units of a lookup in a set with the given number of constants.
    static func cost(of constants: Int) -> Int { 1 + constants / perUnit }

    /// The units of the lookup of all elements of a list.
    static func cost(ofElements count: Int) -> Int { count / perUnit }

    private static let perUnit = 16

    private static func texts(_ texts: [TextBytes]) -> Values {
        .texts(Set(texts), longest: texts.reduce(0) { max($0, $1.text.utf8.count) })
    }

    /// Whether a value, or an element of a value that is a list, is one of the constants.
    func contains(_ value: ExpressionValue) -> Bool {
        if case .list(let elements) = value { return elements.contains(where: has) }
        return has(value)
    }

    private func has(_ value: ExpressionValue) -> Bool {
        switch (values, value) {
        case (.texts(let texts, let longest), .string(let text)):
            text.utf8.count <= longest && texts.contains(TextBytes(text: text))
        case (.ints(let ints), .int(let number)): ints.contains(number)
        case (.doubles(let doubles), .double(let number)): doubles.contains(number)
        case (.truths(let truths), .bool(let truth)): truths.contains(truth)
        default: false
        }
    }
}

extension ExpressionValue {
    fileprivate var int: Int64? { if case .int(let number) = self { number } else { nil } }
    fileprivate var double: Double? { if case .double(let number) = self { number } else { nil } }
    fileprivate var bool: Bool? { if case .bool(let truth) = self { truth } else { nil } }
    fileprivate var text: TextBytes? { if case .string(let text) = self { TextBytes(text: text) } else { nil } }
}

/// A text that is equal to texts with the same bytes.
private struct TextBytes: Hashable {
    let text: String

    static func == (one: Self, other: Self) -> Bool { one.text.hasSameBytes(as: other.text) }

    func hash(into hasher: inout Hasher) {
        var text = text
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}
