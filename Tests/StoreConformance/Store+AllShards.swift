package import CarillonCore

/// The methods of due work, for a home that has all shards.
extension LeasedWorkStore {
    package func bringBackWork(at now: Timestamp) async throws { try await bringBackWork(in: .all, at: now) }

    package func dueWork(at now: Timestamp, besides crowd: BusyPeerSets, limit: Int) async throws -> [DueWork] {
        try await dueWork(in: .all, at: now, besides: crowd, limit: limit)
    }
}

extension PushStore {
    package func bringBackPushes(at now: Timestamp) async throws { try await bringBackPushes(in: .all, at: now) }

    package func dueQueues(at now: Timestamp) async throws -> [PushQueue] { try await dueQueues(in: .all, at: now) }

    package func leasePushes(
        of queue: PushQueue, limit: Int, at now: Timestamp, until end: Timestamp
    ) async throws -> LeasedPushes {
        try await leasePushes(of: queue, in: .all, limit: limit, at: now, until: end)
    }

    package func parkedPushes(of app: AppSerial, limit: Int) async throws -> [PushRecord] {
        try await parkedPushes(of: app, in: .all, limit: limit)
    }

    package func requeueParkedPushes(of app: AppSerial, at now: Timestamp) async throws -> Int {
        try await requeueParkedPushes(of: app, in: .all, at: now)
    }

    package func sweepPushes(at now: Timestamp, forgetting retention: RetentionTime?, limit: Int) async throws -> Bool {
        try await sweepPushes(in: .all, at: now, forgetting: retention, limit: limit)
    }
}

extension DeviceStore {
    package func pendingStatuses(limit: Int) async throws -> [PendingStatus] {
        try await pendingStatuses(in: .all, limit: limit)
    }

    package func unusedDevices(
        _ reason: UnusedDevice.Reason, by cutoff: RetentionCutoff, limit: Int
    ) async throws -> [UnusedDevice] {
        try await unusedDevices(reason, in: .all, by: cutoff, limit: limit)
    }
}

extension FormerChannelStore {
    package func channelsOfFormerUsers(of device: DeviceSerial?, limit: Int) async throws -> [PushChannel] {
        try await channelsOfFormerUsers(of: device, in: .all, limit: limit)
    }
}

extension ServiceStore {
    package func dueRequests(at now: Timestamp, limit: Int) async throws -> [ServiceRequest] {
        try await dueRequests(in: .all, at: now, limit: limit)
    }

    package func forgetRequests(by retention: RetentionTime, limit: Int) async throws -> Int {
        try await forgetRequests(in: .all, by: retention, limit: limit)
    }
}

extension SubscriptionStore {
    package func dueFirings(at now: Timestamp, limit: Int) async throws -> [DueFiring] {
        try await dueFirings(in: .all, at: now, limit: limit)
    }

    package func itemsNeverFired(
        after place: WatchPlace, limit: Int
    ) async throws -> (items: [ItemKey], end: WatchPlace?) {
        try await itemsNeverFired(in: .all, after: place, limit: limit)
    }

    package func itemsWithFirings(after item: ItemKey?, limit: Int) async throws -> [ItemKey] {
        try await itemsWithFirings(in: .all, after: item, limit: limit)
    }

    package func nextThrottledFiring() async throws -> Timestamp? { try await nextThrottledFiring(in: .all) }

    package func bringBackThrottled(at now: Timestamp) async throws { try await bringBackThrottled(in: .all, at: now) }

    package func endedSubscriptions(of device: DeviceSerial?, limit: Int) async throws -> [EndedSubscription] {
        try await endedSubscriptions(of: device, in: .all, limit: limit)
    }

    package func endExpiredSubscriptions(at now: Timestamp, limit: Int) async throws -> Int {
        try await endExpiredSubscriptions(in: .all, at: now, limit: limit)
    }
}

extension UpdateStore {
    package func forgetLocations(before moment: Timestamp, limit: Int) async throws {
        try await forgetLocations(in: .all, before: moment, limit: limit)
    }

    package func bindingsToRelease(limit: Int) async throws -> [ReleasedBinding] {
        try await bindingsToRelease(in: .all, limit: limit)
    }

    package func unfinishedOfEnded(limit: Int) async throws -> [EndedCompletion] {
        try await unfinishedOfEnded(in: .all, limit: limit)
    }

    package func findUnfinishedOfEnded(after place: UpdateSerial, limit: Int) async throws -> UpdateSerial? {
        try await findUnfinishedOfEnded(in: .all, after: place, limit: limit)
    }

    package func dueCompletions(
        of binding: BindingSerial?, at now: Timestamp, limit: Int
    ) async throws -> [DueCompletion] {
        try await dueCompletions(of: binding, in: .all, at: now, limit: limit)
    }

    package func bringBackCompletions(dueAfter moment: Timestamp, at now: Timestamp, limit: Int) async throws -> Bool {
        try await bringBackCompletions(in: .all, dueAfter: moment, at: now, limit: limit)
    }
}

extension WatchStore {
    package func spreadOverduePings(at now: Timestamp) async throws { try await spreadOverduePings(in: .all, at: now) }
}
