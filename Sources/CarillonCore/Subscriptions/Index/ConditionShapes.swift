package import CarillonExpression

/// The shapes of the conditions that are watched: what those have in common that differ in constants only. Each is read once, and goes
/// with its last condition.
///
/// One home uses it, for all its items.
package final class ConditionShapes {
    /// A comparison of a shape, and where its constant stands among a condition's.
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
        /// What must hold together; the condition holds when all of one of them does.
        let alternatives: [[Term]]
        /// Whether some part of it is no term, so that it is evaluated where the terms of an alternative hold.
        let hasResidue: Bool
        /// Conditions of it.
        fileprivate var uses = 0
    }

    /// An expression that terms compare. Where the values of an item stand is the item's to know.
    struct Compared {
        let program: ExpressionProgram
        fileprivate let text: String
        /// Shapes that compare it.
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

    /// How many there are.
    package var count: Int { byKey.count }

    /// The number of a shape that is known, by its key.
    package func known(_ key: String) -> Int? { byKey[key] }

    /// The number of a condition's shape: for ``ItemIndex``, or to be forgotten. It stays while a condition uses it.
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

    /// Whether all constants that conditions of the shape can have decide as they do in the evaluation: their kind is the shape's.
    static func isIndexed(_ term: ExpressionTerms.Term) -> Bool {
        guard term.comparison == .oneOf else { return term.constants.allSatisfy(TermKeys.takes) }
        // Where it is negated, no constant must equal; and numbers of two kinds could equal one value twice.
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

    /// A shape that was asked for, and is used by no condition, is not kept.
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
    /// The numbers of those that it compares.
    var expressions: Set<Int> { Set(alternatives.joined().map(\.expression)) }
}
