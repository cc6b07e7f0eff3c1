import CarillonCore
import CarillonWire

/// Envelopes of channels and pushes.
extension WorkloadTrack {
    static let messageSeconds: Int64 = 10 * 86_400

    func waiting(_ device: Device, limit: Int = 100) async throws -> [Envelope] {
        try await store.waiting(device: device.serial, after: 0, limit: limit, bytes: 1 << 20, at: now) ?? []
    }

    func envelope(
        _ operation: WorkloadOperation, _ place: Int = 0, for device: Device, from origin: Origin, _ kind: Envelope.Kind
    ) -> Envelope {
        Envelope(
            id: operation.message(place), device: device.serial, app: device.app, origin: origin, kind: kind,
            acceptedAt: now, expiresAt: now.adding(seconds: Self.messageSeconds))
    }

    /// Commits several changes in one transaction: the device acknowledges some envelopes, a sender cancels one, and up to three
    /// envelopes are added.
    func commitMessages(_ operation: WorkloadOperation) async throws -> String {
        guard let device = try await device(operation.slot), let channel = try await channel(operation, of: device) else {
            return Self.nothing
        }
        let waiting = try await waiting(device, limit: 5)
        var changes: [InboxOperation] = []
        for envelope in waiting.prefix(Int(operation.value % 5)) {
            changes.append(.finish(envelope.id, device: device.serial, FinalOutcome(.acknowledged, at: now)))
        }
        if operation.other == 0, let last = waiting.last {
            changes.append(.finish(last.id, device: nil, FinalOutcome(.cancelled, at: now)))
        }
        for place in 0...operation.choice {
            let body = Array(repeating: UInt8(place), count: 10 + Int(operation.value % 50))
            let envelope = envelope(
                operation, place, for: device, from: channel.origin,
                .message(Envelope.Content(body: body, coding: ContentCoding(.aes128gcm))))
            changes.append(.append(envelope, rules(operation, place, channel.wake)))
        }
        return text(try await store.commit(changes))
    }

    private func rules(_ operation: WorkloadOperation, _ place: Int, _ wake: WakeMode) -> AppendRules {
        var rules = AppendRules()
        if place == 0, operation.other == 1 { rules.topic = "topic" }
        if place == 1 {
            let key = UInt8(operation.value % 10)
            rules.idempotency = IdempotencyClaim(
                keyHash: [key], fingerprint: [key % 2], validUntil: now.adding(seconds: IdempotencyClaim.keptSeconds))
        }
        if wake != .none { rules.wake = WakeRequest(wake, dueAt: now) }
        return rules
    }

    // MARK: Pushes

    var pushQueue: PushQueue { PushQueue(app: app.serial, environment: .production) }

    mutating func leasePushes(_ operation: WorkloadOperation) async throws -> String {
        let leased = try await store.leasePushes(
            of: pushQueue, in: .all, limit: 1 + operation.slot, at: now, until: now.adding(seconds: LeasedPush.leaseSeconds))
        pushes += leased.pushes
        return "\(leased.pushes.count) \(leased.areMoreDue)"
    }

    mutating func endPushes(_ operation: WorkloadOperation) async throws -> String {
        guard !pushes.isEmpty else { return Self.nothing }
        let verdict: PushEnd.Verdict
        switch operation.value % 4 {
        case 0: verdict = .again(at: now.adding(seconds: 60), isSpent: true, reason: "later")
        case 1: verdict = .parked(reason: "wrong")
        default: verdict = .handed
        }
        var ends: [PushEnd] = []
        for push in pushes { ends.append(PushEnd(push, verdict, at: now)) }
        pushes = []
        return text(try await store.endPushes(ends))
    }
}
