/// A comparison of a variable with constants by `==` or `in`. It holds where the variable's value, or an element of that where it is a
/// list, is one of the constants.
struct Membership {
    let slot: Int
    /// Where the variable's name stands.
    let offset: Int
    /// All of the type of the variable, or of its elements.
    var constants: [ExpressionValue]

    /// Units of its evaluation.
    var cost: Int { 1 + constants.count / Self.constantsPerUnit }

    private static let constantsPerUnit = 16
}

/// Finds the memberships of a condition. They are looked up in sets, which an environment must ask for.
///
/// Inside of macros there is none: there a part is evaluated many times.
struct MembershipFinder {
    /// An operand of `||`.
    enum Operand {
        case part(SyntaxTree.ID)
        case membership(Membership)
    }

    let tree: SyntaxTree
    let environment: ExpressionEnvironment

    /// The operands of `||`, the memberships of one variable as one.
    func operands(ofAny ids: [SyntaxTree.ID]) -> [Operand] {
        var operands: [Operand] = []
        var places: [Int: Int] = [:]
        for id in ids {
            guard let found = membership(id) else {
                operands.append(.part(id))
                continue
            }
            if let place = places[found.slot], case .membership(var known) = operands[place] {
                // Not copied while it grows.
                operands[place] = .part(id)
                known.constants += found.constants
                operands[place] = .membership(known)
            } else {
                places[found.slot] = operands.count
                operands.append(.membership(found))
            }
        }
        return operands
    }

    /// What a part is, if it is nothing but a membership.
    func membership(_ id: SyntaxTree.ID) -> Membership? {
        guard environment.usesSets else { return nil }
        switch tree[id].form {
        case .binary(.equal, let one, let other):
            if let constant = tree.constant(other) { return membership(of: one, [constant]) }
            return tree.constant(one).flatMap { membership(of: other, [$0]) }
        case .binary(.contained, let one, let other):
            if case .list(let constants)? = tree.constant(other) { return membership(of: one, constants) }
            return tree.constant(one).flatMap { membership(ofElementsOf: other, [$0]) }
        case .any(let ids):
            guard let first = ids.first, membership(first) != nil else { return nil }
            let operands = self.operands(ofAny: ids)
            guard operands.count == 1, case .membership(let found) = operands[0] else { return nil }
            return found
        case .fold(let fold) where fold.kind == .exists && fold.second == nil:
            guard let predicate = fold.predicate else { return nil }
            return constants(comparedWith: fold.variable, in: predicate).flatMap {
                membership(ofElementsOf: fold.range, $0)
            }
        default: return nil
        }
    }

    private func membership(of id: SyntaxTree.ID, _ constants: [ExpressionValue]) -> Membership? {
        guard let slot = slot(id) else { return nil }
        return membership(slot, id, constants, environment.variables[slot].type)
    }

    private func membership(ofElementsOf id: SyntaxTree.ID, _ constants: [ExpressionValue]) -> Membership? {
        guard let slot = slot(id), case .list(let element) = environment.variables[slot].type else { return nil }
        return membership(slot, id, constants, element)
    }

    private func membership(
        _ slot: Int, _ id: SyntaxTree.ID, _ constants: [ExpressionValue], _ type: ExpressionType
    ) -> Membership? {
        let fitting = constants.compactMap { Self.constant($0, comparedWith: type) }
        guard fitting.count == constants.count else { return nil }
        return Membership(slot: slot, offset: tree[id].offset, constants: fitting)
    }

    private func slot(_ id: SyntaxTree.ID) -> Int? {
        guard let (parts, isRoot) = tree.dottedName(id),
            case (.variable(let slot), parts.count)? = environment.meaning(of: parts, isRoot: isRoot)
        else { return nil }
        return slot
    }

    /// Nil where the predicate of a macro says more than that its variable is one of some constants.
    private func constants(comparedWith variable: String, in predicate: SyntaxTree.ID) -> [ExpressionValue]? {
        func isVariable(_ id: SyntaxTree.ID) -> Bool {
            if case .name(variable, isRoot: false) = tree[id].form { true } else { false }
        }
        switch tree[predicate].form {
        case .binary(.equal, let one, let other):
            if isVariable(one) { return tree.constant(other).map { [$0] } }
            return isVariable(other) ? tree.constant(one).map { [$0] } : nil
        case .binary(.contained, let one, let other):
            guard isVariable(one), case .list(let constants)? = tree.constant(other) else { return nil }
            return constants
        case .any(let ids):
            var all: [ExpressionValue] = []
            for id in ids {
                guard let some = constants(comparedWith: variable, in: id) else { return nil }
                all += some
            }
            return all
        default: return nil
        }
    }

    /// A constant that equals the same values of a type as another constant; nil where it is not of that type.
    private static func constant(_ value: ExpressionValue, comparedWith type: ExpressionType) -> ExpressionValue? {
        switch (type, value) {
        case (.string, .string), (.bool, .bool), (.int, .int), (.double, .double): return value
        // A larger one equals several integers.
        case (.int, .double(let number)) where number.magnitude < 0x1p53: return Int64(exactly: number).map { .int($0) }
        case (.double, .int(let number)): return .double(Double(number))
        default: return nil
        }
    }
}

/// What a condition needs of the values of variables: where they are not so, it does not hold. An index finds by it those for whom it may
/// hold.
package indirect enum ExpressionNeed: Sendable {
    /// The variable's value, or an element of it where it is a list, is one of the constants.
    case oneOf(variable: String, constants: [ExpressionValue])
    /// At least one of these.
    case any([ExpressionNeed])
    /// All of these.
    case all([ExpressionNeed])
}

extension ExpressionProgram {
    /// Nil where it may hold for any value. Only an environment that uses sets has needs.
    package var need: ExpressionNeed? {
        NeedFinder(finder: MembershipFinder(tree: tree, environment: environment)).need(tree.root, isNegated: false)
    }
}

private struct NeedFinder {
    let finder: MembershipFinder

    private var tree: SyntaxTree { finder.tree }

    func need(_ id: SyntaxTree.ID, isNegated: Bool) -> ExpressionNeed? {
        if !isNegated, let membership = finder.membership(id) {
            return .oneOf(
                variable: finder.environment.variables[membership.slot].name, constants: membership.constants)
        }
        switch tree[id].form {
        case .unary(.not, let operand): return need(operand, isNegated: !isNegated)
        case .all(let ids): return isNegated ? either(ids, isNegated) : every(ids, isNegated)
        case .any(let ids): return isNegated ? every(ids, isNegated) : either(ids, isNegated)
        default: return variable(id, isNegated)
        }
    }

    private func every(_ ids: [SyntaxTree.ID], _ isNegated: Bool) -> ExpressionNeed? {
        let needs = ids.compactMap { need($0, isNegated: isNegated) }
        return needs.isEmpty ? nil : .all(needs)
    }

    private func either(_ ids: [SyntaxTree.ID], _ isNegated: Bool) -> ExpressionNeed? {
        var needs: [ExpressionNeed] = []
        for id in ids {
            guard let found = need(id, isNegated: isNegated) else { return nil }
            needs.append(found)
        }
        return .any(needs)
    }

    /// Of a variable that is a condition by itself.
    private func variable(_ id: SyntaxTree.ID, _ isNegated: Bool) -> ExpressionNeed? {
        guard let (parts, isRoot) = tree.dottedName(id),
            case (.variable(let slot), parts.count)? = finder.environment.meaning(of: parts, isRoot: isRoot),
            case let variable = finder.environment.variables[slot], variable.type == .bool, finder.environment.usesSets
        else { return nil }
        return .oneOf(variable: variable.name, constants: [.bool(!isNegated)])
    }
}
