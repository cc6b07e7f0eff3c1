import CarillonExpression

/// The constants of terms that make the same comparison with the same expression, by kind and in order: which of them hold for a value is
/// a range of each kind, so that those that change between two values are found without looking at the others.
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

    /// Whether a constant has its place here: lists, maps, types and NaN have none.
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

    /// The number of a constant.
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

    /// All whose term holds for one of two values and not for the other, with whether it holds for the new one. Nil is the value of an
    /// expression that has none: no term holds for it.
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
        // Between two turns nothing changes within either.
        let places = (before + after).sorted() + [keys.end]
        for (place, next) in zip(places, places.dropFirst()) where place < next {
            let held = before.count { $0 <= place } % 2 == 1
            let holds = after.count { $0 <= place } % 2 == 1
            if held != holds { keys.forEach(from: place, to: next) { body($0, holds) } }
        }
    }

    /// Where the terms that hold begin and end, by turns, from the least key on.
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
            // An error, whatever stands before it.
            case .less, .lessOrEqual, .more, .moreOrEqual: return []
            }
        case .notANumber: turns = comparison.sign == .unequal ? [begin, end] : []
        }
        if comparison.isNegated { turns = Self.difference([begin, end], turns) }
        return Self.difference(turns, [])
    }

    private enum Standing<Place: Equatable>: Equatable {
        /// There is no value.
        case nowhere
        /// The keys before the first are less than the value, and those from the second on are more.
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
            // It equals itself, and has no order.
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

    /// What turns in one of both: a place that is in both, or twice in one, turns nothing.
    private static func difference<Place: Comparable>(_ one: [Place], _ other: [Place]) -> [Place] {
        var difference: [Place] = []
        for place in (one + other).sorted() {
            if difference.last == place { difference.removeLast() } else { difference.append(place) }
        }
        return difference
    }
}

/// A text by the order of its bytes, which is that of its code points.
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
