/// What a condition may cost, before it is evaluated: in the same units as the evaluation counts, with sizes as far as they are
/// declared.
struct CostEstimate {
    /// Of a part: what it costs at least and at most, and how large its value may be.
    struct Part {
        var least: Int
        var most: Int
        var size: Int
    }

    /// Above all limits; sums of a few of these do not overflow.
    static let unbounded = 1 << 40

    private let tree: SyntaxTree
    private let types: [ExpressionType]
    private let environment: ExpressionEnvironment
    private var scope: [(name: String, size: Int)] = []

    static func of(_ tree: SyntaxTree, types: [ExpressionType], in environment: ExpressionEnvironment) -> Part {
        var estimate = CostEstimate(tree: tree, types: types, environment: environment)
        return estimate.part(tree.root)
    }

    private init(tree: SyntaxTree, types: [ExpressionType], environment: ExpressionEnvironment) {
        self.tree = tree
        self.types = types
        self.environment = environment
    }

    private static func product(_ one: Int, _ other: Int) -> Int {
        let (product, overflow) = one.multipliedReportingOverflow(by: other)
        return overflow ? unbounded : min(product, unbounded)
    }

    private mutating func part(_ id: SyntaxTree.ID) -> Part {
        var part = find(id)
        part.least = min(part.least, Self.unbounded)
        part.most = min(part.most, Self.unbounded)
        part.size = min(part.size, Self.unbounded)
        return part
    }

    /// What has no size is of size 1.
    private func size(of type: ExpressionType, _ declared: Int? = nil) -> Int {
        switch type {
        case .string, .bytes, .list, .map, .dynamic, .free: declared ?? environment.limits.variableSize
        default: 1
        }
    }

    private mutating func find(_ id: SyntaxTree.ID) -> Part {
        let form = tree[id].form
        if let value = tree.constant(id) { return Part(least: 0, most: 0, size: value.extent) }
        switch form {
        case .literal(let value): return Part(least: 0, most: 0, size: value.extent)
        case .name, .select: return named(id)
        case .presence(let operand, _): return sum([operand], 1, size: 1)
        case .index(let one, let other): return sum([one, other], 1, size: size(of: types[id]))
        case .unary(_, let operand): return sum([operand], 1, size: 1)
        case .binary(let sign, let one, let other): return binary(sign, one, other)
        case .all(let operands), .any(let operands):
            let parts = operands.map { part($0) }
            return Part(least: 1 + parts[0].least, most: parts.reduce(parts.count) { $0 + $1.most }, size: 1)
        case .conditional(let condition, let one, let other):
            let (condition, one, other) = (part(condition), part(one), part(other))
            return Part(
                least: 1 + condition.least + min(one.least, other.least),
                most: 1 + condition.most + max(one.most, other.most), size: max(one.size, other.size))
        case .call(let name, let target, let arguments): return call(name, (target.map { [$0] } ?? []) + arguments, id)
        case .list(let elements): return sum(elements, 10 + elements.count, size: elements.count)
        case .map(let entries):
            return sum(entries.flatMap { [$0.key, $0.value] }, 30 + 2 * entries.count, size: entries.count)
        case .fold(let fold): return self.fold(fold)
        }
    }

    private mutating func sum(_ ids: [SyntaxTree.ID], _ own: Int, size: Int) -> Part {
        let parts = ids.map { part($0) }
        return Part(
            least: own + parts.reduce(0) { $0 + $1.least }, most: own + parts.reduce(0) { $0 + $1.most }, size: size)
    }

    private mutating func named(_ id: SyntaxTree.ID) -> Part {
        if let (parts, isRoot) = tree.dottedName(id) {
            if !isRoot, let local = scope.last(where: { $0.name == parts[0] }) {
                let size = parts.count == 1 ? local.size : size(of: types[id])
                return Part(least: parts.count, most: parts.count, size: size)
            }
            if case (.variable(let slot), let count)? = environment.meaning(of: parts, isRoot: isRoot) {
                let variable = environment.variables[slot]
                let own = 1 + parts.count - count
                return Part(least: own, most: own, size: size(of: types[id], variable.maximumSize))
            }
            // Each part is looked for.
            return Part(least: 1, most: parts.count, size: size(of: types[id]))
        }
        guard case .select(let operand, _) = tree[id].form else { return Part(least: 1, most: 1, size: size(of: types[id])) }
        return sum([operand], 1, size: size(of: types[id]))
    }

    private mutating func binary(_ sign: Operator, _ one: SyntaxTree.ID, _ other: SyntaxTree.ID) -> Part {
        let (one, other) = (part(one), part(other))
        let smaller = min(one.size, other.size)
        let larger = max(one.size, other.size)
        let (own, size): (Int, Int) =
            switch sign {
            case .add: (1 + (one.size + other.size) / 10, larger == 1 ? 1 : one.size + other.size)
            // Elements that have elements are bounded by the evaluation.
            case .equal, .unequal: (1 + (smaller == 1 ? 0 : smaller), 1)
            case .less, .lessOrEqual, .more, .moreOrEqual: (1 + smaller / 10, 1)
            case .contained: (1 + other.size, 1)
            default: (1, 1)
            }
        return Part(least: 1 + one.least + other.least, most: own + one.most + other.most, size: size)
    }

    private mutating func call(_ name: String, _ ids: [SyntaxTree.ID], _ id: SyntaxTree.ID) -> Part {
        let parts = ids.map { part($0) }
        let first = parts.first?.size ?? 1
        let second = parts.count > 1 ? parts[1].size : 1
        var own = 1
        var size = size(of: types[id])
        switch environment.function(named: name) {
        case .contains: own = 1 + Self.product((first + 9) / 10, (second + 9) / 10)
        case .startsWith, .endsWith: own = 1 + second / 10
        case .matches:
            // As many instructions as the pattern has letters, which most have, or as many as are allowed.
            var instructions = environment.limits.patternInstructions
            if ids.count > 1, case .literal(.string(let text)) = tree[ids[1]].form,
                let pattern = try? Pattern(text, limit: instructions)
            {
                own = pattern.cost(of: 4 * first)
            } else {
                instructions = min(instructions, max(2, 2 * second))
                own = 1 + second + (4 * first + 1) * (instructions + 3) / 4
            }
        case .string, .bytes:
            own = 1 + first / 10
            // A number has as many letters at most.
            size = max(first, 40)
        case .within: own = 5
        case .size, .bool, .int, .uint, .double, .timestamp, .duration, .version: own = 1 + first / 10
        case .dyn: size = first
        default: break
        }
        return Part(
            least: 1 + parts.reduce(0) { $0 + $1.least }, most: own + parts.reduce(0) { $0 + $1.most }, size: size)
    }

    private mutating func fold(_ fold: SyntaxTree.Fold) -> Part {
        let range = part(fold.range)
        let element: ExpressionType =
            switch types[fold.range] {
            case .list(let element): element
            case .map(let key, _): key
            default: .dynamic
            }
        scope.append((fold.variable, size(of: element)))
        let inner = [fold.predicate, fold.transform].compactMap { $0.map { part($0) } }
        scope.removeLast()
        let step = 1 + inner.reduce(0) { $0 + $1.most }
        let most = Self.product(range.size, step)
        let isList = fold.kind == .map || fold.kind == .filter
        return Part(
            least: 1 + range.least, most: 1 + range.most + range.size / 10 + most,
            size: isList ? range.size : 1)
    }
}
