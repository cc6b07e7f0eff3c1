/// Estimates the cost of a condition before its evaluation, in the same units as the evaluation counts, with the declared
/// sizes of variables.
struct CostEstimate {
    /// The largest size of a value.
    struct Extent {
        /// The size as `size()` counts it.
        var size: Int
        /// The bytes of a text in UTF-8. For other values this is the size.
        var bytes: Int

        static let one = Extent(size: 1, bytes: 1)

        init(size: Int, bytes: Int? = nil) {
            self.size = size
            self.bytes = bytes ?? size
        }

        static func larger(_ one: Extent, _ other: Extent) -> Extent {
            Extent(size: max(one.size, other.size), bytes: max(one.bytes, other.bytes))
        }
    }

    /// The estimate of a part: its least and its greatest cost, and the largest size of its value.
    struct Part {
        var least: Int
        var most: Int
        var extent = Extent.one
    }

    /// Greater than all limits; sums of a few of these do not overflow.
    static let unbounded = 1 << 40

    private let tree: SyntaxTree
    private let types: [ExpressionType]
    private let environment: ExpressionEnvironment
    private let memberships: Memberships
    private var scope: [(name: String, extent: Extent)] = []

    static func of(
        _ tree: SyntaxTree, types: [ExpressionType], _ memberships: Memberships, in environment: ExpressionEnvironment
    ) -> Part {
        var estimate = CostEstimate(tree: tree, types: types, memberships: memberships, environment: environment)
        return estimate.part(tree.root)
    }

    private init(
        tree: SyntaxTree, types: [ExpressionType], memberships: Memberships, environment: ExpressionEnvironment
    ) {
        self.tree = tree
        self.types = types
        self.environment = environment
        self.memberships = memberships
    }

    private static func product(_ one: Int, _ other: Int) -> Int {
        let (product, overflow) = one.multipliedReportingOverflow(by: other)
        return overflow ? unbounded : min(product, unbounded)
    }

    private static func sum(_ one: Int, _ other: Int) -> Int { min(one + other, unbounded) }

    private mutating func part(_ id: SyntaxTree.ID) -> Part {
        var part = find(id)
        part.least = min(part.least, Self.unbounded)
        part.most = min(part.most, Self.unbounded)
        part.extent = Extent(size: min(part.extent.size, Self.unbounded), bytes: min(part.extent.bytes, Self.unbounded))
        return part
    }

    /// The largest size of a value that is not declared.
    private func extent(of type: ExpressionType, _ size: Int? = nil) -> Extent {
        if size == nil, let bytes = environment.limits.unknownBytes {
            switch type {
            case .string, .dynamic, .free: return Extent(size: bytes)
            default: break
            }
        }
        let size = size ?? environment.limits.variableSize
        return switch type {
        // A code point has up to four bytes.
        case .string, .dynamic, .free: Extent(size: size, bytes: Self.product(size, 4))
        case .bytes, .list, .map: Extent(size: size)
        default: .one
        }
    }

    /// The largest size of an element of a list, or of a key or a value of a map.
    private func extent(ofElement type: ExpressionType) -> Extent { extent(of: type, environment.limits.elementSize) }

    private func extent(of variable: ExpressionEnvironment.Variable) -> Extent {
        let declared = extent(of: variable.type, variable.maximumSize)
        guard let bytes = variable.maximumBytes else { return declared }
        return switch variable.type {
        case .string, .dynamic, .free: Extent(size: bytes)
        default: declared
        }
    }

    private mutating func find(_ id: SyntaxTree.ID) -> Part {
        if scope.isEmpty, let found = memberships[id] { return lookup(of: [id], found) }
        if let value = tree.constant(id) { return Part(least: 0, most: 0, extent: Extent(size: value.extent)) }
        switch tree[id].form {
        case .literal(let value): return Part(least: 0, most: 0, extent: Extent(size: value.extent))
        case .name, .select: return named(id)
        case .presence(let operand, let field): return sum([part(operand)], 1 + Self.lookup(field))
        case .index(let one, let other):
            let (one, other) = (part(one), part(other))
            return sum([one, other], 1 + other.extent.bytes / 10, extent(of: types[id]))
        case .unary(_, let operand): return sum([part(operand)], 1)
        case .binary(let sign, let one, let other): return binary(sign, one, other, id)
        case .all(let operands): return logic(operands, areNegated: true)
        case .any(let operands): return logic(operands, areNegated: false)
        case .conditional(let condition, let one, let other):
            let (condition, one, other) = (part(condition), part(one), part(other))
            return Part(
                least: 1 + condition.least + min(one.least, other.least),
                most: 1 + condition.most + max(one.most, other.most), extent: .larger(one.extent, other.extent))
        case .call(let name, let target, let arguments): return call(name, (target.map { [$0] } ?? []) + arguments, id)
        case .list(let elements):
            return sum(elements.map { part($0) }, 10 + elements.count, Extent(size: elements.count))
        case .map(let entries):
            let keys = entries.map { part($0.key) }
            let own = 30 + 2 * entries.count + keys.reduce(0) { $0 + $1.extent.bytes / 10 }
            return sum(keys + entries.map { part($0.value) }, own, Extent(size: entries.count))
        case .fold(let fold): return self.fold(fold)
        }
    }

    /// The cost of `||` or `&&`, of which the first operand may decide.
    private mutating func logic(_ ids: [SyntaxTree.ID], areNegated: Bool) -> Part {
        guard scope.isEmpty else { return logic(ids.map { part($0) }) }
        return logic(
            memberships.operands(ids, areNegated: areNegated).map { operand in
                switch operand {
                case .part(let id): return part(id)
                case .memberships(let ids):
                    guard let first = memberships[ids[0]] else { return Part(least: 1, most: 1) }
                    return lookup(of: ids, first)
                }
            })
    }

    private func logic(_ parts: [Part]) -> Part {
        Part(least: 1 + parts[0].least, most: parts.reduce(parts.count) { $0 + $1.most })
    }

    /// The cost of memberships of one variable, which are one lookup in a set. Each element of a list is looked up.
    private func lookup(of ids: [SyntaxTree.ID], _ first: Memberships.Entry) -> Part {
        let own = ConstantSet.cost(of: memberships.count(ids)) + (first.isNegated ? 1 : 0)
        let variable = environment.variables[first.slot]
        guard case .list = variable.type else { return Part(least: own, most: own) }
        return Part(least: own, most: Self.sum(own, ConstantSet.cost(ofElements: extent(of: variable).size)))
    }

    private func sum(_ parts: [Part], _ own: Int, _ extent: Extent = .one) -> Part {
        Part(
            least: 1 + parts.reduce(0) { $0 + $1.least }, most: parts.reduce(own) { Self.sum($0, $1.most) }, extent: extent)
    }

    /// The cost of looking up a key, which is compared with all of its bytes.
    private static func lookup(_ key: String) -> Int { key.utf8.count / 10 }

    // MARK: Names

    private mutating func named(_ id: SyntaxTree.ID) -> Part {
        if let (parts, isRoot) = tree.dottedName(id) {
            let fields = { (count: Int) in parts[count...].reduce(0) { $0 + 1 + Self.lookup($1) } }
            if !isRoot, let local = scope.last(where: { $0.name == parts[0] }) {
                let own = 1 + fields(1)
                return Part(least: own, most: own, extent: parts.count == 1 ? local.extent : extent(of: types[id]))
            }
            if case (.variable(let slot), let count)? = environment.meaning(of: parts, isRoot: isRoot) {
                let own = 1 + fields(count)
                // The declared size of a map does not limit its contents.
                let isWhole = count == parts.count
                // An environment without a declaration of the dotted name searches for it, and first for longer names.
                let lengths = (count...parts.count).map { parts.prefix($0).reduce($0 - 1) { $0 + $1.utf8.count } }
                let search = count > 1 ? lengths.reduce(0) { $0 + $1 / 10 } : 0
                return Part(
                    least: own, most: own + search,
                    extent: isWhole ? extent(of: environment.variables[slot]) : extent(of: types[id]))
            }
            guard parts.count > 1 else {
                let search = environment.candidates(parts[0], isRoot: isRoot).reduce(0) { sum, name in
                    sum + (name.utf8.count > ExpressionLimits.freeNameBytes ? Self.lookup(name) : 0)
                }
                return Part(least: 1, most: 1 + search, extent: extent(of: types[id]))
            }
            // Each part is searched for in each namespace.
            var most = fields(1)
            for count in 1...parts.count {
                let names = environment.candidates(parts.prefix(count).joined(separator: "."), isRoot: isRoot)
                most = names.reduce(most + 1) { $0 + Self.lookup($1) }
            }
            return Part(least: 1, most: most, extent: extent(of: types[id]))
        }
        guard case .select(let operand, let field) = tree[id].form else {
            return Part(least: 1, most: 1, extent: extent(of: types[id]))
        }
        return sum([part(operand)], 1 + Self.lookup(field), extent(of: types[id]))
    }

    // MARK: Operators

    private mutating func binary(
        _ sign: Operator, _ first: SyntaxTree.ID, _ second: SyntaxTree.ID, _ id: SyntaxTree.ID
    ) -> Part {
        let (one, other) = (part(first), part(second))
        let (left, right) = (one.extent, other.extent)
        switch sign {
        case .add:
            let isSized =
                switch types[id] {
                case .string, .bytes, .list, .map, .dynamic, .free: true
                default: false
                }
            let bytes = Self.sum(left.bytes, right.bytes)
            let sum = isSized ? Extent(size: Self.sum(left.size, right.size), bytes: bytes) : .one
            return self.sum([one, other], 1 + bytes / 10, sum)
        case .equal, .unequal:
            return sum([one, other], 1 + equality(types[first], left, types[second], right))
        case .less, .lessOrEqual, .more, .moreOrEqual: return sum([one, other], 1 + min(left.bytes, right.bytes) / 10)
        case .contained:
            if case .map = types[second] { return sum([one, other], 1 + left.bytes / 10) }
            let element: ExpressionType = if case .list(let element) = types[second] { element } else { .dynamic }
            let step = 1 + equality(types[first], left, element, extent(ofElement: element))
            return sum([one, other], Self.sum(1 + left.bytes / 10, Self.product(right.size, step)))
        default: return sum([one, other], 1)
        }
    }

    /// The units of a comparison with all elements. The evaluation limits the depth of elements that are not declared.
    private func equality(_ one: ExpressionType, _ left: Extent, _ other: ExpressionType, _ right: Extent) -> Int {
        let count = min(left.size, right.size)
        switch (one, other) {
        case (.list(let one), .list(let other)):
            let step = 1 + equality(one, extent(ofElement: one), other, extent(ofElement: other))
            return Self.product(count, step)
        case (.map(let key, let one), .map(_, let other)):
            let step = 1 + equality(one, extent(ofElement: one), other, extent(ofElement: other))
            return Self.product(count, step + extent(ofElement: key).bytes / 10)
        case (.list, .dynamic), (.dynamic, .list), (.map, .dynamic), (.dynamic, .map):
            let known = one == .dynamic ? other : one
            return equality(known, left, known, right)
        // The value is a text, or contains texts.
        case (.dynamic, .dynamic) where environment.limits.unknownBytes == nil:
            return max(Self.product(count, 1 + extent(ofElement: .dynamic).bytes / 10), min(left.bytes, right.bytes) / 10)
        default: return min(left.bytes, right.bytes) / 10
        }
    }

    // MARK: Calls

    private mutating func call(_ name: String, _ ids: [SyntaxTree.ID], _ id: SyntaxTree.ID) -> Part {
        let parts = ids.map { part($0) }
        let first = parts.first?.extent ?? .one
        let second = parts.count > 1 ? parts[1].extent : .one
        var own = 1
        var extent = extent(of: types[id])
        switch environment.function(named: name) {
        case .contains: own = 1 + Self.product((first.bytes + 9) / 10, (second.bytes + 9) / 10)
        case .startsWith, .endsWith: own = 1 + second.bytes / 10
        case .matches:
            let instructions = environment.limits.patternInstructions
            if ids.count > 1, case .literal(.string(let text)) = tree[ids[1]].form {
                own = (try? Pattern(text, limit: instructions))?.cost(of: first.bytes) ?? 1
            } else {
                // The cost of a pattern with the largest allowed number of instructions.
                own = 2 + second.bytes + instructions / 4
                own = Self.sum(own, Self.product(first.bytes + 1, instructions + 3) / 4)
            }
        case .string, .bytes:
            own = 1 + first.bytes / 10
            // The text of a number has at most as many characters.
            extent = Extent(size: max(first.bytes, 40))
        case .within: own = 5
        case .version:
            own = 1 + first.bytes / 10
            extent = Extent(size: Self.sum(10, Self.product(first.bytes, 3)))
        case .size, .bool, .int, .uint, .double, .timestamp, .duration: own = 1 + first.bytes / 10
        case .dyn: extent = first
        // The argument is a time zone.
        default: own = 1 + second.bytes / 10
        }
        return sum(parts, own, extent)
    }

    private mutating func fold(_ fold: SyntaxTree.Fold) -> Part {
        let range = part(fold.range)
        // The types of the only variable, and of each of two.
        let (element, key, held): (ExpressionType, ExpressionType, ExpressionType) =
            switch types[fold.range] {
            case .list(let element): (element, .int, element)
            case .map(let key, let value): (key, key, value)
            default: (.dynamic, .dynamic, .dynamic)
            }
        if fold.kind == .bind {
            scope.append((fold.variable, range.extent))
            let body = fold.transform.map { part($0) } ?? Part(least: 0, most: 0, extent: .one)
            scope.removeLast()
            return Part(
                least: 1 + range.least + body.least, most: Self.sum(Self.sum(1, range.most), body.most), extent: body.extent)
        }
        scope.append((fold.variable, extent(ofElement: fold.second == nil ? element : key)))
        if let second = fold.second { scope.append((second, extent(ofElement: held))) }
        let inner = [fold.predicate, fold.transform].compactMap { $0.map { part($0) } }
        scope.removeLast(fold.second == nil ? 1 : 2)
        let step = inner.reduce(1) { Self.sum($0, $1.most) }
        let steps = Self.sum(range.extent.size / 10, Self.product(range.extent.size, step))
        let isList = fold.kind == .map || fold.kind == .filter || fold.kind == .transformList || fold.kind == .transformMap
        return Part(
            least: 1 + range.least, most: Self.sum(1 + range.most, steps),
            extent: isList ? Extent(size: range.extent.size) : .one)
    }
}
