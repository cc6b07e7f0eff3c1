package import CarillonWire

extension HomeRuntime: LocalHome {
    package var shards: ShardSet { hasAllShards ? .all : ownShards.withLock { $0 } }

    package func has(_ device: DeviceSerial) -> Bool { hasAllShards || has(Shard(of: device)) }

    package var epoch: Int64 { inbox.epoch }

    // MARK: Delivery

    package func deliver(
        to device: DeviceSerial, _ mode: DeliveryMode, rules: AppendRules,
        _ make: @escaping @Sendable (MessageID) -> Envelope,
        then: @escaping @Sendable (MessageID, DeliveryResult) -> Void
    ) {
        inbox.deliver(to: device, mode, rules: rules, make, then: then)
    }

    package func deliver(
        to device: DeviceSerial, _ mode: DeliveryMode, rules: AppendRules,
        _ make: @escaping @Sendable (MessageID) -> Envelope
    ) async -> DeliveryResult {
        await inbox.deliver(to: device, mode, rules: rules, make)
    }

    package func deliver(
        keptBy device: DeviceSerial, _ make: @escaping @Sendable (MessageID) -> (Envelope, AppendRules)
    ) async -> DeliveryResult {
        await inbox.deliver(keptBy: device, make)
    }

    package func giveOnce(
        to device: DeviceSerial, _ make: @escaping @Sendable (MessageID) -> Envelope
    ) async -> Bool {
        await inbox.giveOnce(to: device, make)
    }

    // MARK: Inboxes

    package func waiting(device: DeviceSerial, _ load: InboxLoad) async throws -> InboxRead {
        try await inbox.waiting(device: device, load)
    }

    package func waitingCount(device: DeviceSerial) async throws -> Int { try await inbox.waitingCount(device: device) }

    package func record(of id: MessageID) async throws -> MessageRecord? { try await inbox.record(of: id) }

    package func cancel(_ id: MessageID) async throws -> Bool { try await inbox.cancel(id) }

    package func takeBack(_ id: MessageID, from device: DeviceSerial) async throws -> Bool {
        try await inbox.takeBack(id, from: device)
    }

    package func takeOut(_ envelopes: [MessageID], of device: DeviceSerial, as outcome: Outcome) async throws {
        try await inbox.takeOut(envelopes, of: device, as: outcome)
    }

    package func settle(_ answers: [EnvelopeAnswer], device: DeviceSerial) async throws {
        try await inbox.settle(answers, device: device)
    }

    @discardableResult
    package func settle(_ id: MessageID, device: DeviceSerial, _ outcome: Outcome, code: Int?) -> Bool {
        inbox.settle(id, device: device, outcome, code: code)
    }

    package func flush(_ device: DeviceSerial) async { await inbox.flush(device) }

    package func beginVisit() -> InboxChangeClock.Moment { sessions.changes.now() }

    package func isOutdated(_ device: DeviceSerial, readAfter moment: InboxChangeClock.Moment) -> Bool {
        inbox.isOutdated(device, readAfter: moment)
    }

    // MARK: Withdrawals

    package func withdraw(_ withdrawal: DeliveryMachine.Withdrawal, from device: DeviceSerial) async {
        await inbox.withdraw(withdrawal, from: device)
    }

    package func withdraw(
        _ withdrawal: DeliveryMachine.Withdrawal, from device: DeviceSerial, then: @escaping @Sendable () -> Void
    ) {
        sessions.withdraw(withdrawal, from: device, then: then)
    }

    package func noteWithdrawal(fromAllOf app: AppSerial) -> [DeviceSerial] {
        sessions.changes.note(allOf: app)
        return sessions.devices(of: app)
    }

    package func expired(_ position: Int64, of device: DeviceSerial) {
        sessions.session(of: device)?.withdrew(.envelope(position)) {}
    }

    // MARK: Connections

    package func isConnected(_ device: DeviceSerial) -> Bool { sessions.session(of: device) != nil }

    package func isPresent(_ device: DeviceSerial) -> Bool { isConnected(device) || sessions.hasWaiters(device) }

    package func providersChanged(for device: DeviceSerial) { sessions.session(of: device)?.providersChanged() }

    package func end(_ devices: [DeviceSerial], because reason: SessionEnd) { sessions.end(devices, because: reason) }

    package func addWaiter(_ waiter: any LiveSession, for device: DeviceSerial) {
        sessions.addWaiter(waiter, for: device)
    }

    package func removeWaiter(_ waiter: any LiveSession, for device: DeviceSerial) {
        sessions.removeWaiter(waiter, for: device)
    }

    // MARK: All devices

    package var population: (sessions: Int, waiters: Int) { sessions.population }

    package func waitingInAll() async throws -> InboxUsage.Waiting { try await inbox.waitingInAll() }

    package func endAll(because reason: SessionEnd) { sessions.endAll(because: reason) }

    package func flush() async { await inbox.flush() }

    package func writeUnwritten() async { await inbox.writeUnwritten() }

    package var hasUnwritten: Bool { inbox.hasUnwritten }
}
