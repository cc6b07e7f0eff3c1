/// The types that the checker has found for free types.
struct Substitution {
    private var found: [Int: ExpressionType] = [:]
    /// The numbers of the found types, in order, so that a trial can be undone.
    private var trail: [Int] = []
    private var next = 2

    mutating func fresh() -> ExpressionType {
        next += 1
        return .free(next)
    }

    /// Returns the types of a function's declaration, with new free types.
    mutating func instance(_ overload: Function.Overload) -> Function.Overload {
        var fresh: [Int: ExpressionType] = [:]
        func replaced(_ type: ExpressionType, _ substitution: inout Substitution) -> ExpressionType {
            switch type {
            case .free(let number):
                if let type = fresh[number] { return type }
                let type = substitution.fresh()
                fresh[number] = type
                return type
            case .list(let element): return .list(replaced(element, &substitution))
            case .map(let key, let value):
                return .map(key: replaced(key, &substitution), value: replaced(value, &substitution))
            default: return type
            }
        }
        return Function.Overload(
            overload.parameters.map { replaced($0, &self) }, replaced(overload.result, &self), isMethod: overload.isMethod)
    }

    /// Returns the type as far as it is known. At the end of the check, a type that was not found is dynamic.
    func resolved(_ type: ExpressionType) -> ExpressionType {
        var type = type
        while case .free(let number) = type, let next = found[number] { type = next }
        switch type {
        case .list(let element): return .list(resolved(element))
        case .map(let key, let value): return .map(key: resolved(key), value: resolved(value))
        default: return type
        }
    }

    /// Whether a value of the second type is valid where the first type is required. Finds free types in this way.
    mutating func accepts(_ wanted: ExpressionType, _ given: ExpressionType) -> Bool {
        let before = trail.count
        guard fits(resolved(wanted), resolved(given)) else {
            takeBack(to: before)
            return false
        }
        return true
    }

    /// Runs the closure, and undoes the types that it finds.
    mutating func trying<Result>(_ work: (inout Substitution) -> Result) -> Result {
        let before = trail.count
        defer { takeBack(to: before) }
        return work(&self)
    }

    private mutating func takeBack(to count: Int) {
        for number in trail[count...] { found[number] = nil }
        trail.removeSubrange(count...)
    }

    private mutating func fits(_ wanted: ExpressionType, _ given: ExpressionType) -> Bool {
        switch (wanted, given) {
        case (.dynamic, _), (_, .dynamic): return true
        case (.free(let one), .free(let other)):
            // The younger type refers to the older one, so that many types refer to one and do not form a chain.
            if one != other { find(max(one, other), .free(min(one, other))) }
            return true
        case (.free(let number), let type), (let type, .free(let number)):
            guard !Self.holds(type, number) else { return false }
            find(number, type)
            return true
        case (.list(let wanted), .list(let given)): return fits(wanted, given)
        case (.map(let key, let value), .map(let givenKey, let givenValue)):
            guard fits(key, givenKey) else { return false }
            return fits(resolved(value), resolved(givenValue))
        case (.timestamp, .null), (.duration, .null): return true
        default: return wanted == given
        }
    }

    private mutating func find(_ number: Int, _ type: ExpressionType) {
        found[number] = type
        trail.append(number)
    }

    private static func holds(_ type: ExpressionType, _ number: Int) -> Bool {
        switch type {
        case .free(number): true
        case .list(let element): holds(element, number)
        case .map(let key, let value): holds(key, number) || holds(value, number)
        default: false
        }
    }
}
