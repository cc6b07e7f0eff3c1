/// The changes that a firing causes, written in the transaction that appends its notification.
package enum FiringEffect: FeatureEffect {
    /// A subscription fires, if it is unchanged since its condition was evaluated, and if no later firing of the item was
    /// delivered before.
    case fired(Firing.Target, on: ItemName, by: Int64, at: Timestamp)
    /// A throttled firing is delivered, if its subscription is unchanged.
    case throttledNotified(Int64, at: Timestamp)

    package func hash(into hasher: inout Hasher) {
        switch self {
        case .fired(let target, _, let number, _):
            hasher.combine(target.subscription)
            hasher.combine(number)
        case .throttledNotified(let number, _): hasher.combine(number)
        }
    }
}

extension Effect {
    /// Fires a subscription, if it is unchanged since its condition was evaluated, and if no later firing of the item was
    /// delivered before.
    package static func fired(
        _ target: Firing.Target, on item: ItemName, by number: Int64, at: Timestamp
    ) -> Effect {
        Effect(FiringEffect.fired(target, on: item, by: number, at: at))
    }

    /// Delivers a throttled firing, if its subscription is unchanged.
    package static func throttledNotified(_ number: Int64, at: Timestamp) -> Effect {
        Effect(FiringEffect.throttledNotified(number, at: at))
    }
}
