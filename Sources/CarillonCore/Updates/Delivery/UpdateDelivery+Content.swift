import CarillonWire
import Metrics

/// Content that later content stands for, and content that was missed.
extension UpdateDelivery {
    struct Coalescing {
        /// Of updates that are to be given: what stands for them.
        var amongThem: [UpdateSerial: UpdateSerial] = [:]
        /// What they stand for, and was given before.
        var before: [(CompletionKey, by: UpdateSerial)] = []

        func isCoalescer(_ update: UpdateSerial) -> Bool {
            amongThem.values.contains(update) || before.contains { $0.by == update }
        }
    }

    /// Of content that a device does not have, later changes stand for earlier ones of their order key, and beyond a number one that says to fetch
    /// everything stands for all.
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

    /// More of it waits for one device only as an order to fetch everything.
    package static let mostContent = 500

    /// Tells a device to fetch everything; it is given to it as what is due.
    @discardableResult
    private func resync(_ binding: UpdateBinding) async throws -> UpdateSerial {
        var random = random
        let (id, now) = (UpdateID.random(using: &random), time.now())
        // What the device said that it received counts as received.
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
        /// The device is requested to fetch everything.
        case madeUp
    }

    /// Content that came and went while a device was away may be what it shows still.
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
