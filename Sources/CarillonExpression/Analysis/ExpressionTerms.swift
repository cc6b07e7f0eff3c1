/// The parts of a condition that an index can use. A condition holds exactly if, in one of its alternatives, all terms and
/// the whole residue hold.
public struct ExpressionTerms: Sendable {
    /// A comparison of an expression that has no constants with constants.
    public struct Term: Sendable {
        /// The text of the compared expression. All conditions with the same text compare the same value.
        public let expression: String
        public let comparison: Comparison
        /// One constant; several for ``Comparison/oneOf``.
        public let constants: [ExpressionValue]
        /// The index of the constant, or of the list of ``Comparison/oneOf``, in ``ExpressionProgram/constants``. It is the
        /// same in all conditions of a shape. Nil if the text contains no constant: `open` means `open == true`.
        public let place: Int?
        /// Whether the term holds if the comparison is false, rather than if it is true. If the comparison is an error, the
        /// term does not hold in either case.
        public let isNegated: Bool
    }

    public enum Comparison: String, Sendable {
        case equal = "=="
        case unequal = "!="
        case less = "<"
        case lessOrEqual = "<="
        case more = ">"
        case moreOrEqual = ">="
        case oneOf = "in"
    }

    public struct Alternative: Sendable {
        public internal(set) var terms: [Term] = []
        /// Parts that are not terms, and that must be evaluated as conditions.
        public internal(set) var residue: [String] = []
    }

    /// One to eight alternatives.
    public let alternatives: [Alternative]

    /// Whether the terms alone decide, because there is no residue.
    public var isComplete: Bool { alternatives.allSatisfy { $0.residue.isEmpty } }

    static let most = 8
}

extension ExpressionTerms.Term {
    /// Whether the term holds for a value of its expression. Numbers are compared as in the evaluation: an integer and a
    /// double are compared as doubles.
    public func holds(for value: ExpressionValue) -> Bool {
        let result: Bool? =
            switch comparison {
            case .equal: value.isEqual(to: constants[0])
            case .unequal: !value.isEqual(to: constants[0])
            case .oneOf: constants.contains { value.isEqual(to: $0) }
            case .less: order(of: value, and: constants[0]).map { $0 == .less }
            case .lessOrEqual: order(of: value, and: constants[0]).map { $0 == .less || $0 == .same }
            case .more: order(of: value, and: constants[0]).map { $0 == .more }
            case .moreOrEqual: order(of: value, and: constants[0]).map { $0 == .more || $0 == .same }
            }
        return result.map { $0 != isNegated } ?? false
    }
}

extension ExpressionTerms.Term: CustomStringConvertible {
    public var description: String {
        let constant = comparison == .oneOf ? ExpressionValue.list(constants).literalText : constants[0].literalText
        let text = "\(expression) \(comparison.rawValue) \(constant)"
        return isNegated ? "!(\(text))" : text
    }
}

extension ExpressionProgram {
    /// The parts of the condition that an index can use.
    public var terms: ExpressionTerms {
        ExpressionTerms(alternatives: TermFinder(tree: tree, places: places).alternatives(tree.root, isNegated: false))
    }
}

/// Splits a condition into alternatives. A negation is moved inwards by De Morgan's laws, which also hold with errors. It
/// stays at the comparison: `!(x > 1)` is not `x <= 1` if x is NaN.
private struct TermFinder {
    typealias Alternative = ExpressionTerms.Alternative
    typealias Term = ExpressionTerms.Term

    let tree: SyntaxTree
    let places: [SyntaxTree.ID: Int]

    func alternatives(_ id: SyntaxTree.ID, isNegated: Bool) -> [Alternative] {
        switch tree[id].form {
        case .unary(.not, let operand): return alternatives(operand, isNegated: !isNegated)
        case .all(let ids): return isNegated ? either(ids, id, isNegated) : every(ids, id, isNegated)
        case .any(let ids): return isNegated ? every(ids, id, isNegated) : either(ids, id, isNegated)
        case .binary(let sign, let one, let other):
            if let term = comparison(sign, one, other, isNegated) { return [Alternative(terms: [term])] }
        default: break
        }
        if isFree(id), mayBeBool(id) {
            let term = Term(
                expression: tree.text(id), comparison: .equal, constants: [.bool(!isNegated)], place: nil,
                isNegated: false)
            return [Alternative(terms: [term])]
        }
        return [residue(id, isNegated)]
    }

    private func residue(_ id: SyntaxTree.ID, _ isNegated: Bool) -> Alternative {
        Alternative(residue: [isNegated ? "!(\(tree.text(id)))" : tree.text(id)])
    }

    private func either(_ ids: [SyntaxTree.ID], _ id: SyntaxTree.ID, _ isNegated: Bool) -> [Alternative] {
        var found: [Alternative] = []
        for operand in ids {
            found += alternatives(operand, isNegated: isNegated)
            if found.count > ExpressionTerms.most { return [residue(id, isNegated)] }
        }
        return found
    }

    private func every(_ ids: [SyntaxTree.ID], _ id: SyntaxTree.ID, _ isNegated: Bool) -> [Alternative] {
        var found = [Alternative()]
        for operand in ids {
            var next = alternatives(operand, isNegated: isNegated)
            if found.count * next.count > ExpressionTerms.most { next = [residue(operand, isNegated)] }
            if next.count == 1 {
                for index in found.indices {
                    found[index].terms += next[0].terms
                    found[index].residue += next[0].residue
                }
            } else {
                found = found.flatMap { one in
                    next.map { Alternative(terms: one.terms + $0.terms, residue: one.residue + $0.residue) }
                }
            }
        }
        return found
    }

    private func comparison(
        _ sign: Operator, _ one: SyntaxTree.ID, _ other: SyntaxTree.ID, _ isNegated: Bool
    ) -> Term? {
        if let constant = tree.constant(other), isFree(one) {
            if sign == .contained {
                guard case .list(let elements) = constant else { return nil }
                return Term(
                    expression: tree.text(one), comparison: .oneOf, constants: elements, place: places[other],
                    isNegated: isNegated)
            }
            guard let comparison = ExpressionTerms.Comparison(rawValue: sign.rawValue) else { return nil }
            return Term(
                expression: tree.text(one), comparison: comparison, constants: [constant], place: places[other],
                isNegated: isNegated)
        }
        if let constant = tree.constant(one), isFree(other), sign != .contained,
            let comparison = ExpressionTerms.Comparison(rawValue: sign.rawValue)
        {
            return Term(
                expression: tree.text(other), comparison: comparison.turned, constants: [constant],
                place: places[one], isNegated: isNegated)
        }
        return nil
    }

    /// Whether the part has no constants, so that other conditions can have the same part.
    private func isFree(_ id: SyntaxTree.ID) -> Bool {
        guard tree.constant(id) == nil else { return false }
        return tree[id].form.children.allSatisfy(isFree)
    }

    private func mayBeBool(_ id: SyntaxTree.ID) -> Bool {
        switch tree[id].form {
        case .list, .map, .literal: false
        default: true
        }
    }
}

extension ExpressionTerms.Comparison {
    /// The same comparison with its sides exchanged.
    fileprivate var turned: Self {
        switch self {
        case .less: .more
        case .lessOrEqual: .moreOrEqual
        case .more: .less
        case .moreOrEqual: .lessOrEqual
        case .equal, .unequal, .oneOf: self
        }
    }
}
