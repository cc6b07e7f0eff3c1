import CarillonWire
import Metrics

/// Coalesces content into later content, and handles missed content.
extension UpdateDelivery {
    struct Coalescing {
        /// New updates and the later updates into which they are coalesced.
        var amongThem: [UpdateSerial: UpdateSerial] = [:]
        /// Earlier completions that are coalesced into the new updates.
        var before: [(CompletionKey, by: UpdateSerial)] = []

        func isCoalescer(_ update: UpdateSerial) -> Bool {
            amongThem.values.contains(update) || before.contains { $0.by == update }
        }
    }

    /// Determines which content is coalesced, of the content that a device does not have. Later changes replace earlier changes
    /// with the same order key. Beyond ``mostContent``, a request to fetch all content replaces all of it.
    func coalescing(
        _ updates: [Update], _ binding: UpdateBinding, _ log: UpdateLogs.Log
    ) async throws -> Coalescing {
        let content = updates.compactMap { update in log.live[update.serial]?.change.map { (update: update, change: $0) } }
        guard !content.isEmpty, binding.takesContent else { return Coalescing() }
        let waiting = try await store.unreceivedContent(of: binding.serial)
        var resync = waiting.resync
        if resync == nil, waiting.completions.count + content.count > Self.mostContent {
            resync = try await self.resync(binding)
        }
        var coalescing = Coalescing()
        if let resync {
            for (update, _) in content { coalescing.amongThem[update.serial] = resync }
            return coalescing
        }
        for (place, earlier) in content.enumerated() {
            let later = content[(place + 1)...].last {
                $0.change.coalesces(earlier.change, under: $0.update.orderKey, of: earlier.update.orderKey)
            }
            if let later { coalescing.amongThem[earlier.update.serial] = later.update.serial }
        }
        for row in waiting.completions {
            guard let earlier = log.live[row.key.update], let change = earlier.change else { continue }
            let later = content.last {
                $0.update.serial > row.key.update
                    && $0.change.coalesces(change, under: $0.update.orderKey, of: earlier.update.orderKey)
            }
            if let later { coalescing.before.append((row.key, by: later.update.serial)) }
        }
        return coalescing
    }

    /// The largest number of content updates that wait for one device. Beyond it, a request to fetch all content replaces them.
    package static let mostContent = 500

    /// Requests a device to fetch all content. The request is sent as a due completion.
    @discardableResult
    private func resync(_ binding: UpdateBinding) async throws -> UpdateSerial {
        var random = random
        let (id, now) = (UpdateID.random(using: &random), time.now())
        // Envelopes that the device acknowledged must count as received.
        await home.flush(binding.device)
        let request = ResyncRequest(proposed: id, body: Update.Definition.resync.body(id, at: now))
        let resync = try await store.resync(binding.serial, request, at: now)
        resyncs.increment()
        await withdraw(resync.coalesced, from: binding.device)
        return resync.update
    }

    /// The result of the check for content that was published and ended while a device was away.
    enum Missed {
        /// There is nothing to note.
        case nothing
        /// The device missed no content up to this place.
        case noneUpTo(UpdateSerial)
        /// The device is requested to fetch all content.
        case madeUp
    }

    /// Checks for content that was published and expired while a device was away. The device may still show the earlier content.
    func makeUpForMissed(
        _ binding: UpdateBinding, _ log: UpdateLogs.Log, _ facts: DeviceFacts
    ) async throws -> Missed {
        guard binding.takesContent else { return .nothing }
        if binding.needsResync {
            try await resync(binding)
            return .madeUp
        }
        guard log.expiredContent > binding.seenTo else { return .nothing }
        let expired = try await store.expiredContent(of: log.app, after: binding.seenTo, limit: Self.mostExpired)
        let known = Set(
            try await store.completions(of: binding.serial, expired?.map(\.serial) ?? []).map(\.key.update))
        let unknown = expired?.filter { !known.contains($0.serial) }
        let isMissed =
            unknown.map { unknown in
                unknown.reduce(0) { $0 + $1.audienceBytes } > OtherAudiences.mostBytes
                    || unknown.contains { logs.holds($0, for: facts, by: log.rules) }
            } ?? true
        guard isMissed else { return .noneUpTo(log.expiredContent) }
        try await resync(binding)
        return .madeUp
    }

    private static let mostExpired = 100
}
