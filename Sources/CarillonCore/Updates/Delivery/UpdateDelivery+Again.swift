import CarillonWire
import Metrics

/// Sends due updates again.
extension UpdateDelivery {
    /// Sends due updates again, to one binding or to all. Returns the number of due completions.
    ///
    /// The audience is evaluated again. An offer is valid only if the binding still has the revision of this evaluation.
    @discardableResult
    func resendDue(to binding: BindingSerial? = nil) async throws -> Int {
        let now = time.now()
        // The shard of the device can be closing during the call for its binding.
        let shards = binding == nil ? home.shards : .all
        let due = try await store.dueCompletions(of: binding, in: shards, at: now, limit: Self.dueAtOnce)
        guard !due.isEmpty else { return 0 }
        var again: [DueCompletion] = []
        var withheld: [BindingSerial: Withheld] = [:]
        var facts: [BindingSerial: DeviceFacts] = [:]
        for due in due {
            let key = due.completion.key
            if try await !belongs(due, knowing: &facts, at: now) {
                withheld[key.binding, default: Withheld(due.binding)].left.append(key)
            } else if !due.binding.kinds.contains(due.update.kind.name) {
                withheld[key.binding, default: Withheld(due.binding)].unsupported.append(key)
            } else {
                again.append(due)
            }
        }
        for withheld in withheld.values { try await withhold(withheld, at: now) }
        try await offerAgain(again, at: now)
        return due.count
    }

    static let dueAtOnce = 256

    /// Due completions of a binding that must not be sent to it.
    private struct Withheld {
        var binding: UpdateBinding
        var left: [CompletionKey] = []
        var unsupported: [CompletionKey] = []

        init(_ binding: UpdateBinding) { self.binding = binding }
    }

    private func withhold(_ withheld: Withheld, at now: Timestamp) async throws {
        let binding = withheld.binding
        try await leave(withheld.left, binding)
        guard !withheld.unsupported.isEmpty else { return }
        try await store.unsupported(withheld.unsupported, of: binding.serial, revision: binding.revision, at: now)
    }

    /// Whether the binding belongs to the audience now and did not leave it before.
    private func belongs(
        _ due: DueCompletion, knowing known: inout [BindingSerial: DeviceFacts], at now: Timestamp
    ) async throws -> Bool {
        guard !due.completion.hasLeftAudience else { return false }
        guard due.update.audience != nil else { return true }
        let log = try await logs.log(of: due.update.app)
        let facts =
            known[due.binding.serial]
            ?? logs.facts(due.binding.counting(at: now), of: due.device, due.app, by: log.rules)
        known[due.binding.serial] = facts
        guard let entry = log.live[due.update.serial] else {
            return logs.holds(due.update, for: facts, by: log.rules)
        }
        return log.holds(entry, for: facts) == true
    }

    private func offerAgain(_ due: [DueCompletion], at now: Timestamp) async throws {
        let offers = due.map { due in
            let completion = due.completion
            return (
                due.update,
                UpdateOffer(
                    key: completion.key, revision: due.binding.revision, isAgain: true,
                    attempt: completion.machine.attempt + 1, orderKey: completion.orderKey, at: now),
                due.binding.device
            )
        }
        for (place, result) in await deliver(offers).enumerated() {
            switch result {
            case .stored, .answered, .sent: offeredAgain.increment()
            case .failed(let fault): throw fault
            default:
                if result == .full { full.increment() }
                try await store.putOff(
                    due[place].completion.key, revision: due[place].binding.revision,
                    until: now.adding(seconds: CompletionMachine.fullSeconds))
            }
        }
    }
}
