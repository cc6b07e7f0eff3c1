/// Constants with which `==` or `in` compares the value of a variable, or each element of a value that is a list.
struct Membership {
    let slot: Int
    /// The offset of the variable's name in the source.
    let offset: Int
    /// The constants. All have the type of the variable, or of its elements.
    let constants: [ExpressionValue]
}

/// The memberships of a condition, for which sets are used. They exist only if the environment uses sets.
///
/// A node is a membership if it only compares one variable with constants, or negates such a comparison. A compiler must not
/// use the memberships inside of macros, because a macro evaluates its parts many times.
struct Memberships {
    /// A node that is a membership.
    struct Entry {
        let slot: Int
        /// The offset of the first variable in the source.
        let offset: Int
        /// The number of constants in all parts of the node.
        let count: Int
        /// Whether the node holds if the value is none of the constants.
        let isNegated: Bool
        /// The constants; empty if they belong to the parts of the node.
        fileprivate var constants: [ExpressionValue] = []
    }

    /// An operand of `||` or `&&`.
    enum Operand {
        case part(SyntaxTree.ID)
        /// Operands that are memberships of one variable.
        case memberships([SyntaxTree.ID])
    }

    private let tree: SyntaxTree
    private let environment: ExpressionEnvironment
    /// The entry of each node.
    private var entries: [Entry?] = []

    /// Children are stored before their parents, so one pass over the nodes is enough.
    init(of tree: SyntaxTree, in environment: ExpressionEnvironment) {
        self.tree = tree
        self.environment = environment
        guard environment.usesSets else { return }
        entries.reserveCapacity(tree.nodes.count)
        for id in tree.nodes.indices { entries.append(entry(tree[id].form)) }
    }

    subscript(id: SyntaxTree.ID) -> Entry? { entries.isEmpty ? nil : entries[id] }

    /// Returns the operands of `||` or `&&`. The memberships of one variable are one operand: for `||` the memberships that
    /// are not negated, for `&&` the negated ones.
    func operands(_ ids: [SyntaxTree.ID], areNegated: Bool) -> [Operand] {
        var operands: [Operand] = []
        var places: [Int: Int] = [:]
        var members: [[SyntaxTree.ID]] = []
        for id in ids {
            guard let entry = self[id], entry.isNegated == areNegated else {
                operands.append(.part(id))
                continue
            }
            if let place = places[entry.slot] {
                members[place].append(id)
            } else {
                places[entry.slot] = members.count
                members.append([id])
                operands.append(.memberships([id]))
            }
        }
        return operands.map { operand in
            guard case .memberships(let first) = operand, let slot = self[first[0]]?.slot, let place = places[slot] else {
                return operand
            }
            return .memberships(members[place])
        }
    }

    /// Returns the number of constants in memberships of one variable.
    func count(_ ids: [SyntaxTree.ID]) -> Int { ids.reduce(0) { $0 + (self[$1]?.count ?? 0) } }

    /// Collects the constants in memberships of one variable. A caller must not also request the membership of a part, so
    /// that each constant is read once.
    func membership(_ ids: [SyntaxTree.ID]) -> Membership? {
        guard let first = ids.first.flatMap({ self[$0] }) else { return nil }
        var constants: [ExpressionValue] = []
        constants.reserveCapacity(count(ids))
        var rest = Array(ids.reversed())
        while let id = rest.popLast() {
            switch tree[id].form {
            case .any(let operands), .all(let operands): rest += operands.reversed()
            case .unary(_, let operand): rest.append(operand)
            default: constants += self[id]?.constants ?? []
            }
        }
        return Membership(slot: first.slot, offset: first.offset, constants: constants)
    }

    // MARK: Detection

    private func entry(_ form: SyntaxTree.Form) -> Entry? {
        switch form {
        case .unary(.not, let operand):
            return entries[operand].map {
                Entry(slot: $0.slot, offset: $0.offset, count: $0.count, isNegated: !$0.isNegated)
            }
        case .any(let ids): return entry(joining: ids, areNegated: false)
        case .all(let ids): return entry(joining: ids, areNegated: true)
        case .binary(.equal, let one, let other): return equality(one, other, isNegated: false)
        case .binary(.unequal, let one, let other): return equality(one, other, isNegated: true)
        case .binary(.contained, let one, let other):
            if slot(one) != nil {
                guard case .list(let constants)? = tree.constant(other) else { return nil }
                return entry(of: one, constants)
            }
            return tree.constant(one).flatMap { entry(ofElementsOf: other, [$0]) }
        case .fold(let fold) where fold.kind == .exists && fold.second == nil:
            guard let predicate = fold.predicate, slot(fold.range) != nil else { return nil }
            var constants: [ExpressionValue] = []
            guard collect(&constants, comparedWith: fold.variable, in: predicate) else { return nil }
            return entry(ofElementsOf: fold.range, constants)
        default: return nil
        }
    }

    private func entry(joining ids: [SyntaxTree.ID], areNegated: Bool) -> Entry? {
        guard let first = entries[ids[0]], first.isNegated == areNegated else { return nil }
        var count = 0
        for id in ids {
            guard let entry = entries[id], entry.slot == first.slot, entry.isNegated == areNegated else { return nil }
            count += entry.count
        }
        return Entry(slot: first.slot, offset: first.offset, count: count, isNegated: areNegated)
    }

    private func equality(_ one: SyntaxTree.ID, _ other: SyntaxTree.ID, isNegated: Bool) -> Entry? {
        if slot(one) != nil { return tree.constant(other).flatMap { entry(of: one, [$0], isNegated: isNegated) } }
        guard slot(other) != nil else { return nil }
        return tree.constant(one).flatMap { entry(of: other, [$0], isNegated: isNegated) }
    }

    private func entry(of id: SyntaxTree.ID, _ constants: [ExpressionValue], isNegated: Bool = false) -> Entry? {
        guard let slot = slot(id) else { return nil }
        return entry(slot, id, constants, environment.variables[slot].type, isNegated)
    }

    private func entry(ofElementsOf id: SyntaxTree.ID, _ constants: [ExpressionValue]) -> Entry? {
        guard let slot = slot(id), case .list(let element) = environment.variables[slot].type else { return nil }
        return entry(slot, id, constants, element, false)
    }

    private func entry(
        _ slot: Int, _ id: SyntaxTree.ID, _ constants: [ExpressionValue], _ type: ExpressionType, _ isNegated: Bool
    ) -> Entry? {
        var fitting: [ExpressionValue] = []
        fitting.reserveCapacity(constants.count)
        for constant in constants {
            switch Self.equal(of: constant, among: type) {
            case .value(let value): fitting.append(value)
            case .nothing: break
            case .unknown: return nil
            }
        }
        return Entry(
            slot: slot, offset: tree[id].offset, count: fitting.count, isNegated: isNegated, constants: fitting)
    }

    private func slot(_ id: SyntaxTree.ID) -> Int? {
        switch tree[id].form {
        case .name, .select: break
        default: return nil
        }
        guard let (parts, isRoot) = tree.dottedName(id),
            case (.variable(let slot), parts.count)? = environment.meaning(of: parts, isRoot: isRoot)
        else { return nil }
        return slot
    }

    /// Returns false if the predicate of a macro does more than compare its variable with constants.
    private func collect(
        _ constants: inout [ExpressionValue], comparedWith variable: String, in predicate: SyntaxTree.ID
    ) -> Bool {
        func isVariable(_ id: SyntaxTree.ID) -> Bool {
            if case .name(variable, isRoot: false) = tree[id].form { true } else { false }
        }
        switch tree[predicate].form {
        case .binary(.equal, let one, let other):
            guard isVariable(one) || isVariable(other), let constant = tree.constant(isVariable(one) ? other : one) else {
                return false
            }
            constants.append(constant)
            return true
        case .binary(.contained, let one, let other):
            guard isVariable(one), case .list(let some)? = tree.constant(other) else { return false }
            constants += some
            return true
        case .any(let ids):
            return ids.allSatisfy { collect(&constants, comparedWith: variable, in: $0) }
        default: return false
        }
    }

    /// The value of a type that a constant equals.
    private enum Equal {
        case value(ExpressionValue)
        /// The constant equals no value of the type.
        case nothing
        /// The constant equals several values, or the type has no sets.
        case unknown
    }

    private static func equal(of constant: ExpressionValue, among type: ExpressionType) -> Equal {
        switch (type, constant) {
        case (.string, .string), (.bool, .bool), (.int, .int): return .value(constant)
        case (.double, .double(let number)): return number.isNaN ? .nothing : .value(constant)
        // From 2^53 on, a double equals several integers.
        case (.int, .double(let number)):
            guard number.magnitude < 0x1p53 else { return number.isFinite ? .unknown : .nothing }
            return Int64(exactly: number).map { Equal.value(.int($0)) } ?? .nothing
        case (.double, .int(let number)): return .value(.double(Double(number)))
        case (.int, .uint(let number)): return Int64(exactly: number).map { Equal.value(.int($0)) } ?? .nothing
        case (.double, .uint(let number)): return .value(.double(Double(number)))
        case (.string, _), (.bool, _), (.int, _), (.double, _): return .nothing
        default: return .unknown
        }
    }
}

/// A requirement of a condition on the values of variables. If it is not met, the condition does not hold. An index uses it
/// to find the devices for which the condition may hold.
package indirect enum ExpressionNeed: Sendable {
    /// The variable's value, or an element of it where it is a list, is one of the constants.
    case oneOf(variable: String, constants: [ExpressionValue])
    /// At least one of the needs.
    case any([ExpressionNeed])
    /// All of the needs.
    case all([ExpressionNeed])
}

extension ExpressionProgram {
    /// The requirement of the condition; nil if it may hold for any value. Only an environment that uses sets has needs.
    package var need: ExpressionNeed? {
        NeedFinder(tree: tree, environment: environment, memberships: Memberships(of: tree, in: environment))
            .need(tree.root, isNegated: false)
    }
}

private struct NeedFinder {
    let tree: SyntaxTree
    let environment: ExpressionEnvironment
    let memberships: Memberships

    func need(_ id: SyntaxTree.ID, isNegated: Bool) -> ExpressionNeed? {
        if let entry = memberships[id] {
            guard entry.isNegated == isNegated, let found = memberships.membership([id]) else { return nil }
            return .oneOf(variable: environment.variables[found.slot].name, constants: found.constants)
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

    /// Returns the need of a variable that is a condition by itself.
    private func variable(_ id: SyntaxTree.ID, _ isNegated: Bool) -> ExpressionNeed? {
        guard let (parts, isRoot) = tree.dottedName(id),
            case (.variable(let slot), parts.count)? = environment.meaning(of: parts, isRoot: isRoot),
            case let variable = environment.variables[slot], variable.type == .bool, environment.usesSets
        else { return nil }
        return .oneOf(variable: variable.name, constants: [.bool(!isNegated)])
    }
}
