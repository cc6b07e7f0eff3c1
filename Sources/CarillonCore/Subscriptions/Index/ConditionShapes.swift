package import CarillonExpression

/// The shapes of the loaded conditions. Conditions that differ only in constants have the same shape. Each shape is parsed once,
/// and removed with its last condition.
///
/// One home uses one instance for all its items.
package final class ConditionShapes {
    /// An indexed comparison of a shape, and the position of its constant in the constants of a condition.
    struct Term {
        enum Constant {
            case at(Int)
            case always(ExpressionValue)
        }

        let expression: Int
        let comparison: TermKeys.Comparison
        let constant: Constant
    }

    struct Entry {
        let shape: ExpressionShape
        /// The terms of each alternative. A condition can hold only if all terms of one alternative hold.
        let alternatives: [[Term]]
        /// Whether a part of the condition is not a term. The condition is then evaluated while all terms of an alternative hold.
        let hasResidue: Bool
        /// The number of conditions with this shape.
        fileprivate var uses = 0
    }

    /// An expression that terms compare. ``ItemIndex`` stores its value for each item.
    struct Compared {
        let program: ExpressionProgram
        fileprivate let text: String
        /// The number of shapes that compare the expression.
        fileprivate var uses = 0
    }

    package let environment: ExpressionEnvironment
    private(set) var entries: [Entry?] = []
    private(set) var compared: [Compared?] = []
    private var byKey: [String: Int] = [:]
    private var byText: [String: Int] = [:]
    private var freeEntries: [Int] = []
    private var freeCompared: [Int] = []

    package init(_ environment: ExpressionEnvironment) { self.environment = environment }

    /// The number of shapes.
    package var count: Int { byKey.count }

    /// Returns the number of a known shape, by its key.
    package func known(_ key: String) -> Int? { byKey[key] }

    /// Returns the number of a condition's shape, for ``ItemIndex`` or ``forget(_:)``. The number is valid while a condition uses
    /// the shape.
    package func number(of program: ExpressionProgram) throws(ExpressionRefusal) -> Int {
        let key = program.shape.key
        if let known = byKey[key] { return known }
        var alternatives: [[Term]] = []
        var hasResidue = false
        for alternative in program.terms.alternatives {
            var terms: [Term] = []
            hasResidue = hasResidue || !alternative.residue.isEmpty
            for term in alternative.terms {
                guard Self.isIndexed(term) else {
                    hasResidue = true
                    continue
                }
                terms.append(
                    Term(
                        expression: try number(ofExpression: term.expression),
                        comparison: .init(sign: term.comparison, isNegated: term.isNegated),
                        constant: term.place.map { .at($0) } ?? .always(term.constants[0])))
            }
            alternatives.append(terms)
        }
        let number = freeEntries.popLast() ?? entries.count
        if number == entries.count { entries.append(nil) }
        let entry = Entry(shape: program.shape, alternatives: alternatives, hasResidue: hasResidue)
        for expression in entry.expressions { compared[expression]?.uses += 1 }
        entries[number] = entry
        byKey[key] = number
        return number
    }

    /// Whether the index returns the same result as an evaluation for all constants that conditions of the shape can have. These
    /// constants have the types of the shape.
    static func isIndexed(_ term: ExpressionTerms.Term) -> Bool {
        guard term.comparison == .oneOf else { return term.constants.allSatisfy(TermKeys.takes) }
        // A negated comparison holds only if no constant is equal. Numbers of two types could be equal to one value twice.
        guard !term.isNegated, let first = term.constants.first else { return false }
        switch first {
        case .string, .bytes, .bool, .timestamp, .duration: break
        default: return false
        }
        return term.constants.allSatisfy { $0.type == first.type }
    }

    private func number(ofExpression text: String) throws(ExpressionRefusal) -> Int {
        if let known = byText[text] { return known }
        let program = try ExpressionProgram.unchecked(text, in: environment)
        let number = freeCompared.popLast() ?? compared.count
        if number == compared.count { compared.append(nil) }
        compared[number] = Compared(program: program, text: text)
        byText[text] = number
        return number
    }

    /// Removes a shape that no condition uses.
    package func forget(_ number: Int) {
        guard let entry = entries[number], entry.uses == 0 else { return }
        byKey[entry.shape.key] = nil
        entries[number] = nil
        freeEntries.append(number)
        for expression in entry.expressions {
            compared[expression]?.uses -= 1
            guard let unused = compared[expression], unused.uses == 0 else { continue }
            byText[unused.text] = nil
            compared[expression] = nil
            freeCompared.append(expression)
        }
    }

    func retain(_ number: Int) { entries[number]?.uses += 1 }

    func release(_ number: Int) {
        entries[number]?.uses -= 1
        forget(number)
    }
}

extension ConditionShapes.Entry {
    /// The numbers of the compared expressions.
    var expressions: Set<Int> { Set(alternatives.joined().map(\.expression)) }
}
