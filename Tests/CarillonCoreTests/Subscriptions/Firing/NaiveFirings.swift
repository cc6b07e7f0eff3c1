import CarillonCore

/// The rules according to docs/guarantees.md: one firing after the other, over the complete state.
struct NaiveFirings {
    let limits: ThrottledLimits
    var rows = FiringRows()

    mutating func apply(_ effect: FiringEffect) -> Bool {
        switch effect {
        case .fired(let target, let item, let number, let now):
            guard fires(target, item, number, now) else { return false }
            begin(target.subscription, now)
            let key = FiringKey(target.subscription, on: item)
            rows.watches[key]?.lastFiring = number
            rows.watches[key]?.notifiedAt = now
            return true
        case .throttledNotified(let number, let now):
            guard let row = rows.throttled.first(where: { $0.number == number }),
                let subscription = rows.subscriptions[row.key.subscription],
                subscription.machine.status == .subscribed, !subscription.machine.isPaused, !subscription.isEnded,
                subscription.machine.revision == row.revision, !isOver(subscription, now),
                rows.watches[row.key]?.hasItem == true, let frequency = subscription.pace?.maxFrequency
            else { return false }
            rows.throttled.removeAll { $0.number == number }
            rows.watches[row.key]?.notifiedAt = now
            let pause = Int64((1000 / frequency).rounded(.up))
            rows.setDue(row.key, Timestamp(milliseconds: now.milliseconds + pause))
            return true
        }
    }

    mutating func throttle(_ firing: ThrottledFiring, at now: Timestamp) -> ThrottleResult {
        let key = firing.key
        guard fires(firing.target, firing.item, firing.number, now) else { return .late }
        if rows.subscriptions[key.subscription]?.machine.policy == .once { return .due }
        var rest = Int64(0)
        if let notifiedAt = rows.watches[key]?.notifiedAt {
            rest = notifiedAt.milliseconds + firing.milliseconds - now.milliseconds
            if rest > firing.milliseconds { rest = 0 }
        }
        if throttled(key).isEmpty, rest <= 0 { return .due }
        var replaced = 0
        while let oldest = throttled(key).first, throttled(key).count >= firing.buffer || !fits(firing) {
            rows.throttled.removeAll { $0.number == oldest.number }
            replaced += 1
        }
        if !fits(firing) { return .full }
        rows.throttle(firing)
        rows.setDue(key, Timestamp(milliseconds: now.milliseconds + rest))
        begin(key.subscription, now)
        rows.watches[key]?.lastFiring = firing.number
        return .throttled(insteadOf: replaced)
    }

    mutating func drop(_ number: Int64, at now: Timestamp) {
        guard let row = rows.throttled.first(where: { $0.number == number }) else { return }
        rows.throttled.removeAll { $0.number == number }
        rows.setDue(row.key, now)
    }

    private func throttled(_ key: FiringKey) -> [FiringRows.Throttled] { rows.throttled.filter { $0.key == key } }

    private func fits(_ firing: ThrottledFiring) -> Bool {
        let others = rows.throttled.filter { $0.device == firing.device }
        if others.isEmpty { return true }
        return others.count + 1 <= limits.firings
            && others.map(\.bytes).reduce(firing.body.count, +) <= limits.bytes
    }

    private func isOver(_ subscription: FiringSubscription, _ now: Timestamp) -> Bool {
        guard let end = subscription.expiresAt else { return false }
        return end <= now
    }

    private func fires(_ target: Firing.Target, _ item: ItemName, _ number: Int64, _ now: Timestamp) -> Bool {
        guard let subscription = rows.subscriptions[target.subscription],
            let watch = rows.watches[FiringKey(target.subscription, on: item)]
        else { return false }
        let machine = subscription.machine
        if subscription.isEnded || machine.status == .triggered || machine.isPaused { return false }
        if machine.revision != target.revision || isOver(subscription, now) || !watch.hasItem { return false }
        if number <= watch.lastFiring || number <= -watch.lastFiring { return false }
        guard case .every(let seconds) = machine.policy, let last = machine.lastFiredAt else { return true }
        let elapsed = now.milliseconds - last.milliseconds
        return elapsed < 0 || elapsed >= seconds * 1000
    }

    private mutating func begin(_ subscription: SubscriptionSerial, _ now: Timestamp) {
        guard let machine = rows.subscriptions[subscription]?.machine else { return }
        let isOver = machine.policy == .once
        rows.subscriptions[subscription]?.machine = SubscriptionMachine(
            machine.policy, isOver ? .triggered : machine.status, at: isOver ? now : machine.statusAt,
            revision: machine.revision, lastFiredAt: now, isPaused: machine.isPaused)
    }
}
