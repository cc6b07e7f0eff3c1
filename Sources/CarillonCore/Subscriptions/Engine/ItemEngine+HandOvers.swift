import Logging

/// Hand-overs to items of this home.
extension ItemEngine {
    private static let handOversAtOnce = 1000

    /// Applies the hand-overs that were written before the call, in their order. One call at a time applies them; other calls wait, and find
    /// what is left.
    func applyHandOvers() async throws {
        while isApplyingHandOvers { await withCheckedContinuation { waitingForHandOvers.append($0) } }
        isApplyingHandOvers = true
        defer {
            isApplyingHandOvers = false
            if !waitingForHandOvers.isEmpty { waitingForHandOvers.removeFirst().resume() }
        }
        while !Task.isCancelled {
            let handOvers = try await store.handOvers(in: shards, limit: Self.handOversAtOnce)
            guard !handOvers.isEmpty else { return }
            try await apply(handOvers)
        }
    }

    /// If this throws, all of them are applied again later.
    private func apply(_ handOvers: [HandOver]) async throws {
        // The rows of a device are read once: they are as the last of these hand-overs left them.
        var followed: Set<DeviceSerial> = []
        for handOver in handOvers {
            switch ItemHandOver(handOver) {
            case .subscriptionsChanged(of: let device)?:
                if followed.insert(device).inserted { try await follow(device) }
            case .subscriptionRemoved(let subscription, from: let key, shape: _)?:
                let item = try await loadedItem(key)
                item?.whenStill { $0.disarm(subscription) }
            case nil:
                logger.error(
                    "cannot read hand-over; it is removed",
                    metadata: ["number": "\(handOver.number)", "kind": "\(handOver.kind)"])
            }
        }
        try await store.applyHandOvers(handOvers.map { AppliedHandOver($0) })
    }
}
