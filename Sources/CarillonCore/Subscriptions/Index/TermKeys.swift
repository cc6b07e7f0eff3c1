import CarillonExpression

/// The constants of terms that compare the same expression in the same way, in order, separately for each type. The terms that
/// hold for a value form ranges of each type. Terms whose result differs between two values are therefore found without visiting
/// the others.
struct TermKeys {
    struct Comparison: Hashable {
        var sign: ExpressionTerms.Comparison
        var isNegated: Bool
    }

    private let comparison: Comparison
    private var truths = OrderedBlocks<Int64>()
    private var nulls = OrderedBlocks<Int64>()
    private var ints = OrderedBlocks<Int64>()
    private var uints = OrderedBlocks<UInt64>()
    private var doubles = OrderedBlocks<Double>()
    private var texts = OrderedBlocks<Text>()
    private var bytes = OrderedBlocks<Bytes>()
    private var instants = OrderedBlocks<ExpressionTimestamp>()
    private var spans = OrderedBlocks<Int64>()

    init(_ comparison: Comparison) { self.comparison = comparison }

    /// Whether a constant can be stored here. Lists, maps, types and NaN cannot.
    static func takes(_ constant: ExpressionValue) -> Bool {
        switch constant {
        case .list, .map, .type: false
        case .double(let number): !number.isNaN
        default: true
        }
    }

    var isEmpty: Bool {
        truths.isEmpty && nulls.isEmpty && ints.isEmpty && uints.isEmpty && doubles.isEmpty && texts.isEmpty && bytes.isEmpty
            && instants.isEmpty && spans.isEmpty
    }

    /// The number of a constant; nil if the constant is not stored.
    subscript(constant: ExpressionValue) -> Int32? {
        get {
            switch constant {
            case .null: nulls[0]
            case .bool(let value): truths[value ? 1 : 0]
            case .int(let value): ints[value]
            case .uint(let value): uints[value]
            case .double(let value): doubles[value]
            case .string(let value): texts[Text(value)]
            case .bytes(let value): bytes[Bytes(value)]
            case .timestamp(let value): instants[value]
            case .duration(let value): spans[value.nanoseconds]
            case .list, .map, .type: nil
            }
        }
        set {
            switch constant {
            case .null: nulls[0] = newValue
            case .bool(let value): truths[value ? 1 : 0] = newValue
            case .int(let value): ints[value] = newValue
            case .uint(let value): uints[value] = newValue
            case .double(let value): doubles[value] = newValue
            case .string(let value): texts[Text(value)] = newValue
            case .bytes(let value): bytes[Bytes(value)] = newValue
            case .timestamp(let value): instants[value] = newValue
            case .duration(let value): spans[value.nanoseconds] = newValue
            case .list, .map, .type: break
            }
        }
    }

    /// Calls the closure for each constant whose term holds for only one of two values, with whether the term holds for the new
    /// value. Nil means that the expression has no value; no term holds then.
    func changes(
        from old: ExpressionValue?, to new: ExpressionValue?, _ body: (_ number: Int32, _ holds: Bool) -> Void
    ) {
        changes(nulls, from: old, to: new, { _ in .null }, body)
        changes(truths, from: old, to: new, { .bool($0 != 0) }, body)
        changes(ints, from: old, to: new, { .int($0) }, body)
        changes(uints, from: old, to: new, { .uint($0) }, body)
        changes(doubles, from: old, to: new, { .double($0) }, body)
        changes(texts, from: old, to: new, { .string($0.value) }, body)
        changes(bytes, from: old, to: new, { .bytes($0.value) }, body)
        changes(instants, from: old, to: new, { .timestamp($0) }, body)
        changes(spans, from: old, to: new, { .duration(ExpressionDuration(nanoseconds: $0)) }, body)
    }

    // MARK: Ranges

    private func changes<Key: Comparable>(
        _ keys: OrderedBlocks<Key>, from old: ExpressionValue?, to new: ExpressionValue?,
        _ constant: (Key) -> ExpressionValue, _ body: (Int32, Bool) -> Void
    ) {
        guard !keys.isEmpty else { return }
        let (past, present) = (standing(of: old, in: keys, constant), standing(of: new, in: keys, constant))
        guard past != present else { return }
        let before = turns(in: keys, past)
        let after = turns(in: keys, present)
        guard before != after else { return }
        // Between two boundaries neither result changes.
        let places = (before + after).sorted() + [keys.end]
        for (place, next) in zip(places, places.dropFirst()) where place < next {
            let held = before.count { $0 <= place } % 2 == 1
            let holds = after.count { $0 <= place } % 2 == 1
            if held != holds { keys.forEach(from: place, to: next) { body($0, holds) } }
        }
    }

    /// Returns the boundaries of the ranges of terms that hold: alternately a begin and an end, in the order of the keys.
    private func turns<Key>(
        in keys: OrderedBlocks<Key>, _ standing: Standing<OrderedBlocks<Key>.Place>
    ) -> [OrderedBlocks<Key>.Place] {
        let (begin, end) = (keys.begin, keys.end)
        var turns: [OrderedBlocks<Key>.Place]
        switch standing {
        case .nowhere: return []
        case .between(let lower, let upper):
            turns =
                switch comparison.sign {
                case .equal, .oneOf: [lower, upper]
                case .unequal: [begin, lower, upper, end]
                case .less: [upper, end]
                case .lessOrEqual: [lower, end]
                case .more: [begin, lower]
                case .moreOrEqual: [begin, upper]
                }
        case .unlike:
            switch comparison.sign {
            case .equal, .oneOf: turns = []
            case .unequal: turns = [begin, end]
            // The comparison has no value, and its negation has none either.
            case .less, .lessOrEqual, .more, .moreOrEqual: return []
            }
        case .notANumber: turns = comparison.sign == .unequal ? [begin, end] : []
        }
        if comparison.isNegated { turns = Self.difference([begin, end], turns) }
        return Self.difference(turns, [])
    }

    private enum Standing<Place: Equatable>: Equatable {
        /// The expression has no value.
        case nowhere
        /// Keys before the first place are less than the value. Keys from the second place on are greater.
        case between(Place, Place)
        case unlike
        case notANumber
    }

    private func standing<Key>(
        of value: ExpressionValue?, in keys: OrderedBlocks<Key>, _ constant: (Key) -> ExpressionValue
    ) -> Standing<OrderedBlocks<Key>.Place> {
        guard let value else { return .nowhere }
        guard let some = keys.least else { return .unlike }
        if case .null = constant(some) {
            // Null is equal to itself and has no order.
            let isEquality = [.equal, .unequal, .oneOf].contains(comparison.sign)
            if case .null = value, isEquality { return .between(keys.begin, keys.end) }
            return .unlike
        }
        switch order(of: value, and: constant(some)) {
        case nil: return .unlike
        case .neither: return .notANumber
        default: break
        }
        let lower = keys.first { order(of: value, and: constant($0)) == .more }
        let upper = keys.first {
            let order = order(of: value, and: constant($0))
            return order == .more || order == .same
        }
        return .between(lower, upper)
    }

    /// Returns the symmetric difference of two lists of boundaries. A place that is in both lists, or twice in one, is not a
    /// boundary.
    private static func difference<Place: Comparable>(_ one: [Place], _ other: [Place]) -> [Place] {
        var difference: [Place] = []
        for place in (one + other).sorted() {
            if difference.last == place { difference.removeLast() } else { difference.append(place) }
        }
        return difference
    }
}

/// A text, ordered by its bytes, which is the order of its code points.
private struct Text: Comparable {
    let value: String

    init(_ value: String) { self.value = value }

    static func == (one: Text, other: Text) -> Bool {
        order(of: .string(one.value), and: .string(other.value)) == .same
    }

    static func < (one: Text, other: Text) -> Bool {
        order(of: .string(one.value), and: .string(other.value)) == .less
    }
}

private struct Bytes: Comparable {
    let value: [UInt8]

    init(_ value: [UInt8]) { self.value = value }

    static func < (one: Bytes, other: Bytes) -> Bool { one.value.lexicographicallyPrecedes(other.value) }
}
