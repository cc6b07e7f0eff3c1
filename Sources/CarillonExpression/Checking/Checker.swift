/// Finds the type of each part of a condition before its evaluation, and rejects parts that cannot be valid. The checker
/// never changes the value of a condition ("Gradual Type Checking" in the language's definition). In contrast to the
/// definition, numbers of different types can be compared, as in the evaluation.
struct Checker {
    private let tree: SyntaxTree
    private let environment: ExpressionEnvironment
    private var substitution = Substitution()
    private var scope: [(name: String, type: ExpressionType)] = []
    private var problems: [Problem] = []
    /// The type of each node; dynamic if the node was not checked.
    private(set) var types: [ExpressionType]

    /// Returns the types of all nodes, or throws all problems.
    static func check(_ tree: SyntaxTree, in environment: ExpressionEnvironment) throws(ProblemList) -> [ExpressionType] {
        var checker = Checker(tree, environment)
        _ = checker.type(tree.root)
        guard checker.problems.isEmpty else { throw ProblemList(problems: checker.problems) }
        return checker.types.map { checker.substitution.resolved($0).settled }
    }

    private init(_ tree: SyntaxTree, _ environment: ExpressionEnvironment) {
        self.tree = tree
        self.environment = environment
        types = Array(repeating: .dynamic, count: tree.nodes.count)
    }

    /// Records a problem. The type of the part is then dynamic, so that one mistake is reported once.
    private mutating func refuse(_ code: ExpressionProblem.Code, _ message: String, at offset: Int) -> ExpressionType {
        if problems.count < 100 { problems.append(Problem(code, message, at: offset)) }
        return .dynamic
    }

    private mutating func type(_ id: SyntaxTree.ID) -> ExpressionType {
        let type = substitution.resolved(find(id))
        types[id] = type
        return type
    }

    private mutating func find(_ id: SyntaxTree.ID) -> ExpressionType {
        let offset = tree[id].offset
        switch tree[id].form {
        case .literal(let value): return type(of: value)
        case .name, .select: return named(id)
        case .presence(let operand, let field):
            _ = select(field, of: type(operand), at: offset)
            return .bool
        case .index(let operand, let index): return element(of: type(operand), at: type(index), offset)
        case .unary(let sign, let operand): return unary(sign, type(operand), at: offset)
        case .binary(let sign, let one, let other):
            let areConstants = tree.constant(one) != nil && tree.constant(other) != nil
            return binary(sign, type(one), type(other), areConstants, at: offset)
        case .all(let operands), .any(let operands):
            for operand in operands { expectBool(type(operand), tree[operand].offset) }
            return .bool
        case .conditional(let condition, let one, let other):
            expectBool(type(condition), tree[condition].offset)
            let (one, other) = (type(one), type(other))
            if substitution.accepts(one, other) { return more(one, other) }
            if substitution.accepts(other, one) { return other }
            return refuse(.type, "the two sides have different types, \(text(one)) and \(text(other))", at: offset)
        case .call(let name, let target, let arguments): return call(name, target, arguments, at: offset)
        case .list(let elements): return .list(joined(elements.map { type($0) }))
        case .map(let entries):
            let keys = entries.map { (type: type($0.key), offset: tree[$0.key].offset) }
            for key in keys where !isKey(key.type) {
                _ = refuse(.type, "\(text(key.type)) is not a valid type of a key", at: key.offset)
            }
            // A key type never contains other types, which could double with each map in a map.
            let key = substitution.resolved(joined(keys.map(\.type)))
            let isScalar = [.int, .uint, .bool, .string].contains(key)
            return .map(key: isScalar ? key : .dynamic, value: joined(entries.map { type($0.value) }))
        case .fold(let fold): return self.fold(fold)
        }
    }

    private func text(_ type: ExpressionType) -> String { substitution.resolved(type).description }

    private func type(of value: ExpressionValue) -> ExpressionType { value.type }

    /// Returns the wider of two types that accept each other.
    private func more(_ one: ExpressionType, _ other: ExpressionType) -> ExpressionType {
        switch (substitution.resolved(one), substitution.resolved(other)) {
        case (.dynamic, _), (_, .dynamic): .dynamic
        case (.null, let other): other
        case (.list(let one), .list(let other)): .list(more(one, other))
        case (.map(let key, let value), .map(let otherKey, let otherValue)):
            .map(key: more(key, otherKey), value: more(value, otherValue))
        case (let one, _): one
        }
    }

    private func isKey(_ type: ExpressionType) -> Bool {
        switch type {
        case .int, .uint, .bool, .string, .dynamic, .free: true
        default: false
        }
    }

    private mutating func joined(_ types: [ExpressionType]) -> ExpressionType {
        guard var joined = types.first else { return substitution.fresh() }
        for next in types.dropFirst() where joined != .dynamic {
            if substitution.accepts(joined, next) {
                joined = more(joined, next)
            } else if substitution.accepts(next, joined) {
                joined = next
            } else {
                joined = .dynamic
            }
        }
        return joined
    }

    private mutating func expectBool(_ type: ExpressionType, _ offset: Int) {
        guard !substitution.accepts(.bool, type) else { return }
        _ = refuse(.type, "a bool is expected here, not \(text(type))", at: offset)
    }

    // MARK: Names

    private mutating func named(_ id: SyntaxTree.ID) -> ExpressionType {
        let offset = tree[id].offset
        if let (parts, isRoot) = tree.dottedName(id), isRoot || !scope.contains(where: { $0.name == parts[0] }) {
            guard let (meaning, count) = environment.meaning(of: parts, isRoot: isRoot) else {
                if parts.count > 1 { return named(firstOf: id) }
                return refuse(.unknownName, environment.unknownName(parts[0]), at: offset)
            }
            if count == parts.count {
                switch meaning {
                case .variable(let slot): return environment.variables[slot].type
                case .type: return .type
                }
            }
        }
        switch tree[id].form {
        case .select(let operand, let field): return select(field, of: type(operand), at: offset)
        case .name(let name, _): return scope.last { $0.name == name }?.type ?? .dynamic
        default: return .dynamic
        }
    }

    /// For an unknown dotted name, the error names its first part.
    private mutating func named(firstOf id: SyntaxTree.ID) -> ExpressionType {
        var first = id
        while case .select(let operand, _) = tree[first].form { first = operand }
        return type(first)
    }

    private mutating func select(_ field: String, of operand: ExpressionType, at offset: Int) -> ExpressionType {
        switch operand {
        case .map(let key, let value):
            guard substitution.accepts(key, .string) else {
                return refuse(.type, "the keys of \(text(operand)) are not names", at: offset)
            }
            return value
        case .dynamic, .free: return .dynamic
        default: return refuse(.type, "\(text(operand)) has no field \(field)", at: offset)
        }
    }

    private mutating func element(of operand: ExpressionType, at index: ExpressionType, _ offset: Int) -> ExpressionType {
        switch operand {
        case .list(let element):
            if substitution.accepts(.int, index) { return element }
        case .map(let key, let value):
            if substitution.accepts(key, index) { return value }
        case .dynamic, .free: return .dynamic
        default: return refuse(.type, "\(text(operand)) has no elements for [ ]", at: offset)
        }
        return refuse(.type, "\(text(operand)) is not indexed by \(text(index))", at: offset)
    }

    // MARK: Operators

    private mutating func unary(_ sign: Operator.Unary, _ operand: ExpressionType, at offset: Int) -> ExpressionType {
        let allowed: [ExpressionType] = sign == .not ? [.bool] : [.int, .double]
        let fitting = allowed.filter { type in substitution.trying { $0.accepts(type, operand) } }
        guard let first = fitting.first else {
            return refuse(.type, "\(sign.rawValue) does not take \(text(operand))", at: offset)
        }
        return fitting.count == 1 ? first : .dynamic
    }

    private static let sums: [Operator: [(ExpressionType, ExpressionType, ExpressionType)]] = {
        let numbers: [(ExpressionType, ExpressionType, ExpressionType)] = [
            (.int, .int, .int), (.uint, .uint, .uint), (.double, .double, .double),
        ]
        return [
            .add: numbers + [
                (.string, .string, .string), (.bytes, .bytes, .bytes), (.duration, .duration, .duration),
                (.timestamp, .duration, .timestamp), (.duration, .timestamp, .timestamp),
            ],
            .subtract: numbers + [
                (.timestamp, .timestamp, .duration), (.timestamp, .duration, .timestamp), (.duration, .duration, .duration),
            ],
            .multiply: numbers, .divide: numbers, .modulo: Array(numbers.prefix(2)),
        ]
    }()

    private mutating func binary(
        _ sign: Operator, _ one: ExpressionType, _ other: ExpressionType, _ areConstants: Bool, at offset: Int
    ) -> ExpressionType {
        // Two constants of different types are probably a mistake. A variable can be compared with a constant of any number
        // type.
        func areComparable(_ one: ExpressionType, _ other: ExpressionType) -> Bool {
            one.isNumeric && other.isNumeric && (one == other || !areConstants)
        }
        switch sign {
        case .add, .subtract, .multiply, .divide, .modulo: return sum(sign, one, other, at: offset)
        case .equal, .unequal:
            if areComparable(one, other) { return .bool }
            if substitution.accepts(one, other) || substitution.accepts(other, one) { return .bool }
        case .less, .lessOrEqual, .more, .moreOrEqual:
            if areComparable(one, other) { return .bool }
            let ordered: [ExpressionType] = [.bool, .int, .uint, .double, .string, .bytes, .timestamp, .duration]
            for type in ordered
            where substitution.trying({ $0.accepts(type, one) && $0.accepts(type, other) }) {
                return .bool
            }
            if one == .dynamic && other.isNumeric || other == .dynamic && one.isNumeric { return .bool }
        case .contained:
            switch other {
            case .list(let element):
                if areComparable(one, element) { return .bool }
                if substitution.accepts(element, one) { return .bool }
            case .map(let key, _):
                if areComparable(one, key) { return .bool }
                if substitution.accepts(key, one) { return .bool }
            case .dynamic, .free: return .bool
            default: break
            }
        }
        return refuse(.type, "\(sign.rawValue) does not take \(text(one)) and \(text(other))", at: offset)
    }

    private mutating func sum(
        _ sign: Operator, _ one: ExpressionType, _ other: ExpressionType, at offset: Int
    ) -> ExpressionType {
        var results: [ExpressionType] = []
        for (left, right, result) in Self.sums[sign] ?? []
        where substitution.trying({ $0.accepts(left, one) && $0.accepts(right, other) }) {
            results.append(result)
        }
        if sign == .add {
            let list = ExpressionType.list(substitution.fresh())
            func fits(_ substitution: inout Substitution) -> ExpressionType? {
                substitution.accepts(list, one) && substitution.accepts(list, other) ? substitution.resolved(list) : nil
            }
            // If the type of one list's elements is unknown, the type of the result's elements is unknown.
            let isAny = [one, other].contains { if case .list(.dynamic) = substitution.resolved($0) { true } else { false } }
            if let result = results.isEmpty ? fits(&substitution) : substitution.trying(fits) {
                results.append(isAny ? .list(.dynamic) : result)
            }
        }
        guard let first = results.first else {
            let isNumeric = one.isNumeric && other.isNumeric
            let hint = isNumeric && one != other ? "; convert one of them, as in \(one.name)(…)" : ""
            return refuse(.type, "\(sign.rawValue) does not take \(text(one)) and \(text(other))\(hint)", at: offset)
        }
        return results.allSatisfy { $0 == first } ? first : .dynamic
    }

    // MARK: Calls

    private mutating func call(
        _ name: String, _ target: SyntaxTree.ID?, _ arguments: [SyntaxTree.ID], at offset: Int
    ) -> ExpressionType {
        let given = ((target.map { [$0] } ?? []) + arguments).map { type($0) }
        guard let function = environment.function(named: name) else {
            return refuse(.unknownName, environment.unknownFunction(name), at: offset)
        }
        var results: [ExpressionType] = []
        for declared in function.overloads
        where declared.isMethod == (target != nil) && declared.parameters.count == given.count {
            let overload = substitution.instance(declared)
            let result = substitution.trying { substitution -> ExpressionType? in
                let fits = zip(overload.parameters, given).allSatisfy { wanted, given in
                    function.widensNumbers && wanted == .double && given.isNumeric || substitution.accepts(wanted, given)
                }
                return fits ? substitution.resolved(overload.result) : nil
            }
            if let result { results.append(result) }
        }
        guard let first = results.first else {
            let types = given.map { text($0) }
            let written =
                target == nil
                ? "\(name)(\(types.joined(separator: ", ")))"
                : "\(types[0]).\(name)(\(types.dropFirst().joined(separator: ", ")))"
            return refuse(.type, "there is no \(written)", at: offset)
        }
        return results.allSatisfy { $0 == first } ? first : .dynamic
    }

    private mutating func fold(_ fold: SyntaxTree.Fold) -> ExpressionType {
        let range = type(fold.range)
        // The type of the only variable, and of the first and second of two.
        let element: ExpressionType
        var key = ExpressionType.dynamic
        var value = ExpressionType.dynamic
        switch range {
        case _ where fold.kind == .bind: element = range
        case .list(let type): (element, key, value) = (type, .int, type)
        case .map(let type, let held): (element, key, value) = (type, type, held)
        case .dynamic, .free: element = .dynamic
        default:
            element = refuse(
                .type, "\(fold.kind.rawValue)() goes over a list or a map, not \(text(range))", at: tree[fold.range].offset)
        }
        scope.append((fold.variable, fold.second == nil ? element : key))
        if let second = fold.second { scope.append((second, value)) }
        defer { scope.removeLast(fold.second == nil ? 1 : 2) }
        if let predicate = fold.predicate { expectBool(type(predicate), tree[predicate].offset) }
        let made = fold.transform.map { type($0) } ?? .dynamic
        switch fold.kind {
        case .all, .exists, .existsOne: return .bool
        case .filter: return .list(element)
        case .map, .transformList: return .list(made)
        case .transformMap: return .map(key: key, value: made)
        case .bind: return made
        }
    }
}

/// All problems of a condition.
struct ProblemList: Error {
    let problems: [Problem]
}
