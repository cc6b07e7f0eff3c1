/// Compiles a tree to a program. Names are resolved here, once. Literals become constants outside of the program, so that
/// conditions of one shape can share it.
struct Compiler {
    private let tree: SyntaxTree
    private let environment: ExpressionEnvironment
    private var operations: [Operation] = []
    private var offsets: [Int32] = []
    private var operands: [Int32] = []
    private var names: [[String]] = []
    private var fields: [String] = []
    private var folds: [FoldOperation] = []
    private var patterns: [Pattern] = []
    private var sets: [ConstantSet] = []
    private let memberships: Memberships
    private var constants: [ExpressionValue] = []
    private var places: [SyntaxTree.ID: Int] = [:]
    private var scope: [String] = []
    private var deepest = 0
    private var problems: [Problem] = []

    struct Result {
        let shape: Shape
        let constants: [ExpressionValue]
        /// The index of a node's value in `constants`.
        let places: [SyntaxTree.ID: Int]
        /// Invalid patterns. The evaluation of these parts is an error.
        let problems: [Problem]
    }

    static func compile(
        _ tree: SyntaxTree, _ memberships: Memberships, in environment: ExpressionEnvironment
    ) -> Result {
        var compiler = Compiler(tree, memberships, environment)
        _ = compiler.operation(tree.root)
        let shape = Shape(
            operations: compiler.operations, offsets: compiler.offsets, operands: compiler.operands, names: compiler.names,
            fields: compiler.fields, folds: compiler.folds, patterns: compiler.patterns, sets: compiler.sets,
            locals: compiler.deepest, constants: compiler.constants.count,
            key: compiler.sets.isEmpty ? tree.shapeKey : tree.text(tree.root))
        return Result(
            shape: shape, constants: compiler.constants, places: compiler.places, problems: compiler.problems)
    }

    private init(_ tree: SyntaxTree, _ memberships: Memberships, _ environment: ExpressionEnvironment) {
        self.tree = tree
        self.memberships = memberships
        self.environment = environment
    }

    private mutating func emit(_ operation: Operation, _ offset: Int) -> Int32 {
        operations.append(operation)
        offsets.append(Int32(offset))
        return Int32(operations.count - 1)
    }

    private mutating func constant(_ value: ExpressionValue, _ offset: Int) -> Int32 {
        constants.append(value)
        return emit(.constant(Int32(constants.count - 1)), offset)
    }

    private mutating func field(_ name: String) -> Int32 {
        fields.append(name)
        return Int32(fields.count - 1)
    }

    /// Adds operands in a row, after all operations that they need.
    private mutating func row(_ ids: [SyntaxTree.ID]) -> Int32 { row(of: ids.map { operation($0) }) }

    private mutating func row(of made: [Int32]) -> Int32 {
        operands += made
        return Int32(operands.count - made.count)
    }

    /// Adds operands of `||` or `&&` in a row. The memberships of one variable are one operand.
    private mutating func row(_ ids: [SyntaxTree.ID], areNegated: Bool) -> (first: Int32, count: Int32) {
        guard scope.isEmpty else { return (row(ids), Int32(ids.count)) }
        let made = memberships.operands(ids, areNegated: areNegated).map { operand in
            switch operand {
            case .part(let id): operation(id)
            case .memberships(let ids): member(ids, isNegated: areNegated)
            }
        }
        return (row(of: made), Int32(made.count))
    }

    private mutating func member(_ ids: [SyntaxTree.ID], isNegated: Bool) -> Int32 {
        let offset = tree[ids[0]].offset
        guard let membership = memberships.membership(ids) else { return emit(.noOverload, offset) }
        sets.append(ConstantSet(membership))
        let member = emit(.member(slot: Int32(membership.slot), set: Int32(sets.count - 1)), membership.offset)
        return isNegated ? emit(.not(member), offset) : member
    }

    private mutating func operation(_ id: SyntaxTree.ID) -> Int32 {
        let offset = tree[id].offset
        if scope.isEmpty, let found = memberships[id] { return member([id], isNegated: found.isNegated) }
        if let value = tree.constant(id) {
            places[id] = constants.count
            return constant(value, offset)
        }
        switch tree[id].form {
        case .literal(let value): return constant(value, offset)
        case .name, .select: return named(id)
        case .presence(let operand, let name):
            let operand = operation(operand)
            return emit(.presence(operand, field: field(name)), offset)
        case .index(let one, let other):
            let (one, other) = (operation(one), operation(other))
            return emit(.index(one, other), offset)
        case .unary(let sign, let operand):
            let operand = operation(operand)
            return emit(sign == .not ? .not(operand) : .negate(operand), offset)
        case .binary(let sign, let one, let other):
            let (one, other) = (operation(one), operation(other))
            return emit(Self.operation(sign, one, other), offset)
        case .all(let ids):
            let (first, count) = row(ids, areNegated: true)
            return emit(.all(first: first, count: count), offset)
        case .any(let ids):
            let (first, count) = row(ids, areNegated: false)
            return emit(.any(first: first, count: count), offset)
        case .conditional(let condition, let one, let other):
            return emit(.conditional(first: row([condition, one, other])), offset)
        case .call(let name, let target, let arguments): return call(name, target, arguments, offset)
        case .list(let ids): return emit(.list(first: row(ids), count: Int32(ids.count)), offset)
        case .map(let entries):
            return emit(.map(first: row(entries.flatMap { [$0.key, $0.value] }), count: Int32(entries.count)), offset)
        case .fold(let fold): return self.fold(fold, offset)
        }
    }

    private static func operation(_ sign: Operator, _ one: Int32, _ other: Int32) -> Operation {
        switch sign {
        case .add: .add(one, other)
        case .subtract: .subtract(one, other)
        case .multiply: .multiply(one, other)
        case .divide: .divide(one, other)
        case .modulo: .modulo(one, other)
        case .equal: .equal(one, other)
        case .unequal: .unequal(one, other)
        case .less: .less(one, other)
        case .lessOrEqual: .lessOrEqual(one, other)
        case .more: .more(one, other)
        case .moreOrEqual: .moreOrEqual(one, other)
        case .contained: .contained(one, other)
        }
    }

    // MARK: Names

    private mutating func named(_ id: SyntaxTree.ID) -> Int32 {
        let offset = tree[id].offset
        if let (parts, isRoot) = tree.dottedName(id), isRoot || !scope.contains(parts[0]) {
            switch environment.meaning(of: parts, isRoot: isRoot) {
            case (let meaning, parts.count)?:
                switch meaning {
                case .variable(let slot): return emit(.variable(slot: Int32(slot)), offset)
                case .type(let type): return constant(.type(type), offset)
                }
            case nil: return unresolved(parts, isRoot: isRoot, offset)
            default: break
            }
        }
        switch tree[id].form {
        case .select(let operand, let name):
            let operand = operation(operand)
            return emit(.select(operand, field: field(name)), offset)
        case .name(let name, _):
            return emit(.local(Int32(scope.lastIndex(of: name) ?? 0)), offset)
        default: return emit(.noOverload, offset)
        }
    }

    /// The evaluation finds out which prefix of the name is bound.
    private mutating func unresolved(_ parts: [String], isRoot: Bool, _ offset: Int) -> Int32 {
        names.append(
            contentsOf: stride(from: parts.count, to: 0, by: -1).map { count in
                environment.candidates(parts.prefix(count).joined(separator: "."), isRoot: isRoot)
            })
        fields += parts
        return emit(
            .unresolved(
                first: Int32(names.count - parts.count), fields: Int32(fields.count - parts.count), count: Int32(parts.count)
            ),
            offset)
    }

    // MARK: Calls

    private mutating func call(
        _ name: String, _ target: SyntaxTree.ID?, _ arguments: [SyntaxTree.ID], _ offset: Int
    ) -> Int32 {
        let ids = (target.map { [$0] } ?? []) + arguments
        guard let function = environment.function(named: name) else {
            fields.append(environment.unknownFunction(name))
            return emit(.unknownFunction(Int32(fields.count - 1)), offset)
        }
        guard
            function.overloads.contains(where: { $0.isMethod == (target != nil) && $0.parameters.count == ids.count })
        else {
            return emit(.noOverload, offset)
        }
        if function == .matches, case .literal(.string(let text)) = tree[ids[1]].form {
            do {
                let pattern = try Pattern(text, limit: environment.limits.patternInstructions)
                let operand = operation(ids[0])
                patterns.append(pattern)
                return emit(.matches(operand, pattern: Int32(patterns.count - 1)), offset)
            } catch {
                problems.append(
                    Problem(.pattern, "the pattern: \(error.message), at \(error.offset)", at: tree[ids[1]].offset))
                return emit(.badPattern, offset)
            }
        }
        return emit(.call(function, first: row(ids), count: Int32(ids.count)), offset)
    }

    private mutating func fold(_ fold: SyntaxTree.Fold, _ offset: Int) -> Int32 {
        let range = operation(fold.range)
        scope.append(fold.variable)
        if let second = fold.second { scope.append(second) }
        deepest = max(deepest, scope.count)
        let predicate = fold.predicate.map { operation($0) }
        let transform = fold.transform.map { operation($0) }
        scope.removeLast(fold.second == nil ? 1 : 2)
        folds.append(
            FoldOperation(
                kind: fold.kind, range: range, predicate: predicate, transform: transform, local: Int32(scope.count),
                hasSecond: fold.second != nil))
        return emit(.fold(Int32(folds.count - 1)), offset)
    }
}

extension SyntaxTree {
    /// Returns the value of a literal, or of a list of literals.
    func constant(_ id: ID) -> ExpressionValue? {
        switch self[id].form {
        case .literal(let value): return value
        case .list(let ids):
            var values: [ExpressionValue] = []
            for id in ids {
                guard let value = constant(id) else { return nil }
                values.append(value)
            }
            return .list(values)
        default: return nil
        }
    }
}
