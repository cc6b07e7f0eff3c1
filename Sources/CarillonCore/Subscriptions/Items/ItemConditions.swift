package import CarillonExpression

/// Reads conditions on items, and says what they are evaluated over.
package struct ItemConditions: Sendable {
    /// In which all conditions are evaluated: any name may be a field's.
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

    /// Reads a condition over some fields, and checks it with their types; dynamic where none is declared.
    ///
    /// - Parameters:
    ///   - maxBytes: Of texts, where an app says less than ``ItemLimits/valueBytes``.
    ///   - cost: What one evaluation may cost, in units of the language. A condition that can cost less is accepted.
    /// - Returns: The program as all items evaluate it.
    /// - Throws: ``ExpressionRefusal`` with all that is wrong, a field that is none of these among it.
    package func condition(
        _ source: String, over fields: [String: ExpressionType], maxBytes: [String: Int] = [:], cost: Int = .max
    ) throws(ExpressionRefusal) -> ExpressionProgram {
        let program = try checked(source, over: fields, maxBytes)
        let most = min(cost, limits.cost)
        guard program.cost.lowerBound <= most else {
            throw ExpressionRefusal(
                source: source,
                sentence:
                    "the condition costs at least \(program.cost.lowerBound) units and at most \(program.costText); the limit is \(most)",
                code: .cost)
        }
        guard program.type == .bool || program.type == .dynamic else {
            throw ExpressionRefusal(
                source: source, sentence: "a condition must be of type bool, not \(program.type)", code: .type)
        }
        return try ExpressionProgram.unchecked(source, in: environment)
    }

    /// The same of an expression of any type, with what it costs at least and at most.
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
        // Its evaluations end at the limit.
        limits.cost = .max
        limits.unknownBytes = ItemLimits.valueBytes
        let checking = ItemLanguage.environment(
            over: fields, maxBytes: maxBytes, limits: limits, zoneOffset: zoneOffset)
        return try ExpressionProgram(source, in: checking)
    }

    /// For the evaluation of all conditions on an item; nil before its first update.
    package func bindings(_ item: String, _ state: ItemState) -> ExpressionBindings? {
        guard let updatedAt = state.updatedAt else { return nil }
        var bindings = ExpressionBindings(environment)
        for (name, value) in state.fields { bindings[name] = value.value }
        bindings["fields"] = .map(state.fieldMap)
        // Empty before the second update, so that `has(previous.price)` has a value.
        bindings["previous"] = .map(state.previousMap ?? ExpressionMap())
        bindings["item"] = .string(item)
        bindings["update.time"] = ExpressionTimestamp(milliseconds: updatedAt.milliseconds).map { .timestamp($0) }
        return bindings
    }
}
