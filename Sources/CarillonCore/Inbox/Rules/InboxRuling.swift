import CarillonWire

/// The rows of a batch while it is decided: the rows of the store, changed by the earlier operations of the batch.
struct InboxRuling {
    private let limits: InboxLimits
    private let facts: InboxFacts
    private let asked: InboxQuestions
    private(set) var missing = InboxQuestions()

    /// The rows that the batch changed, in their present state; nil for a row that is removed without an outcome.
    private var rows: [Int64: InboxRow?] = [:]
    /// The rows as they were in the store, in the order of their first change.
    private var touched: [(position: Int64, before: InboxRow?)] = []
    private var arrivals: [Int64: (envelope: Envelope, wake: WakeRequest?)] = [:]
    private var answered: [DeviceSerial: Timestamp] = [:]
    private var topics: [TopicKey: Int64] = [:]
    private var claims: [ClaimKey: UsedClaim] = [:]
    private var usage: [DeviceSerial: InboxUsage.Change] = [:]
    /// The envelopes that the batch added to quotas.
    private var consumers: [ConsumerQuotaKey: InboxUsage.Waiting] = [:]
    private var ended: [DeviceOrigin: InboxChanges.End] = [:]
    private var endsInOrder: [InboxChanges.End] = []
    private var effects: [Effect] = []
    /// The same effects, for lookups.
    private var accepted: Set<Effect> = []
    private var vainEffects: [Effect] = []
    private var notified: [InboxRow] = []
    private var tally = InboxTally()

    init(limits: InboxLimits, facts: InboxFacts, asked: InboxQuestions) {
        self.limits = limits
        self.facts = facts
        self.asked = asked
    }

    mutating func perform(_ operation: InboxOperation) -> InboxResult {
        switch operation {
        case .append(let envelope, let rules): append(envelope, rules)
        case .record(let envelope, let rules, let finalOutcome): record(envelope, rules, finalOutcome)
        case .replace(let envelope, let rules): .recorded(replaced: replace(rules.topic, by: envelope))
        case .finish(let id, let device, let finalOutcome): finish(id, by: device, finalOutcome)
        case .forget(let id): forget(id)
        case .expire(let id, let now): expire(id, at: now)
        case .end(let origin, let reason, let now): end(origin, because: reason, at: now)
        case .changeUser(let device, let hadUser, let now): changeUser(of: device, hadUser: hadUser, at: now)
        }
    }

    // MARK: Appending

    private mutating func append(_ envelope: Envelope, _ rules: AppendRules) -> InboxResult {
        if let earlier = earlierUse(of: rules.idempotency, for: envelope) { return earlier }
        let origin = DeviceOrigin(envelope.device, envelope.origin.key)
        let behaviour = envelope.behaviour
        guard isOpen(origin) || behaviour.endsOrigin && isClosed(origin), allCount(rules.effects),
            !behaviour.needsEffect || !rules.effects.isEmpty
        else { return .originGone }
        let quotaKey = rules.consumer.map { ConsumerQuotaKey(envelope.device, of: $0) }
        if let quotaKey, behaviour.isRefusedWhenFull, !fits(envelope, into: quotaKey) { return .quotaFull }
        if behaviour.isRefusedWhenFull, !envelope.isVolatile, !hasRoom(for: envelope, insteadOf: rules.topic) {
            return .full
        }
        if behaviour.endsOrigin {
            endWaiting(of: origin, because: DisconnectReason(envelope.kind), at: envelope.acceptedAt)
        }
        claim(rules.idempotency, for: envelope)
        effects += rules.effects
        accepted.formUnion(rules.effects)
        let replaced = replace(rules.topic, by: envelope)
        let row = InboxRow(envelope, topic: envelope.isVolatile ? nil : rules.topic)
        put(row, insteadOf: nil)
        arrivals[row.position] = (envelope, rules.wake)
        tally.accepted(row.kind)
        if let topic = row.topic { topics[TopicKey(origin, topic)] = row.position }
        usage[envelope.device, default: .init()].arrived(row)
        if let quotaKey {
            consumers[quotaKey, default: .init()].envelopes += 1
            consumers[quotaKey, default: .init()].bytes += row.byteCount
        }
        return .stored(replaced: replaced)
    }

    private mutating func record(
        _ envelope: Envelope, _ rules: AppendRules, _ finalOutcome: FinalOutcome
    ) -> InboxResult {
        if let earlier = earlierUse(of: rules.idempotency, for: envelope) { return earlier }
        claim(rules.idempotency, for: envelope)
        tally.accepted(envelope.kind.number)
        tally.ended(InboxRow(envelope, topic: nil), finalOutcome)
        let replaced = replace(rules.topic, by: envelope)
        noteAnswer(of: envelope.device, finalOutcome)
        guard envelope.behaviour.keepsOutcome else { return .recorded(replaced: replaced) }
        var row = InboxRow(envelope, topic: nil)
        row.finalOutcome = finalOutcome
        put(row, insteadOf: nil)
        usage[envelope.device, default: .init()].outcomes += 1
        return .recorded(replaced: replaced)
    }

    private mutating func allCount(_ wanted: [Effect]) -> Bool {
        guard !wanted.isEmpty else { return true }
        guard wanted.allSatisfy({ asked.effects.contains($0) }) else {
            missing.effects.formUnion(wanted)
            return false
        }
        if wanted.allSatisfy({ facts.effects.contains($0) && !accepted.contains($0) }) { return true }
        vainEffects += wanted.filter { !accepted.contains($0) }
        return false
    }

    private mutating func hasRoom(for envelope: Envelope, insteadOf topic: String?) -> Bool {
        if fits(envelope, insteadOf: nil) { return true }
        guard let known = asked.overdue[envelope.device], known >= envelope.acceptedAt else {
            missing.overdue[envelope.device] = max(
                missing.overdue[envelope.device] ?? envelope.acceptedAt, envelope.acceptedAt)
            return false
        }
        for row in facts.overdue[envelope.device] ?? [] where row.waitsUntil <= envelope.acceptedAt {
            guard let row = current(row), row.finalOutcome == nil else { continue }
            leave(row, row.timeOver)
        }
        return fits(envelope, insteadOf: waitingRow(of: topic, like: envelope))
    }

    private mutating func fits(_ envelope: Envelope, insteadOf row: InboxRow?) -> Bool {
        guard let waiting = waiting(for: envelope.device) else { return true }
        return waiting.envelopes - (row == nil ? 0 : 1) < limits.envelopes
            && waiting.bytes - (row?.byteCount ?? 0) + envelope.byteCount <= limits.bytes
    }

    /// Whether the quota of a consumer has room. The waiting envelopes of a consumer are a part of all that wait for the device.
    /// If all together are below the limit, the consumer's need not be read.
    private mutating func fits(_ envelope: Envelope, into quotaKey: ConsumerQuotaKey) -> Bool {
        let limit = limits.consumerQuota
        guard let waiting = waiting(for: envelope.device),
            waiting.envelopes >= limit.envelopes || waiting.bytes + envelope.byteCount > limit.bytes
        else { return true }
        guard asked.consumers[quotaKey] != nil else {
            missing.consumers[quotaKey] = envelope.acceptedAt
            return true
        }
        let (stored, added) = (facts.consumers[quotaKey] ?? .init(), consumers[quotaKey] ?? .init())
        let envelopes = stored.envelopes + added.envelopes
        // The first envelope is accepted with any size.
        return envelopes == 0
            || envelopes < limit.envelopes && stored.bytes + added.bytes + envelope.byteCount <= limit.bytes
    }

    /// Returns the waiting envelopes of a device after the earlier operations; nil if they must be read from the store.
    private mutating func waiting(for device: DeviceSerial) -> InboxUsage.Waiting? {
        guard asked.waiting.contains(device) else {
            missing.waiting.insert(device)
            return nil
        }
        let change = usage[device] ?? .init()
        var waiting = facts.usage[device]?.waiting ?? .init()
        waiting.envelopes += change.envelopes
        waiting.bytes += change.bytes
        return waiting
    }

    /// Returns the replaced message.
    private mutating func replace(_ topic: String?, by envelope: Envelope) -> MessageID? {
        // A message of TTL 0 can be processed after a newer one with its collapse key.
        guard let row = waitingRow(of: topic, like: envelope), row.position < envelope.position else { return nil }
        leave(
            row,
            row.expiresAt <= envelope.acceptedAt
                ? FinalOutcome(.expired, at: row.expiresAt) : FinalOutcome(.replaced, at: envelope.acceptedAt))
        return row.id
    }

    private mutating func waitingRow(of topic: String?, like envelope: Envelope) -> InboxRow? {
        guard let topic else { return nil }
        let key = TopicKey(DeviceOrigin(envelope.device, envelope.origin.key), topic)
        let position: Int64?
        if let own = topics[key] {
            position = own
        } else if asked.topics.contains(key) {
            position = facts.topics[key]
        } else {
            missing.topics.insert(key)
            return nil
        }
        guard let position, let row = row(at: position), row.finalOutcome == nil else { return nil }
        return row
    }

    // MARK: Idempotency

    private mutating func earlierUse(of claim: IdempotencyClaim?, for envelope: Envelope) -> InboxResult? {
        guard let claim else { return nil }
        let key = ClaimKey(origin: envelope.origin.key, keyHash: claim.keyHash)
        guard claims[key] != nil || asked.claims.contains(key) else {
            missing.claims.insert(key)
            return nil
        }
        // A key is valid until it is removed.
        guard let used = claims[key] ?? facts.claims[key] else { return nil }
        guard used.fingerprint == claim.fingerprint else { return .keyReused }
        return .duplicate(
            of: used.id, acceptedAt: used.acceptedAt, expiresAt: used.expiresAt,
            outcome: outcome(of: used.id, at: envelope.acceptedAt))
    }

    private mutating func outcome(of id: MessageID, at now: Timestamp) -> Outcome? {
        guard let row = row(at: id.position), row.id == id else { return nil }
        return (row.finalOutcome ?? (row.waitsUntil <= now ? row.timeOver : nil))?.outcome
    }

    private mutating func claim(_ claim: IdempotencyClaim?, for envelope: Envelope) {
        guard let claim else { return }
        let key = ClaimKey(origin: envelope.origin.key, keyHash: claim.keyHash)
        let isNew = claims[key] == nil && facts.claims[key] == nil
        claims[key] = UsedClaim(
            fingerprint: claim.fingerprint, validUntil: claim.validUntil, id: envelope.id, device: envelope.device,
            acceptedAt: envelope.acceptedAt, expiresAt: envelope.expiresAt)
        if isNew { usage[envelope.device, default: .init()].keys += 1 }
    }

    // MARK: Ending

    private mutating func finish(_ id: MessageID, by device: DeviceSerial?, _ finalOutcome: FinalOutcome) -> InboxResult {
        guard let row = row(of: id), device == nil || device == row.device else { return .notWaiting }
        if let earlier = row.finalOutcome {
            amend(row, earlier, with: finalOutcome, isByDevice: device != nil)
            return .notWaiting
        }
        guard row.waitsUntil > finalOutcome.at else { return .notWaiting }
        leave(row, finalOutcome)
        noteAnswer(of: device, finalOutcome)
        return .finished
    }

    private mutating func noteAnswer(of device: DeviceSerial?, _ finalOutcome: FinalOutcome) {
        guard let device, finalOutcome.outcome.isOfDevice else { return }
        answered[device] = finalOutcome.at
    }

    /// Adds a code to an outcome. A device can acknowledge a message and then report that its handler failed: the outcome stays.
    private mutating func amend(_ row: InboxRow, _ earlier: FinalOutcome, with later: FinalOutcome, isByDevice: Bool) {
        guard isByDevice, earlier.outcome == .acknowledged, later.outcome == .failed, let code = later.code,
            code >= ResultCode.handlerFailed
        else { return }
        var amended = row
        amended.finalOutcome?.code = code
        put(amended, insteadOf: row)
    }

    private mutating func forget(_ id: MessageID) -> InboxResult {
        guard let row = row(of: id), row.finalOutcome == nil, row.acceptedAt == row.expiresAt else { return .notWaiting }
        tally.ended(row.kind, .dropped)
        remove(row)
        return .finished
    }

    private mutating func expire(_ id: MessageID, at now: Timestamp) -> InboxResult {
        guard let row = row(of: id), row.finalOutcome == nil, row.waitsUntil <= now else { return .notWaiting }
        leave(row, row.timeOver)
        return .finished
    }

    private mutating func leave(_ row: InboxRow, _ finalOutcome: FinalOutcome) {
        tally.ended(row, finalOutcome)
        if row.kind.behaviour.isNotifiedToOrigin {
            var notified = row
            notified.finalOutcome = finalOutcome
            self.notified.append(notified)
        }
        guard row.kind.behaviour.keepsOutcome else { return remove(row) }
        var finished = row
        finished.finalOutcome = finalOutcome
        put(finished, insteadOf: row)
        usage[row.device, default: .init()].removed(row)
        usage[row.device, default: .init()].outcomes += 1
    }

    private mutating func remove(_ row: InboxRow) {
        put(nil, insteadOf: row)
        usage[row.device, default: .init()].removed(row)
    }

    // MARK: Origins

    private mutating func isOpen(_ origin: DeviceOrigin) -> Bool {
        if ended[origin] != nil { return false }
        if !asked.origins.contains(origin.origin) { missing.origins.insert(origin.origin) }
        return facts.origins.contains(origin.origin)
    }

    /// Whether the origin is closed, and its device is not notified yet.
    private func isClosed(_ origin: DeviceOrigin) -> Bool {
        ended[origin] == nil && facts.closedOrigins.contains(origin.origin)
    }

    private mutating func end(
        _ origin: DeviceOrigin, because reason: DisconnectReason, at now: Timestamp
    ) -> InboxResult {
        guard isOpen(origin) else { return .originGone }
        endWaiting(of: origin, because: reason, at: now)
        return .finished
    }

    /// Ends the envelopes of an origin. The store ends the rows that it has. This method ends the rows that the batch added.
    private mutating func endWaiting(
        of origin: DeviceOrigin, because reason: DisconnectReason, at now: Timestamp
    ) {
        guard asked.originContents.contains(origin) else {
            missing.originContents.insert(origin)
            return
        }
        var contents = facts.originContents[origin] ?? OriginContents()
        for (position, before) in touched {
            // The batch ended this row already.
            if let before, before.deviceOrigin == origin, before.finalOutcome == nil, before.kind.behaviour.endsWithOrigin,
                row(at: position)?.finalOutcome != nil || row(at: position) == nil
            {
                contents.remove(before)
            }
            guard before == nil, let row = row(at: position), row.deviceOrigin == origin, row.finalOutcome == nil,
                row.kind.behaviour.endsWithOrigin
            else { continue }
            leave(row, Self.end(of: row, at: now))
        }
        usage[origin.device, default: .init()].envelopes -= contents.waiting.envelopes
        usage[origin.device, default: .init()].bytes -= contents.waiting.bytes
        usage[origin.device, default: .init()].outcomes += contents.outcomes
        for (kind, count) in contents.kinds { tally.ended(kind, .gone, count: count) }
        let end = InboxChanges.End(origin: origin, reason: reason, at: now)
        ended[origin] = end
        endsInOrder.append(end)
    }

    private mutating func changeUser(of device: DeviceSerial, hadUser: Bool, at now: Timestamp) -> InboxResult {
        guard asked.inboxes.contains(device) else {
            missing.inboxes.insert(device)
            return .finished
        }
        let ofBatch = touched.filter { $0.before == nil }.compactMap { rows[$0.position] ?? nil }
        for row in (facts.inboxes[device] ?? []) + ofBatch where row.device == device {
            guard let row = current(row), row.finalOutcome == nil else { continue }
            let isOfUser = hadUser && facts.originsOfUsers.contains(row.origin)
            if row.kind.behaviour.userChange.ends(isOfUser: isOfUser) { leave(row, Self.end(of: row, at: now)) }
        }
        return .finished
    }

    private static func end(of row: InboxRow, at now: Timestamp) -> FinalOutcome {
        row.waitsUntil <= now ? row.timeOver : FinalOutcome(.gone, at: now)
    }

    // MARK: Rows

    private mutating func row(of id: MessageID) -> InboxRow? {
        guard let row = row(at: id.position), row.id == id else { return nil }
        return row
    }

    private mutating func row(at position: Int64) -> InboxRow? {
        if let known = rows[position] { return known }
        guard let row = facts.rows[position] else {
            if !asked.rows.contains(position) { missing.rows.insert(position) }
            return nil
        }
        return afterEnd(row)
    }

    /// Returns a row of the store after the changes of the batch; nil if it was removed.
    private func current(_ row: InboxRow) -> InboxRow? {
        if let known = rows[row.position] { return known }
        return afterEnd(row)
    }

    /// Returns a row of the store after the end of its origin, which ends each waiting row in the store; nil if the row was
    /// removed.
    private func afterEnd(_ row: InboxRow) -> InboxRow? {
        guard row.finalOutcome == nil, row.kind.behaviour.endsWithOrigin, let end = ended[row.deviceOrigin] else {
            return row
        }
        guard row.kind.behaviour.keepsOutcome else { return nil }
        var row = row
        row.finalOutcome = Self.end(of: row, at: end.at)
        return row
    }

    private mutating func put(_ row: InboxRow?, insteadOf earlier: InboxRow?) {
        guard let position = row?.position ?? earlier?.position else { return }
        if rows[position] == nil { touched.append((position, earlier)) }
        rows[position] = .some(row)
    }

    // MARK: Changes

    /// Returns the net effect. The facts that are missing for it are in ``missing``.
    mutating func changes() -> InboxChanges {
        var changes = InboxChanges()
        changes.ends = endsInOrder
        changes.claims = claims
        changes.effects = effects
        changes.vainEffects = vainEffects
        changes.answered = answered
        changes.notified = notified
        for (position, before) in touched { note(position, before, in: &changes) }
        changes.tally = tally
        for (device, change) in usage {
            changes.tally.waiting.envelopes += change.envelopes
            changes.tally.waiting.bytes += change.bytes
            changes.usage[device] = forgetting(change, of: device, in: &changes)
        }
        return changes
    }

    private func note(_ position: Int64, _ before: InboxRow?, in changes: inout InboxChanges) {
        let after = rows[position].flatMap { $0 }
        let waited = before != nil && before?.finalOutcome == nil
        if waited, let before, after == nil || after?.finalOutcome != nil { changes.departures.append(before) }
        guard let after else { return }
        guard let finalOutcome = after.finalOutcome else {
            guard let (envelope, wake) = arrivals[position] else { return }
            return changes.arrivals.append(.init(envelope: envelope, topic: after.topic, wake: wake))
        }
        if before == nil || waited {
            changes.outcomes.append(after)
        } else if let code = finalOutcome.code, before?.finalOutcome != finalOutcome {
            changes.amendments[position] = code
        }
    }

    /// Removes the oldest rows beyond the limits, and a sixteenth of the limit more, so that this is not done each time.
    private mutating func forgetting(
        _ change: InboxUsage.Change, of device: DeviceSerial, in changes: inout InboxChanges
    ) -> InboxUsage.Change {
        var change = change
        if change.outcomes > 0 {
            if !asked.outcomes.contains(device) { missing.outcomes.insert(device) }
            let kept = (facts.usage[device]?.outcomes ?? 0) + change.outcomes
            if kept > limits.outcomes {
                let excess = kept - limits.outcomes + limits.outcomes / 16
                changes.forgottenOutcomes[device] = excess
                change.outcomes -= excess
            }
        }
        if change.keys > 0 {
            if !asked.keys.contains(device) { missing.keys.insert(device) }
            let kept = (facts.usage[device]?.keys ?? 0) + change.keys
            if kept > limits.idempotencyKeys {
                let excess = kept - limits.idempotencyKeys + limits.idempotencyKeys / 16
                changes.forgottenKeys[device] = excess
                change.keys -= excess
            }
        }
        return change
    }
}

extension InboxUsage.Change {
    fileprivate mutating func arrived(_ row: InboxRow) {
        envelopes += 1
        bytes += row.byteCount
    }

    fileprivate mutating func removed(_ row: InboxRow) {
        envelopes -= 1
        bytes -= row.byteCount
    }
}
