/// Collects the changes that follow from one step.
struct CompletionRuling {
    private let binding: BindingSerial
    private let now: Timestamp
    /// The completions that others wait for, by order key, as far as they were read.
    private var queues: [OrderKey: [Completion]]
    private(set) var changes = CompletionChanges()

    init(_ step: CompletionStep, _ facts: ConsequenceFacts, at now: Timestamp) {
        let key = step.before.key
        binding = key.binding
        self.now = now
        queues = facts.firsts
        if let after = step.after { changes.changed[key] = after } else { changes.removed = key }
        if let coalescer = step.coalescer { changes.coalesced = CompletionChanges.Coalescence(key, by: coalescer) }
    }

    /// Makes the first completion of an order key due, if it was never delivered.
    mutating func release(_ orderKey: String?) {
        guard let orderKey = orderKey.map({ OrderKey($0) }), let queue = queues[orderKey] else { return }
        guard let next = queue.min(by: { $0.key.precedes($1.key) }), next.machine.state == .waiting,
            next.machine.attempt == 0, next.machine.dueAt == nil
        else { return }
        let released = next.changed(at: now) { $0.released(at: now) }
        queues[orderKey] = queue.map { $0.key == next.key ? released : $0 }
        changes.changed[next.key] = released
    }

    /// Makes live content due by itself. For expired content, notes that the device must fetch all content.
    mutating func revive(_ coalesced: ConsequenceFacts.Coalesced) {
        guard !coalesced.isExpired else { return miss() }
        let (orderKey, key) = (coalesced.completion.orderKey, coalesced.completion.key)
        let revived = coalesced.completion.changed(at: now) { machine in
            machine.revived()
            if orderKey == nil { machine.released(at: now) }
        }
        changes.changed[key] = revived
        changes.revived.insert(key)
        guard let orderKey else { return }
        queues[OrderKey(orderKey), default: []].append(revived)
        release(orderKey)
    }

    mutating func miss() { changes.needsResync = binding }
}

extension CompletionKey {
    /// Whether a key of the same binding is before another.
    fileprivate func precedes(_ other: CompletionKey) -> Bool { (update, entry) < (other.update, other.entry) }
}
