import CarillonCore
import CarillonWire

/// The rules according to docs/guarantees.md: one operation after the other, over the complete state.
struct NaiveInbox {
    let limits: InboxLimits
    var rows: [Int64: InboxRow] = [:]
    var channels: Set<OriginKey>
    var claims: [ClaimKey: UsedClaim] = [:]
    var notified: Set<ChannelSerial>

    mutating func commit(_ operations: [InboxOperation]) -> [InboxResult] {
        let results = operations.map { perform($0) }
        for device in Set(rows.values.map(\.device)) { forgetSurplus(of: device) }
        return results
    }

    private mutating func perform(_ operation: InboxOperation) -> InboxResult {
        switch operation {
        case .append(let envelope, let rules):
            return append(envelope, rules)
        case .record(let envelope, let rules, let finalOutcome):
            if let earlier = earlierUse(rules, envelope) { return earlier }
            claim(rules, envelope)
            let replaced = replace(rules.topic, envelope)
            if envelope.behaviour.keepsOutcome {
                rows[envelope.position] = InboxRow(envelope, topic: nil)
                rows[envelope.position]?.finalOutcome = finalOutcome
            }
            return .recorded(replaced: replaced)
        case .replace(let envelope, let rules):
            return .recorded(replaced: replace(rules.topic, envelope))
        case .finish(let id, let device, let finalOutcome):
            return finish(id, device, finalOutcome)
        case .forget(let id):
            guard let row = waiting(id), row.acceptedAt == row.expiresAt else { return .notWaiting }
            rows[id.position] = nil
            return .finished
        case .expire(let id, let now):
            guard let row = waiting(id), row.waitsUntil <= now else { return .notWaiting }
            finish(row, row.timeOver)
            return .finished
        case .end(let origin, _, let now):
            guard channels.contains(origin.origin) else { return .originGone }
            end(origin, at: now)
            return .finished
        case .changeUser:
            preconditionFailure("The scenario has no users.")
        }
    }

    private mutating func append(_ envelope: Envelope, _ rules: AppendRules) -> InboxResult {
        if let earlier = earlierUse(rules, envelope) { return earlier }
        guard channels.contains(envelope.origin.key) else { return .originGone }
        if envelope.behaviour.needsEffect, rules.effects.isEmpty { return .originGone }
        guard rules.effects.vouchedChannels.allSatisfy(notified.contains) else { return .originGone }
        if envelope.behaviour.isRefusedWhenFull, !envelope.isVolatile, !hasRoom(envelope, nil) {
            for row in rows.values
            where row.device == envelope.device && row.finalOutcome == nil && row.waitsUntil <= envelope.acceptedAt {
                finish(row, row.timeOver)
            }
            guard hasRoom(envelope, rules.topic) else { return .full }
        }
        notified.subtract(rules.effects.vouchedChannels)
        if envelope.behaviour.endsOrigin {
            end(DeviceOrigin(envelope.device, envelope.origin.key), at: envelope.acceptedAt)
        }
        claim(rules, envelope)
        let replaced = replace(rules.topic, envelope)
        rows[envelope.position] = InboxRow(envelope, topic: envelope.isVolatile ? nil : rules.topic)
        return .stored(replaced: replaced)
    }

    private func hasRoom(_ envelope: Envelope, _ topic: String?) -> Bool {
        let replaced = topic.flatMap { self.topic($0, envelope) }
        let others = rows.values.filter {
            $0.device == envelope.device && $0.finalOutcome == nil && $0.id != replaced?.id
        }
        return others.count < limits.envelopes
            && others.reduce(0, { $0 + $1.byteCount }) + envelope.byteCount <= limits.bytes
    }

    private func topic(_ topic: String, _ envelope: Envelope) -> InboxRow? {
        rows.values.first {
            $0.device == envelope.device && $0.origin == envelope.origin.key && $0.topic == topic && $0.finalOutcome == nil
        }
    }

    private mutating func replace(_ topic: String?, _ envelope: Envelope) -> MessageID? {
        guard let topic, let row = self.topic(topic, envelope), row.position < envelope.position else { return nil }
        let isExpired = row.expiresAt <= envelope.acceptedAt
        finish(row, isExpired ? FinalOutcome(.expired, at: row.expiresAt) : FinalOutcome(.replaced, at: envelope.acceptedAt))
        return row.id
    }

    private func earlierUse(_ rules: AppendRules, _ envelope: Envelope) -> InboxResult? {
        guard let claim = rules.idempotency,
            let used = claims[ClaimKey(origin: envelope.origin.key, keyHash: claim.keyHash)]
        else { return nil }
        guard used.fingerprint == claim.fingerprint else { return .keyReused }
        var outcome: Outcome?
        if let row = rows[used.id.position], row.id == used.id {
            outcome = row.finalOutcome?.outcome ?? (row.waitsUntil <= envelope.acceptedAt ? row.timeOver.outcome : nil)
        }
        return .duplicate(of: used.id, acceptedAt: used.acceptedAt, expiresAt: used.expiresAt, outcome: outcome)
    }

    private mutating func claim(_ rules: AppendRules, _ envelope: Envelope) {
        guard let claim = rules.idempotency else { return }
        claims[ClaimKey(origin: envelope.origin.key, keyHash: claim.keyHash)] = UsedClaim(
            fingerprint: claim.fingerprint, validUntil: claim.validUntil, id: envelope.id, device: envelope.device,
            acceptedAt: envelope.acceptedAt, expiresAt: envelope.expiresAt)
    }

    private func waiting(_ id: MessageID) -> InboxRow? {
        guard let row = rows[id.position], row.id == id, row.finalOutcome == nil else { return nil }
        return row
    }

    private mutating func finish(_ id: MessageID, _ device: DeviceSerial?, _ finalOutcome: FinalOutcome) -> InboxResult {
        guard let row = rows[id.position], row.id == id, device == nil || device == row.device else { return .notWaiting }
        if let earlier = row.finalOutcome {
            if device != nil, earlier.outcome == .acknowledged, finalOutcome.outcome == .failed,
                let code = finalOutcome.code, code >= ResultCode.handlerFailed
            {
                rows[id.position]?.finalOutcome?.code = code
            }
            return .notWaiting
        }
        guard row.waitsUntil > finalOutcome.at else { return .notWaiting }
        finish(row, finalOutcome)
        return .finished
    }

    private mutating func finish(_ row: InboxRow, _ finalOutcome: FinalOutcome) {
        rows[row.position] = nil
        guard row.kind.behaviour.keepsOutcome else { return }
        rows[row.position] = row
        rows[row.position]?.finalOutcome = finalOutcome
    }

    private mutating func end(_ origin: DeviceOrigin, at now: Timestamp) {
        channels.remove(origin.origin)
        for row in rows.values
        where row.deviceOrigin == origin && row.finalOutcome == nil && row.kind.behaviour.endsWithOrigin {
            finish(row, row.waitsUntil <= now ? row.timeOver : FinalOutcome(.gone, at: now))
        }
    }

    private mutating func forgetSurplus(of device: DeviceSerial) {
        let outcomes = rows.values.filter { $0.device == device && $0.finalOutcome != nil }
        if outcomes.count > limits.outcomes {
            let surplus = outcomes.count - limits.outcomes + limits.outcomes / 16
            for row in outcomes.sorted(by: { $0.position < $1.position }).prefix(surplus) { rows[row.position] = nil }
        }
        let keys = claims.filter { $0.value.device == device }
        if keys.count > limits.idempotencyKeys {
            let surplus = keys.count - limits.idempotencyKeys + limits.idempotencyKeys / 16
            for key in keys.sorted(by: { $0.value.validUntil < $1.value.validUntil }).prefix(surplus) {
                claims[key.key] = nil
            }
        }
    }
}

extension Sequence<Effect> {
    /// The channels whose backends called the server themselves.
    var vouchedChannels: [ChannelSerial] {
        compactMap { effect -> ChannelSerial? in
            guard case .vouchedFor(let channel)? = effect.value as? WatchEffect else { return nil }
            return channel
        }
    }
}
