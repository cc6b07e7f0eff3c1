package import CarillonWire

extension HomeRuntime: LocalHome {
    package var shards: ShardSet { gate?.openShards ?? .all }

    package func has(_ shard: @autoclosure () -> Shard) -> Bool { gate?.has(shard()) ?? true }

    package func has(_ device: DeviceSerial) -> Bool { gate?.has(Shard(of: device)) ?? true }

    package func isOpen(_ shard: @autoclosure () -> Shard) -> Bool { gate?.isOpen(shard()) ?? true }

    package var epoch: Int64 { inbox.epoch }

    // MARK: Delivery

    package func deliver(
        to device: DeviceSerial, _ mode: DeliveryMode, rules: AppendRules,
        _ make: @escaping @Sendable (MessageID) -> Envelope,
        then: @escaping @Sendable (MessageID, InboxResult) -> Void
    ) {
        guard let gate else { return inbox.deliver(to: device, mode, rules: rules, make, then: then) }
        let shard = Shard(of: device)
        guard gate.enterNow(shard) else {
            let isKept = gate.whenDecided(shard) { [self] in
                guard gate.has(shard) else { return then(inbox.newID(for: device), .failed(Self.isMoving)) }
                deliver(to: device, mode, rules: rules, make, then: then)
            }
            if !isKept { then(inbox.newID(for: device), .failed(Self.isMoving)) }
            return
        }
        inbox.deliver(to: device, mode, rules: rules, make) { id, result in
            gate.leave(shard)
            then(id, result)
        }
    }

    package func deliver(
        to device: DeviceSerial, _ mode: DeliveryMode, rules: AppendRules,
        _ make: @escaping @Sendable (MessageID) -> Envelope
    ) async -> InboxResult {
        await inside(device) { await inbox.deliver(to: device, mode, rules: rules, make) } ?? .failed(Self.isMoving)
    }

    package func deliver(
        keptBy device: DeviceSerial, _ make: @escaping @Sendable (MessageID) -> (Envelope, AppendRules)
    ) async -> InboxResult {
        await inside(device) { await inbox.deliver(keptBy: device, make) } ?? .failed(Self.isMoving)
    }

    package func sendWithoutStoring(
        to device: DeviceSerial, _ make: @escaping @Sendable (MessageID) -> Envelope
    ) async -> Bool {
        await inside(device) { await inbox.sendWithoutStoring(to: device, make) } ?? false
    }

    static let isMoving = StoreFault(.unreachable, "the device is moving to another home")

    /// Does the work if the gate admits it, possibly after the end of a move. Otherwise returns nil.
    private func inside<Result>(_ device: DeviceSerial, _ work: () async -> Result) async -> Result? {
        guard let gate else { return await work() }
        let shard = Shard(of: device)
        if !gate.enterNow(shard) {
            do throws(HomeFault) { try await gate.enter(shard) } catch { return nil }
        }
        defer { gate.leave(shard) }
        return await work()
    }

    package func inside<Result>(of device: DeviceSerial, _ work: () async throws -> Result) async throws -> Result {
        guard let gate else { return try await work() }
        let shard = Shard(of: device)
        if !gate.enterNow(shard) {
            do throws(HomeFault) { try await gate.enter(shard) } catch { throw StoreFault(error) }
        }
        defer { gate.leave(shard) }
        return try await work()
    }

    // MARK: Inboxes

    package func waiting(device: DeviceSerial, _ load: PageRequest) async throws -> InboxRead {
        try await inbox.waiting(device: device, load)
    }

    package func waitingCount(device: DeviceSerial) async throws -> Int { try await inbox.waitingCount(device: device) }

    package func record(of id: MessageID) async throws -> MessageRecord? { try await inbox.record(of: id) }

    package func cancel(_ id: MessageID, of device: DeviceSerial) async throws -> Bool {
        try await inside(of: device) { try await inbox.cancel(id) }
    }

    package func takeBack(_ id: MessageID, from device: DeviceSerial) async throws -> Bool {
        try await inside(of: device) { try await inbox.takeBack(id, from: device) }
    }

    package func takeOut(_ envelopes: [MessageID], of device: DeviceSerial, as outcome: Outcome) async throws {
        try await inside(of: device) { try await inbox.takeOut(envelopes, of: device, as: outcome) }
    }

    package func finish(_ answers: [EnvelopeAnswer], device: DeviceSerial) async throws {
        try await inside(of: device) { try await inbox.finish(answers, device: device) }
    }

    @discardableResult
    package func finish(_ id: MessageID, device: DeviceSerial, _ outcome: Outcome, code: Int?) -> Bool {
        guard let gate else { return inbox.finish(id, device: device, outcome, code: code) }
        let shard = Shard(of: device)
        guard gate.enterNow(shard) else { return false }
        defer { gate.leave(shard) }
        return inbox.finish(id, device: device, outcome, code: code)
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
        sessions.call(.withdrew(.envelope(position)) {}, ofDevice: device)
    }

    // MARK: Connections

    package func isConnected(_ device: DeviceSerial) -> Bool { sessions.isConnected(device) }

    package func isPresent(_ device: DeviceSerial) -> Bool { isConnected(device) || sessions.hasWaiters(device) }

    package func providersChanged(for device: DeviceSerial) { sessions.call(.providersChanged, ofDevice: device) }

    package func end(_ devices: [DeviceSerial], because reason: SessionEnd) { sessions.end(devices, because: reason) }

    package func addWaiter(_ waiter: any LiveSession, for device: DeviceSerial) {
        sessions.addWaiter(waiter, for: device)
        // From now on, envelopes for the device are stored at its new home.
        if !has(device) { waiter.end(because: .moved) }
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
