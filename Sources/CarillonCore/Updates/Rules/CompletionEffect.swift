/// Changes of completions that are written in the transaction that appends the envelope of their update.
package enum CompletionEffect: FeatureEffect {
    case offered(UpdateOffer)
    case retracted(CompletionKey, as: CompletionMachine.State, at: Timestamp)

    package func hash(into hasher: inout Hasher) {
        switch self {
        case .offered(let offer): hasher.combine(offer.key)
        case .retracted(let key, _, _): hasher.combine(key)
        }
    }
}

extension Effect {
    /// Delivers an update to a device, if the update is live and the completion has not changed since it was read.
    package static func updateOffered(_ offer: UpdateOffer) -> Effect { Effect(CompletionEffect.offered(offer)) }

    /// Ends an update that a device received and did not finish.
    package static func updateRetracted(
        _ key: CompletionKey, as state: CompletionMachine.State, at: Timestamp
    ) -> Effect {
        Effect(CompletionEffect.retracted(key, as: state, at: at))
    }
}
