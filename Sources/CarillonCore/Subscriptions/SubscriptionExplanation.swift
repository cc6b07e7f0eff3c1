package import CarillonExpression

/// Why a subscription fires with what stands in an item, or does not.
package struct SubscriptionExplanation: Sendable {
    package enum Verdict: String, Sendable, CaseIterable {
        /// Its condition holds, or it has none: it fires when it is armed, or with the next update, as its policy has it.
        case holds
        case doesNotHold = "does_not_hold"
        /// The condition has no value: a field is missing, or of another type.
        case noValue = "no_value"
        case noUpdate = "no_update"
        /// It fired, and waits to be armed anew.
        case triggered
        case deviceSuspended = "device_suspended"
        /// It would fire, and fired too short a time ago.
        case coolingDown = "cooling_down"
        /// Its time is over.
        case expired
    }

    /// A part of the condition, and whether it holds.
    package struct Part: Sendable {
        package var text: String
        /// Of the expression that is compared; nil of one that has none, and of a part that is no comparison.
        package var value: ExpressionValue?
        package var holds: Bool
        /// Whether the engine looks it up, and does not evaluate it.
        package var isIndexed: Bool
    }

    package var item: ItemName
    /// How many updates the item has had.
    package var version: Int64
    package var verdict: Verdict
    /// Why the condition has no value.
    package var error: String?
    /// All parts of one must hold.
    package var alternatives: [[Part]] = []

    /// - Parameters:
    ///   - stored: Nil before the item's first update.
    ///   - cost: What the evaluation of one condition may cost in the app.
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

/// The parts of a condition as the engine decides on them: it looks comparisons up, and evaluates the condition only if those of an
/// alternative hold.
private struct Finding {
    private(set) var alternatives: [[SubscriptionExplanation.Part]] = []
    /// Whether all comparisons that the engine looks up hold in an alternative.
    private var isFull = false
    /// Whether the engine evaluates a part of the condition.
    private var hasResidue = false
    /// Of a compared expression that cost too much, in an alternative of which no comparison is false.
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

    /// - Throws: ``ExpressionError`` where the condition has no value.
    func verdict(
        of program: ExpressionProgram, _ bindings: ExpressionBindings, _ cost: Int
    ) throws(ExpressionError) -> Bool {
        if isFull { return hasResidue ? try program.holds(bindings, limit: cost) : true }
        if let overCost { throw overCost }
        // It does not fire: the evaluation only shows whether a value is missing.
        _ = try program.holds(bindings)
        return false
    }
}
