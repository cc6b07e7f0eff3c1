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
            let parts = try Self.alternatives(of: program, bindings, cost)
            alternatives = parts.alternatives
            // The engine evaluates only what it compares of a condition that it looks up.
            let limit = !parts.isOverCost && ConditionShapes.looksUp(program) ? .max : cost
            do {
                verdict = try program.holds(bindings, limit: limit) ? .holds : .doesNotHold
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

    private static func alternatives(
        of program: ExpressionProgram, _ bindings: ExpressionBindings, _ cost: Int
    ) throws(ExpressionRefusal) -> (alternatives: [[Part]], isOverCost: Bool) {
        var alternatives: [[Part]] = []
        var isOverCost = false
        for alternative in program.terms.alternatives {
            var parts: [Part] = []
            for term in alternative.terms {
                let compared = try ExpressionProgram.unchecked(term.expression, in: program.environment)
                var units = cost
                let value = try? compared.value(bindings, spending: &units)
                isOverCost = isOverCost || units < 0
                parts.append(
                    Part(
                        text: term.description, value: value, holds: value.map { term.holds(for: $0) } ?? false,
                        isIndexed: true))
            }
            for residue in alternative.residue {
                let rest = try ExpressionProgram.unchecked(residue, in: program.environment)
                parts.append(Part(text: residue, holds: (try? rest.holds(bindings, limit: cost)) ?? false, isIndexed: false))
            }
            alternatives.append(parts)
        }
        return (alternatives, isOverCost)
    }
}
