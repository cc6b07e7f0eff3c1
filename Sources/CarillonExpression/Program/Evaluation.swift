/// One evaluation of a program. It always ends: every step is counted against the budget, and only macros repeat steps, once
/// for each element of their range.
struct Evaluation {
    private let shape: Unmanaged<Shape>
    private let operations: UnsafeBufferPointer<Operation>
    private let constants: UnsafeBufferPointer<ExpressionValue>
    private let bindings: UnsafePointer<ExpressionBindings>
    private let slots: UnsafeBufferPointer<ExpressionValue?>
    private let environment: UnsafePointer<ExpressionEnvironment>
    private var locals: [ExpressionValue]
    private(set) var spent = 0
    private let budget: Int

    /// Runs an evaluation. Its pointers are valid during the closure.
    ///
    /// - Parameter limit: The units that the evaluation can use, in addition to the limit of the environment.
    static func run<Result>(
        _ shape: Shape, constants: [ExpressionValue], _ bindings: borrowing ExpressionBindings,
        in environment: borrowing ExpressionEnvironment, limit: Int = .max,
        _ body: (inout Evaluation) throws(Fault) -> Result
    ) throws(Fault) -> Result {
        guard bindings.slots.count == environment.variables.count else {
            throw Fault(reason: .foreignBindings, operation: shape.root)
        }
        guard constants.count == shape.constants else { throw Fault(reason: .wrongConstants, operation: shape.root) }
        return try withUnsafePointer(to: environment) { environment throws(Fault) in
            try withUnsafePointer(to: bindings) { bindings throws(Fault) in
                try shape.operations.withUnsafeBufferPointer { operations throws(Fault) in
                    try constants.withUnsafeBufferPointer { constants throws(Fault) in
                        try bindings.pointee.slots.withUnsafeBufferPointer { slots throws(Fault) in
                            var evaluation = Evaluation(
                                shape: shape, operations: operations, constants: constants, bindings: bindings, slots: slots,
                                environment: environment, limit: limit)
                            return try body(&evaluation)
                        }
                    }
                }
            }
        }
    }

    private init(
        shape: Shape, operations: UnsafeBufferPointer<Operation>, constants: UnsafeBufferPointer<ExpressionValue>,
        bindings: UnsafePointer<ExpressionBindings>, slots: UnsafeBufferPointer<ExpressionValue?>,
        environment: UnsafePointer<ExpressionEnvironment>, limit: Int
    ) {
        self.shape = Unmanaged.passUnretained(shape)
        self.operations = operations
        self.constants = constants
        self.bindings = bindings
        self.slots = slots
        self.environment = environment
        budget = min(environment.pointee.limits.cost, limit)
        locals = shape.locals == 0 ? [] : Array(repeating: .null, count: shape.locals)
    }

    @inline(__always)
    mutating func spend(_ units: Int, at place: Int32) throws(Fault) {
        spent &+= units
        if spent > budget { throw Fault(reason: .budget, operation: place) }
    }

    private func operand(_ first: Int32, _ index: Int32 = 0) -> Int32 {
        shape._withUnsafeGuaranteedRef { $0.operands[Int(first + index)] }
    }

    // MARK: Truth

    /// Returns the truth of a condition, without making a value of it if possible.
    mutating func truth(_ place: Int32) throws(Fault) -> Bool {
        switch operations[Int(place)] {
        case .less(let one, let other): return try order(one, other, place) == .less
        case .more(let one, let other): return try order(one, other, place) == .more
        case .lessOrEqual(let one, let other):
            let order = try order(one, other, place)
            return order == .less || order == .same
        case .moreOrEqual(let one, let other):
            let order = try order(one, other, place)
            return order == .more || order == .same
        case .equal(let one, let other): return try areEqual(one, other, place)
        case .unequal(let one, let other): return try !areEqual(one, other, place)
        case .all(let first, let count): return try logic(first, count, deciding: false)
        case .any(let first, let count): return try logic(first, count, deciding: true)
        case .member(let slot, let set): return try isMember(slot, set, place)
        case .not(let operand):
            try spend(1, at: place)
            return try !truth(operand)
        default: return try bool(value(place), place)
        }
    }

    private mutating func isMember(_ slot: Int32, _ number: Int32, _ place: Int32) throws(Fault) -> Bool {
        let set = shape._withUnsafeGuaranteedRef { $0.sets[Int(number)] }
        try spend(set.cost, at: place)
        guard let value = slots[Int(slot)] else { throw Fault(reason: .unbound, operation: place) }
        if case .list(let elements) = value { try spend(ConstantSet.cost(ofElements: elements.count), at: place) }
        return set.contains(value)
    }

    private func bool(_ value: ExpressionValue, _ place: Int32) throws(Fault) -> Bool {
        guard case .bool(let value) = value else { throw Fault(reason: .noOverload, operation: place) }
        return value
    }

    /// Evaluates `&&` and `||`. A deciding operand has precedence over errors on both of its sides ("Logical Operators" in
    /// the language's definition).
    private mutating func logic(_ first: Int32, _ count: Int32, deciding: Bool) throws(Fault) -> Bool {
        var fault: Fault?
        for index in 0..<count {
            try spend(1, at: operand(first, index))
            do {
                if try truth(operand(first, index)) == deciding { return deciding }
            } catch {
                if error.isFinal { throw error }
                fault = fault ?? error
            }
        }
        if let fault { throw fault }
        return !deciding
    }

    @inline(__always)
    private mutating func order(_ one: Int32, _ other: Int32, _ place: Int32) throws(Fault) -> Order {
        try spend(1, at: place)
        // Most conditions compare a variable with a constant. Neither is copied in this case.
        if case .variable(let slot) = operations[Int(one)], case .constant(let number) = operations[Int(other)],
            case .double(let value)? = slots[Int(slot)], case .double(let limit) = constants[Int(number)]
        {
            try spend(1, at: place)
            return Order(value, limit)
        }
        return try orderOfValues(one, other, place)
    }

    private mutating func orderOfValues(_ one: Int32, _ other: Int32, _ place: Int32) throws(Fault) -> Order {
        let one = try value(one)
        let other = try value(other)
        guard let order = CarillonExpression.order(of: one, and: other) else {
            throw Fault(reason: .noOverload, operation: place)
        }
        try spend(min(one.extent, other.extent) / 10, at: place)
        return order
    }

    private mutating func areEqual(_ one: Int32, _ other: Int32, _ place: Int32) throws(Fault) -> Bool {
        try spend(1, at: place)
        return try areEqual(value(one), value(other), depth: 0, place)
    }

    private mutating func areEqual(
        _ one: ExpressionValue, _ other: ExpressionValue, depth: Int, _ place: Int32
    ) throws(Fault) -> Bool {
        switch (one, other) {
        case (.list(let one), .list(let other)):
            try descend(depth, place)
            guard one.count == other.count else { return false }
            for (one, other) in zip(one, other) {
                try spend(1, at: place)
                guard try areEqual(one, other, depth: depth + 1, place) else { return false }
            }
            return true
        case (.map(let one), .map(let other)):
            try descend(depth, place)
            guard one.count == other.count else { return false }
            for entry in one.entries {
                try spend(1 + entry.key.extent / 10, at: place)
                guard let value = other.value(for: entry.key),
                    try areEqual(entry.value, value, depth: depth + 1, place)
                else { return false }
            }
            return true
        default:
            try spend(min(one.extent, other.extent) / 10, at: place)
            return one.isEqual(to: other)
        }
    }

    private func descend(_ depth: Int, _ place: Int32) throws(Fault) {
        guard depth < 200 else { throw Fault(reason: .tooDeep, operation: place) }
    }

    // MARK: Values

    mutating func value(_ place: Int32) throws(Fault) -> ExpressionValue {
        switch operations[Int(place)] {
        case .constant(let number): return constants[Int(number)]
        case .variable(let slot):
            try spend(1, at: place)
            guard let value = slots[Int(slot)] else { throw Fault(reason: .unbound, operation: place) }
            return value
        case .local(let number):
            try spend(1, at: place)
            return locals[Int(number)]
        case .unresolved(let first, let fields, let count): return try unresolved(first, fields, count, place)
        case .select(let operand, let field): return try select(operand, field, place)
        case .presence(let operand, let field):
            try spend(1, at: place)
            guard case .map(let map) = try value(operand) else { throw Fault(reason: .noOverload, operation: place) }
            let field = self.field(field)
            try spend(field.utf8.count / 10, at: place)
            return .bool(map.value(for: field) != nil)
        case .index(let one, let other): return try element(one, other, place)
        case .less, .lessOrEqual, .more, .moreOrEqual, .equal, .unequal, .all, .any, .not, .member:
            return try .bool(truth(place))
        case .negate(let operand): return try negated(operand, place)
        case .add(let one, let other): return try sum(.add, one, other, place)
        case .subtract(let one, let other): return try sum(.subtract, one, other, place)
        case .multiply(let one, let other): return try sum(.multiply, one, other, place)
        case .divide(let one, let other): return try sum(.divide, one, other, place)
        case .modulo(let one, let other): return try sum(.modulo, one, other, place)
        case .contained(let one, let other): return try contained(one, other, place)
        case .conditional(let first):
            try spend(1, at: place)
            return try value(operand(first, truth(operand(first)) ? 1 : 2))
        case .list(let first, let count): return try list(first, count, place)
        case .map(let first, let count): return try map(first, count, place)
        case .call(let function, let first, let count): return try call(function, first, count, place)
        case .matches(let operand, let pattern): return try matches(operand, pattern, place)
        case .fold(let number): return try fold(number, place)
        case .noOverload: throw Fault(reason: .noOverload, operation: place)
        case .unknownFunction: throw Fault(reason: .unknownFunction, operation: place)
        case .badPattern: throw Fault(reason: .badPattern, operation: place)
        }
    }

    private func field(_ number: Int32) -> String { shape._withUnsafeGuaranteedRef { $0.fields[Int(number)] } }

    /// Returns the value of the longest prefix that is bound. A shorter prefix is not tried after that.
    private mutating func unresolved(
        _ first: Int32, _ fields: Int32, _ count: Int32, _ place: Int32
    ) throws(Fault) -> ExpressionValue {
        for index in 0..<count {
            try spend(1, at: place)
            let candidates = shape._withUnsafeGuaranteedRef { $0.names[Int(first + index)] }
            for candidate in candidates {
                // A name of one part costs as much as a declared one, unless it is longer than names of fields usually are.
                let bytes = candidate.utf8.count
                if count > 1 || bytes > ExpressionLimits.freeNameBytes { try spend(bytes / 10, at: place) }
                guard var found = bindings.pointee.others[candidate] else { continue }
                for number in (fields + count - index)..<(fields + count) {
                    found = try selected(field(number), of: found, place)
                }
                return found
            }
        }
        throw Fault(reason: .unbound, operation: place)
    }

    private mutating func select(_ operand: Int32, _ number: Int32, _ place: Int32) throws(Fault) -> ExpressionValue {
        try spend(1, at: place)
        let operand = try value(operand)
        return try selected(field(number), of: operand, place)
    }

    private mutating func selected(
        _ field: String, of value: ExpressionValue, _ place: Int32
    ) throws(Fault) -> ExpressionValue {
        guard case .map(let map) = value else { throw Fault(reason: .noOverload, operation: place) }
        try spend(field.utf8.count / 10, at: place)
        guard let value = map.value(for: field) else { throw Fault(reason: .noSuchKey, operation: place) }
        return value
    }

    private mutating func element(_ one: Int32, _ other: Int32, _ place: Int32) throws(Fault) -> ExpressionValue {
        try spend(1, at: place)
        let container = try value(one)
        let index = try value(other)
        switch container {
        case .map(let map):
            switch index {
            case .bool, .int, .uint, .double, .string: break
            default: throw Fault(reason: .noOverload, operation: place)
            }
            try spend(index.extent / 10, at: place)
            guard let value = map.value(for: index) else { throw Fault(reason: .noSuchKey, operation: place) }
            return value
        case .list(let elements):
            let number: Int? =
                switch index {
                case .int(let index): Int(index)
                case .uint(let index): Int(exactly: index) ?? Int.max
                case .double(let index): Int(exactly: index)
                default: nil
                }
            guard let number else { throw Fault(reason: .noOverload, operation: place) }
            guard elements.indices.contains(number) else { throw Fault(reason: .indexOutOfRange, operation: place) }
            return elements[number]
        default: throw Fault(reason: .noOverload, operation: place)
        }
    }

    private mutating func contained(_ one: Int32, _ other: Int32, _ place: Int32) throws(Fault) -> ExpressionValue {
        try spend(1, at: place)
        let sought = try value(one)
        switch try value(other) {
        case .list(let elements):
            for element in elements {
                try spend(1, at: place)
                if try areEqual(sought, element, depth: 0, place) { return .bool(true) }
            }
            return .bool(false)
        case .map(let map):
            try spend(sought.extent / 10, at: place)
            return .bool(map.value(for: sought) != nil)
        default: throw Fault(reason: .noOverload, operation: place)
        }
    }

    private mutating func negated(_ operand: Int32, _ place: Int32) throws(Fault) -> ExpressionValue {
        try spend(1, at: place)
        switch try value(operand) {
        case .int(let number):
            guard number != .min else { throw Fault(reason: .overflow, operation: place) }
            return .int(-number)
        case .double(let number): return .double(-number)
        default: throw Fault(reason: .noOverload, operation: place)
        }
    }

    private mutating func sum(_ sign: Operator, _ one: Int32, _ other: Int32, _ place: Int32) throws(Fault)
        -> ExpressionValue
    {
        try spend(1, at: place)
        let one = try value(one)
        let other = try value(other)
        switch (one, other) {
        case (.string, .string), (.bytes, .bytes), (.list, .list): try spend((one.extent + other.extent) / 10, at: place)
        default: break
        }
        do {
            return try arithmetic(sign, one, other)
        } catch {
            throw Fault(reason: error, operation: place)
        }
    }

    private mutating func list(_ first: Int32, _ count: Int32, _ place: Int32) throws(Fault) -> ExpressionValue {
        try spend(10 + Int(count), at: place)
        var elements: [ExpressionValue] = []
        elements.reserveCapacity(Int(count))
        for index in 0..<count { elements.append(try value(operand(first, index))) }
        return .list(elements)
    }

    private mutating func map(_ first: Int32, _ count: Int32, _ place: Int32) throws(Fault) -> ExpressionValue {
        try spend(30 + 2 * Int(count), at: place)
        var map = ExpressionMap()
        for index in 0..<count {
            let key = try value(operand(first, 2 * index))
            let element = try value(operand(first, 2 * index + 1))
            guard ExpressionMap.isKey(key) else { throw Fault(reason: .badKey, operation: place) }
            try spend(key.extent / 10, at: place)
            guard map.insert(element, for: key) else { throw Fault(reason: .repeatedKey, operation: place) }
        }
        return .map(map)
    }

    // MARK: Calls

    private mutating func call(
        _ function: Function, _ first: Int32, _ count: Int32, _ place: Int32
    ) throws(Fault) -> ExpressionValue {
        let one = try value(operand(first))
        let two = count > 1 ? try value(operand(first, 1)) : .null
        let three = count > 2 ? try value(operand(first, 2)) : .null
        let four = count > 3 ? try value(operand(first, 3)) : .null
        try spend(function.cost(one, two), at: place)
        do {
            if function == .matches { return try matches(one, two, place) }
            return try function.apply(one, two, three, four, count: Int(count), environment.pointee)
        } catch {
            throw Fault(reason: error, operation: place)
        }
    }

    private mutating func matches(_ operand: Int32, _ number: Int32, _ place: Int32) throws(Fault) -> ExpressionValue {
        guard case .string(let text) = try value(operand) else { throw Fault(reason: .noOverload, operation: place) }
        let pattern = shape._withUnsafeGuaranteedRef { $0.patterns[Int(number)] }
        try spend(pattern.cost(of: text.utf8.count), at: place)
        return .bool(pattern.matches(text))
    }

    /// Matches a pattern that is known only during the evaluation.
    private mutating func matches(
        _ text: ExpressionValue, _ pattern: ExpressionValue, _ place: Int32
    ) throws(Fault.Reason) -> ExpressionValue {
        guard case .string(let text) = text, case .string(let pattern) = pattern else { throw .noOverload }
        // Parsing the pattern costs units as well, even if the pattern is invalid.
        spent &+= pattern.utf8.count + environment.pointee.limits.patternInstructions / 4
        if spent > budget { throw .budget }
        let compiled: Pattern
        do {
            compiled = try Pattern(pattern, limit: environment.pointee.limits.patternInstructions)
        } catch {
            throw .badPattern
        }
        spent &+= compiled.cost(of: text.utf8.count)
        if spent > budget { throw .budget }
        return .bool(compiled.matches(text))
    }

    // MARK: Macros

    private mutating func fold(_ number: Int32, _ place: Int32) throws(Fault) -> ExpressionValue {
        let fold = shape._withUnsafeGuaranteedRef { $0.folds[Int(number)] }
        try spend(1, at: place)
        if fold.kind == .bind {
            locals[Int(fold.local)] = try value(fold.range)
            return try value(fold.transform ?? place)
        }
        let elements: [ExpressionValue]
        // The values of a map, if the macro has two variables.
        var held: [ExpressionValue]?
        switch try value(fold.range) {
        case .list(let list): elements = list
        case .map(let map):
            try spend(map.count / 10, at: place)
            elements = map.entries.map(\.key)
            if fold.hasSecond { held = map.entries.map(\.value) }
        default: throw Fault(reason: .noOverload, operation: place)
        }
        var made = ExpressionMap()
        // A nested macro can use the slots of a macro beside it, but never those of an enclosing one.
        var kept: [ExpressionValue] = []
        var found = 0
        var fault: Fault?
        for (index, element) in elements.enumerated() {
            try spend(1, at: place)
            let key = !fold.hasSecond || held != nil ? element : .int(Int64(index))
            locals[Int(fold.local)] = key
            if fold.hasSecond { locals[Int(fold.local) + 1] = held?[index] ?? element }
            switch fold.kind {
            case .all, .exists:
                let deciding = fold.kind == .exists
                do {
                    if try truth(fold.predicate ?? place) == deciding { return .bool(deciding) }
                } catch {
                    if error.isFinal { throw error }
                    fault = fault ?? error
                }
            case .existsOne:
                if try truth(fold.predicate ?? place) { found += 1 }
            case .filter:
                if try truth(fold.predicate ?? place) { kept.append(element) }
            case .transformMap:
                if let predicate = fold.predicate, try !truth(predicate) { continue }
                // The keys are the keys of a map or indices of a list, so no key occurs twice.
                _ = made.insert(try value(fold.transform ?? place), for: key)
            case .bind: break
            case .map, .transformList:
                if let predicate = fold.predicate, try !truth(predicate) { continue }
                kept.append(try value(fold.transform ?? place))
            }
        }
        if let fault { throw fault }
        switch fold.kind {
        case .all: return .bool(true)
        case .exists: return .bool(false)
        case .existsOne: return .bool(found == 1)
        case .filter, .map, .transformList, .bind: return .list(kept)
        case .transformMap: return .map(made)
        }
    }
}
