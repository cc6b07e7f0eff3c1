package import CarillonCore

/// The methods of due work, for a home that has all shards.
extension LeasedWorkStore {
    package func bringBackWork(at now: Timestamp) async throws { try await bringBackWork(in: .all, at: now) }

    package func dueWork(at now: Timestamp, besides crowd: WorkCrowds, limit: Int) async throws -> [DueWork] {
        try await dueWork(in: .all, at: now, besides: crowd, limit: limit)
    }
}

extension PushStore {
    package func bringBackPushes(at now: Timestamp) async throws { try await bringBackPushes(in: .all, at: now) }

    package func dueLanes(at now: Timestamp) async throws -> [PushLane] { try await dueLanes(in: .all, at: now) }

    package func leasePushes(
        of lane: PushLane, limit: Int, at now: Timestamp, until end: Timestamp
    ) async throws -> LeasedPushes {
        try await leasePushes(of: lane, in: .all, limit: limit, at: now, until: end)
    }

    package func sweepPushes(at now: Timestamp, forgetting retention: RetentionTime?, limit: Int) async throws -> Bool {
        try await sweepPushes(in: .all, at: now, forgetting: retention, limit: limit)
    }
}
