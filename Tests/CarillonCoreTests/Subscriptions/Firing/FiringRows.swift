import CarillonCore

/// Rows as a store has them: they return the facts that ``FiringRules`` requests, and store its changes.
struct FiringRows {
    struct Throttled: Equatable {
        var number: Int64
        var key: FiringKey
        var device: DeviceSerial
        var revision: Int64
        var bytes: Int
        var dueAt: Timestamp?
    }

    var subscriptions: [SubscriptionSerial: FiringSubscription] = [:]
    var watches: [FiringKey: FiringWatch] = [:]
    /// In the order of their numbers.
    var throttled: [Throttled] = []
    private(set) var lastHeld: Int64 = 0

    /// Contains only the requested facts.
    func answer(_ questions: FiringQuestions) -> FiringFacts {
        var facts = FiringFacts()
        answer(questions, into: &facts)
        return facts
    }

    func answer(_ questions: FiringQuestions, into facts: inout FiringFacts) {
        for key in questions.watches { answer(key, into: &facts) }
        for row in throttled where questions.throttled.contains(row.number) {
            facts.throttled[row.number] = ThrottledEntry(row.key, revision: row.revision)
            answer(row.key, into: &facts)
        }
        for key in questions.queues {
            facts.queues[key] = throttled.filter { $0.key == key }.map { ThrottledSize($0.number, bytes: $0.bytes) }
        }
        for device in questions.usage {
            let rows = throttled.filter { $0.device == device }
            facts.usage[device] = ThrottledUsage(firings: rows.count, bytes: rows.reduce(0) { $0 + $1.bytes })
        }
    }

    private func answer(_ key: FiringKey, into facts: inout FiringFacts) {
        facts.watches[key] = watches[key]
        facts.subscriptions[key.subscription] = subscriptions[key.subscription]
    }

    mutating func write(_ changes: FiringChanges) {
        throttled.removeAll { changes.removed.contains($0.number) }
        for firing in changes.added { throttle(firing) }
        for (key, dueAt) in changes.dues { setDue(key, dueAt) }
        for (serial, machine) in changes.subscriptions { subscriptions[serial]?.machine = machine }
        for (key, watch) in changes.watches { watches[key] = watch }
    }

    mutating func throttle(_ firing: ThrottledFiring) {
        lastHeld += 1
        throttled.append(
            Throttled(
                number: lastHeld, key: firing.key, device: firing.device, revision: firing.target.revision,
                bytes: firing.body.count))
    }

    /// Of the first row of a subscription and an item.
    mutating func setDue(_ key: FiringKey, _ dueAt: Timestamp) {
        guard let first = throttled.firstIndex(where: { $0.key == key }) else { return }
        throttled[first].dueAt = dueAt
    }

    /// Whether both contain the same, with any numbers of throttled firings.
    func isLike(_ other: FiringRows) -> Bool {
        subscriptions == other.subscriptions && watches == other.watches
            && throttled.count == other.throttled.count
            && zip(throttled, other.throttled).allSatisfy { one, other in
                var renumbered = one
                renumbered.number = other.number
                return renumbered == other
            }
    }
}
