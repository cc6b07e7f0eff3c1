/// What an index can use of a condition: it holds exactly when all terms and all of the residue of one of its alternatives hold.
public struct ExpressionTerms: Sendable {
    /// A comparison of an expression without constants with constants.
    public struct Term: Sendable {
        /// What is compared. All conditions with the same text compare the same.
        public let expression: String
        public let comparison: Comparison
        /// One, but for ``Comparison/oneOf``.
        public let constants: [ExpressionValue]
        /// Where the constant, or the list of ``Comparison/oneOf``, stands among ``ExpressionProgram/constants``, which is the same in all
        /// conditions of a shape. Nil where the text has none: `open` is `open == true`.
        public let place: Int?
        /// Whether it holds where the comparison is false, rather than where it is true. Where the comparison is an error it does not
        /// hold in either case.
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
        /// Parts that no term says, which are to be evaluated as conditions.
        public internal(set) var residue: [String] = []
    }

    /// One to eight.
    public let alternatives: [Alternative]

    /// Whether the terms alone decide.
    public var isComplete: Bool { alternatives.allSatisfy { $0.residue.isEmpty } }

    static let most = 8
}

extension ExpressionTerms.Term {
    /// Whether it holds for a value of its expression. Numbers are compared as the evaluation does it: an integer beside a double as a double.
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
    /// What an index can use of it.
    public var terms: ExpressionTerms {
        ExpressionTerms(alternatives: TermFinder(tree: tree, places: places).alternatives(tree.root, isNegated: false))
    }
}

/// Takes a condition apart. A negation goes inwards by De Morgan's laws, which hold with errors as well, and stays at the comparison:
/// `!(x > 1)` is not `x <= 1` where x is NaN.
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

    /// Without constants, so that conditions of other people may ask for the same.
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
    /// With its sides changed.
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
