import Logging

/// Applies hand-overs to items of this home.
extension ItemEngine {
    private static let handOversAtOnce = 1000

    /// Applies the hand-overs that were written before the call, in their order. Only one call applies hand-overs at a time.
    /// Other calls wait, and then apply the remaining hand-overs.
    ///
    /// A hand-over that cannot be applied stays in the store for a later call. Later hand-overs are applied.
    ///
    /// - Throws: ``StoreFault`` if hand-overs cannot be read or removed.
    func applyHandOvers() async throws {
        while isApplyingHandOvers { await withCheckedContinuation { waitingForHandOvers.append($0) } }
        isApplyingHandOvers = true
        defer {
            isApplyingHandOvers = false
            if !waitingForHandOvers.isEmpty { waitingForHandOvers.removeFirst().resume() }
        }
        var failures = HandOverFailures()
        var last: Int64 = 0
        while !Task.isCancelled {
            let handOvers = try await store.handOvers(in: home.shards, after: last, limit: Self.handOversAtOnce)
            guard let end = handOvers.last?.number else { break }
            // Hand-overs to a shard that has moved since the read are left to its new home.
            let open = handOvers.filter { home.isOpen($0.shard) }
            handOverShards = Set(open.map(\.shard))
            defer { handOverShards = [] }
            try await apply(open, &failures)
            last = end
        }
        report(failures)
    }

    /// Applies hand-overs one after the other, and removes the applied ones. If this throws, all of them are applied again later.
    private func apply(_ handOvers: [HandOver], _ failures: inout HandOverFailures) async throws {
        // The rows of a device are read once. They contain the changes of all these hand-overs.
        var followed: Set<DeviceSerial> = []
        var applied: [AppliedHandOver] = []
        for handOver in handOvers {
            do {
                switch ItemHandOver(handOver) {
                case .subscriptionsChanged(of: let device)?:
                    guard !failures.devices.contains(device) else {
                        failures.count += 1
                        continue
                    }
                    if !followed.contains(device) {
                        failures.devices.insert(device)
                        try await follow(device)
                        failures.devices.remove(device)
                        followed.insert(device)
                    }
                case .subscriptionPut(let subscription)?: try await follow([subscription], looks: true)
                case .subscriptionRemoved(let subscription, from: let key?, shape: _)?:
                    let item = try await loadedItem(key)
                    item?.whenStill { $0.disarm(subscription) }
                case .subscriptionRemoved(_, from: nil, shape: _)?:
                    // An item whose name cannot be read is not in memory.
                    logger.error(
                        "cannot read item of hand-over; only shape is removed", metadata: ["number": "\(handOver.number)"])
                case nil:
                    logger.error(
                        "cannot read hand-over; it is removed",
                        metadata: ["number": "\(handOver.number)", "kind": "\(handOver.kind)"])
                }
                applied.append(AppliedHandOver(handOver))
            } catch {
                try Task.checkCancellation()
                failures.count += 1
                if failures.first == nil { failures.first = (handOver.number, error) }
            }
        }
        if !applied.isEmpty { try await store.applyHandOvers(applied) }
    }

    /// Logs the failures if their number differs from the last call.
    private func report(_ failures: HandOverFailures) {
        defer { failedHandOvers = failures.count }
        guard failures.count != failedHandOvers, let (number, error) = failures.first else { return }
        logger.warning(
            "cannot apply hand-overs; retrying",
            metadata: ["count": "\(failures.count)", "number": "\(number)", "error": "\(error)"])
    }
}

/// The hand-overs and devices that a call could not handle.
private struct HandOverFailures {
    var count = 0
    var first: (number: Int64, error: any Error)?
    /// Devices whose subscriptions could not be read. The call does not read them again.
    var devices: Set<DeviceSerial> = []
}
