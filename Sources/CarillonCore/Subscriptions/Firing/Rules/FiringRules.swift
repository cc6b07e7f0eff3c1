/// Limits for the throttled firings of one device.
package struct ThrottledLimits: Equatable, Sendable {
    package var firings: Int
    package var bytes: Int

    package init(firings: Int = SubscriptionLimits.throttledFirings, bytes: Int = SubscriptionLimits.throttledBytes) {
        self.firings = firings
        self.bytes = bytes
    }
}

/// Decides which firings are valid, which are throttled by the pace of their subscription, and when throttled firings are due.
///
/// The rules do not read the store. They return the rows that they need (``FiringQuestions``), and decide from the rows that the
/// caller passes. They return a result for each firing and the net changes of rows. Each decision takes earlier decisions into
/// account.
package struct FiringRules: Sendable {
    /// A throttled firing after the decisions.
    private struct Queued: Sendable {
        var bytes: Int
        /// The number in the store; nil for an added firing.
        var number: Int64?
        /// The index in ``added``; nil for a firing of the store.
        var place: Int?
    }

    private let limits: ThrottledLimits
    private var facts: FiringFacts
    private var queues: [FiringKey: [Queued]] = [:]
    /// The element is nil if another firing replaced the firing.
    private var added: [ThrottledFiring?] = []
    private var changed = FiringChanges()

    package init(limits: ThrottledLimits = ThrottledLimits(), knowing facts: FiringFacts) {
        self.limits = limits
        self.facts = facts
    }

    /// The net effect of all decisions.
    package var changes: FiringChanges {
        var changes = changed
        changes.added = added.compactMap(\.self)
        return changes
    }

    // MARK: Questions

    package static func questions(for effects: [FiringEffect]) -> FiringQuestions {
        var questions = FiringQuestions()
        for effect in effects {
            switch effect {
            case .fired(let target, let item, _, _): questions.watches.insert(FiringKey(target.subscription, on: item))
            case .throttledNotified(let number, _): questions.throttled.insert(number)
            }
        }
        return questions
    }

    /// Returns the rows that are needed next before firings are throttled; nil if no more rows are needed. Queues are needed only
    /// if a firing is valid and can wait. Usage is needed only if a firing cannot be delivered at once.
    ///
    /// - Parameters:
    ///   - facts: The rows that the store returned for all earlier questions.
    ///   - asked: All earlier questions.
    package static func questions(
        toHold firings: [ThrottledFiring], at now: Timestamp, knowing facts: FiringFacts, asked: FiringQuestions
    ) -> FiringQuestions? {
        var questions = FiringQuestions()
        questions.watches = Set(firings.map(\.key)).subtracting(asked.watches)
        guard questions.watches.isEmpty else { return questions }
        let rules = FiringRules(knowing: facts)
        // A firing that is not valid by the facts is not valid after other firings either.
        let pending = firings.filter { rules.canWait($0, at: now) }
        questions.queues = Set(pending.map(\.key)).subtracting(asked.queues)
        guard questions.queues.isEmpty else { return questions }
        // All firings of one queue are for one device.
        let waiting = pending.filter { !rules.isDue($0, behind: rules.queue(of: $0.key), at: now) }
        questions.usage = Set(waiting.map(\.device)).subtracting(asked.usage)
        return questions.usage.isEmpty ? nil : questions
    }

    package static func questions(forDropping numbers: [Int64]) -> FiringQuestions {
        var questions = FiringQuestions()
        questions.throttled.formUnion(numbers)
        return questions
    }

    // MARK: Delivering

    /// Whether an effect is still valid.
    package func counts(_ effect: FiringEffect) -> Bool {
        switch effect {
        case .fired(let target, let item, let number, let now): fired(target, on: item, by: number, at: now) != nil
        case .throttledNotified(let number, let now): delivery(of: number, at: now) != nil
        }
    }

    /// Applies an effect. Returns whether the effect was valid.
    package mutating func apply(_ effect: FiringEffect) -> Bool {
        switch effect {
        case .fired(let target, let item, let number, let now): fire(target, on: item, by: number, at: now)
        case .throttledNotified(let number, let now): deliver(number, at: now)
        }
    }

    private mutating func fire(_ target: Firing.Target, on item: ItemName, by number: Int64, at now: Timestamp) -> Bool {
        let key = FiringKey(target.subscription, on: item)
        guard let machine = fired(target, on: item, by: number, at: now) else { return false }
        note(machine, of: target.subscription)
        changeWatch(key) { watch in
            watch.lastFiring = number
            watch.notifiedAt = now
        }
        return true
    }

    private mutating func deliver(_ number: Int64, at now: Timestamp) -> Bool {
        guard let (key, pace) = delivery(of: number, at: now) else { return false }
        facts.throttled[number] = nil
        changed.removed.append(number)
        changeWatch(key) { $0.notifiedAt = now }
        changed.dues[key] = now.adding(milliseconds: pace.milliseconds)
        return true
    }

    /// Returns the state of a subscription after a firing; nil if the firing is not valid.
    private func fired(
        _ target: Firing.Target, on item: ItemName, by number: Int64, at now: Timestamp
    ) -> SubscriptionMachine? {
        guard let subscription = facts.subscriptions[target.subscription],
            let watch = facts.watches[FiringKey(target.subscription, on: item)],
            !subscription.isEnded, subscription.isValid(at: now), watch.hasItem, abs(watch.lastFiring) < number
        else { return nil }
        var machine = subscription.machine
        return machine.fire(ofRevision: target.revision, at: now) == .counts ? machine : nil
    }

    /// Returns the subscription, the item and the pace of a throttled firing; nil if the firing is not valid.
    private func delivery(of number: Int64, at now: Timestamp) -> (key: FiringKey, pace: FiringPace)? {
        guard let entry = facts.throttled[number], let watch = facts.watches[entry.key],
            let subscription = facts.subscriptions[entry.key.subscription], let pace = subscription.pace,
            subscription.isArmed, subscription.isValid(at: now), subscription.machine.revision == entry.revision,
            watch.hasItem
        else { return nil }
        return (entry.key, pace)
    }

    // MARK: Throttling

    /// Decides whether a firing is throttled. If a limit is reached, the new firing replaces the oldest firings of the same
    /// queue.
    package mutating func throttle(_ firing: ThrottledFiring, at now: Timestamp) -> ThrottleResult {
        let key = firing.key
        guard let machine = fired(firing.target, on: firing.item, by: firing.number, at: now) else { return .late }
        // The subscription fires only once, so its firing is not throttled.
        guard machine.policy != .once else { return .due }
        var queue = queue(of: key)
        if isDue(firing, behind: queue, at: now) { return .due }
        var replaced = 0
        while let first = queue.first, queue.count >= firing.buffer || !hasRoom(for: firing) {
            queue.removeFirst()
            remove(first, of: firing.device)
            replaced += 1
        }
        defer { queues[key] = queue }
        guard hasRoom(for: firing) else { return .full }
        queue.append(Queued(bytes: firing.body.count, place: added.count))
        added.append(firing)
        facts.usage[firing.device, default: ThrottledUsage()].firings += 1
        facts.usage[firing.device, default: ThrottledUsage()].bytes += firing.body.count
        changed.dues[key] = freeAt(of: firing, at: now)
        note(machine, of: key.subscription)
        changeWatch(key) { $0.lastFiring = firing.number }
        return .throttled(insteadOf: replaced)
    }

    /// Whether a firing is valid and its subscription can fire more than once.
    private func canWait(_ firing: ThrottledFiring, at now: Timestamp) -> Bool {
        let machine = fired(firing.target, on: firing.item, by: firing.number, at: now)
        return machine.map { $0.policy != .once } ?? false
    }

    /// Whether a firing can be delivered at once.
    private func isDue(_ firing: ThrottledFiring, behind queue: [Queued], at now: Timestamp) -> Bool {
        queue.isEmpty && freeAt(of: firing, at: now) <= now
    }

    /// Returns when the device can next be notified about the item.
    private func freeAt(of firing: ThrottledFiring, at now: Timestamp) -> Timestamp {
        guard let freeAt = facts.watches[firing.key]?.notifiedAt?.adding(milliseconds: firing.milliseconds) else {
            return now
        }
        // If the clock was set back, the firing is not delayed.
        return freeAt > now.adding(milliseconds: firing.milliseconds) ? now : freeAt
    }

    private func queue(of key: FiringKey) -> [Queued] {
        queues[key] ?? (facts.queues[key] ?? []).map { Queued(bytes: $0.bytes, number: $0.number) }
    }

    /// The first firing of a device is accepted with any size.
    private func hasRoom(for firing: ThrottledFiring) -> Bool {
        let usage = facts.usage[firing.device] ?? ThrottledUsage()
        return usage.firings == 0
            || usage.firings < limits.firings && usage.bytes + firing.body.count <= limits.bytes
    }

    private mutating func remove(_ queued: Queued, of device: DeviceSerial) {
        if let number = queued.number { changed.removed.append(number) }
        if let place = queued.place { added[place] = nil }
        facts.usage[device, default: ThrottledUsage()].firings -= 1
        facts.usage[device, default: ThrottledUsage()].bytes -= queued.bytes
    }

    // MARK: Dropping

    /// Drops a throttled firing that is not valid any more. The next firing of the queue is due at once.
    package mutating func drop(_ number: Int64, at now: Timestamp) {
        guard let entry = facts.throttled[number] else { return }
        facts.throttled[number] = nil
        changed.removed.append(number)
        changed.dues[entry.key] = now
    }

    /// Returns the new due time of a throttled firing after the clock was set back; nil if the due time stays the same.
    package static func dueTime(broughtBackFrom dueAt: Timestamp, by pace: FiringPace, at now: Timestamp) -> Timestamp? {
        let latest = now.adding(milliseconds: pace.milliseconds)
        return dueAt > latest ? latest : nil
    }

    // MARK: Rows

    private mutating func note(_ machine: SubscriptionMachine, of subscription: SubscriptionSerial) {
        facts.subscriptions[subscription]?.machine = machine
        changed.subscriptions[subscription] = machine
    }

    private mutating func changeWatch(_ key: FiringKey, _ change: (inout FiringWatch) -> Void) {
        guard var watch = facts.watches[key] else { return }
        change(&watch)
        facts.watches[key] = watch
        changed.watches[key] = watch
    }
}

extension ThrottledFiring {
    package var key: FiringKey { FiringKey(target.subscription, on: item) }
}
