package import CarillonExpression

/// Why a subscription fires or does not fire with the values that an item has now.
package struct SubscriptionExplanation: Sendable {
    package enum Verdict: String, Sendable, CaseIterable {
        /// The condition holds, or there is no condition. The subscription fires when it is armed or with the next update,
        /// according to its policy.
        case holds
        case doesNotHold = "does_not_hold"
        /// The condition has no value: a field is missing or has another type.
        case noValue = "no_value"
        case noUpdate = "no_update"
        /// The subscription fired and does not fire again until it is armed again.
        case triggered
        case deviceSuspended = "device_suspended"
        /// The condition holds, but the cool-down since the last firing has not ended.
        case coolingDown = "cooling_down"
        /// The subscription has expired.
        case expired
    }

    /// A part of a condition, and whether the part holds.
    package struct Part: Sendable {
        package var text: String
        /// The value of the compared expression; nil if the expression has no value, or if the part is not a comparison.
        package var value: ExpressionValue?
        package var holds: Bool
        /// Whether the engine finds the result in its index instead of evaluating the part.
        package var isIndexed: Bool
    }

    package var item: ItemName
    /// The number of updates of the item.
    package var version: Int64
    package var verdict: Verdict
    /// Why the condition has no value.
    package var error: String?
    /// The condition holds if all parts of one alternative hold.
    package var alternatives: [[Part]] = []

    /// - Parameters:
    ///   - stored: Nil before the item's first update.
    ///   - cost: The limit of the app for the cost of one evaluation of a condition.
    package init(
        of subscription: Subscription, on item: ItemName, _ stored: StoredItem?, in conditions: ItemConditions,
        cost: Int = .max, at now: Timestamp
    ) throws(ExpressionRefusal) {
        self.item = item
        version = stored?.version ?? 0
        guard let stored, let bindings = conditions.bindings(item.text, stored.state) else {
            verdict = .noUpdate
            return
        }
        verdict = .holds
        if let trigger = subscription.definition.trigger {
            let program = try ExpressionProgram.unchecked(trigger, in: conditions.environment)
            let finding = try Finding(of: program, bindings, cost)
            alternatives = finding.alternatives
            do {
                verdict = try finding.verdict(of: program, bindings, cost) ? .holds : .doesNotHold
            } catch {
                verdict = .noValue
                self.error = "\(error)"
            }
        }
        if verdict == .holds, case .every(let seconds) = subscription.definition.policy,
            let last = subscription.machine.lastFiredAt, now < last.adding(seconds: seconds)
        {
            verdict = .coolingDown
        }
        if subscription.machine.status == .triggered { verdict = .triggered }
        if subscription.machine.isPaused { verdict = .deviceSuspended }
        if let end = subscription.definition.expiresAt, end <= now { verdict = .expired }
    }
}

/// The parts of a condition in the form that the engine evaluates. The engine looks comparisons up in its index. It evaluates the
/// rest of the condition only if all indexed comparisons of one alternative hold.
private struct Finding {
    private(set) var alternatives: [[SubscriptionExplanation.Part]] = []
    /// Whether all indexed comparisons of one alternative hold.
    private var isFull = false
    /// Whether a part of the condition is not indexed, so that the engine evaluates the condition.
    private var hasResidue = false
    /// The error of a compared expression that exceeded the cost limit, in an alternative without a false comparison.
    private var overCost: ExpressionError?

    init(
        of program: ExpressionProgram, _ bindings: ExpressionBindings, _ cost: Int
    ) throws(ExpressionRefusal) {
        for alternative in program.terms.alternatives {
            var parts: [SubscriptionExplanation.Part] = []
            var holdsIndexed = true
            var isFalse = false
            var over: ExpressionError?
            for term in alternative.terms {
                let compared = try ExpressionProgram.unchecked(term.expression, in: program.environment)
                let isIndexed = ConditionShapes.isIndexed(term)
                var value: ExpressionValue?
                var units = cost
                do {
                    value = try compared.value(bindings, spending: &units)
                } catch {
                    if isIndexed, error.code == .budget { over = over ?? error }
                }
                let holds = value.map { term.holds(for: $0) } ?? false
                if isIndexed {
                    holdsIndexed = holdsIndexed && holds
                    isFalse = isFalse || value != nil && !holds
                } else {
                    hasResidue = true
                }
                parts.append(.init(text: term.description, value: value, holds: holds, isIndexed: isIndexed))
            }
            for residue in alternative.residue {
                let rest = try ExpressionProgram.unchecked(residue, in: program.environment)
                hasResidue = true
                parts.append(
                    .init(text: residue, holds: (try? rest.holds(bindings, limit: cost)) ?? false, isIndexed: false))
            }
            isFull = isFull || holdsIndexed
            if !isFalse { overCost = overCost ?? over }
            alternatives.append(parts)
        }
    }

    /// - Throws: ``ExpressionError`` if the condition has no value.
    func verdict(
        of program: ExpressionProgram, _ bindings: ExpressionBindings, _ cost: Int
    ) throws(ExpressionError) -> Bool {
        if isFull { return hasResidue ? try program.holds(bindings, limit: cost) : true }
        if let overCost { throw overCost }
        // The condition does not hold; the evaluation only finds out whether a value is missing.
        _ = try program.holds(bindings)
        return false
    }
}
