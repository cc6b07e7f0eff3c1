package import CarillonExpression

/// Parses conditions on items, and makes the bindings that they are evaluated with.
package struct ItemConditions: Sendable {
    /// The environment in which all conditions are evaluated: any name may be the name of a field.
    package let environment: ExpressionEnvironment
    private let limits: ExpressionLimits
    private let zoneOffset: @Sendable (String, ExpressionTimestamp) -> Int?

    package init(
        limits: ExpressionLimits = .init(), zoneOffset: @escaping @Sendable (String, ExpressionTimestamp) -> Int?
    ) {
        self.limits = limits
        self.zoneOffset = zoneOffset
        environment = ItemLanguage.environment(over: nil, limits: limits, zoneOffset: zoneOffset)
    }

    /// Parses a condition over some fields, and checks it with the types of the fields. A field without a declared type is
    /// dynamic.
    ///
    /// - Parameters:
    ///   - maxBytes: The largest texts of fields for which an app sets less than ``ItemLimits/valueBytes``.
    ///   - cost: The cost limit of one evaluation, in units of the language. A condition whose lowest possible cost is within the
    ///     limit is accepted.
    /// - Returns: The program in the form that all items evaluate.
    /// - Throws: ``ExpressionRefusal`` with all problems, including names that are not fields.
    package func condition(
        _ source: String, over fields: [String: ExpressionType], maxBytes: [String: Int] = [:], cost: Int = .max
    ) throws(ExpressionRefusal) -> ExpressionProgram {
        let program = try checked(source, over: fields, maxBytes)
        let most = min(cost, limits.cost)
        guard program.cost.lowerBound <= most else {
            throw ExpressionRefusal(
                source: source,
                sentence:
                    "the condition costs at least \(program.cost.lowerBound) units and at most \(program.costText), more than the \(most) it may",
                code: .cost)
        }
        guard program.type == .bool || program.type == .dynamic else {
            throw ExpressionRefusal(
                source: source, sentence: "a condition is a bool, not \(program.type)", code: .type)
        }
        return try ExpressionProgram.unchecked(source, in: environment)
    }

    /// Parses an expression of any type, and returns it with its lowest and highest cost.
    package func expression(
        _ source: String, over fields: [String: ExpressionType], maxBytes: [String: Int] = [:]
    ) throws(ExpressionRefusal) -> (program: ExpressionProgram, cost: ClosedRange<Int>) {
        let cost = try checked(source, over: fields, maxBytes).cost
        return (try ExpressionProgram.unchecked(source, in: environment), cost)
    }

    /// The number of nodes of the largest expression that a condition compares.
    package func comparedNodes(of condition: ExpressionProgram) -> Int {
        let expressions = Set(condition.terms.alternatives.flatMap(\.terms).map(\.expression))
        return expressions.map { (try? ExpressionProgram.unchecked($0, in: environment).nodeCount) ?? .max }.max() ?? 0
    }

    private func checked(
        _ source: String, over fields: [String: ExpressionType], _ maxBytes: [String: Int]
    ) throws(ExpressionRefusal) -> ExpressionProgram {
        var limits = limits
        // An evaluation ends at the limit, so a highest cost above the limit is no problem.
        limits.cost = .max
        limits.unknownBytes = ItemLimits.valueBytes
        let checking = ItemLanguage.environment(
            over: fields, maxBytes: maxBytes, limits: limits, zoneOffset: zoneOffset)
        return try ExpressionProgram(source, in: checking)
    }

    /// Returns the bindings for all conditions on an item; nil before its first update.
    package func bindings(_ item: String, _ state: ItemState) -> ExpressionBindings? {
        guard let updatedAt = state.updatedAt else { return nil }
        var bindings = ExpressionBindings(environment)
        for (name, value) in state.fields { bindings[name] = value.value }
        bindings["fields"] = .map(state.fieldMap)
        // The map is empty before the second update, so that `has(previous.price)` has a value.
        bindings["previous"] = .map(state.previousMap ?? ExpressionMap())
        bindings["item"] = .string(item)
        bindings["update.time"] = ExpressionTimestamp(milliseconds: updatedAt.milliseconds).map { .timestamp($0) }
        return bindings
    }
}
