/// Decides the state of updates at bindings: which offers are valid, how the state of a completion changes, which other
/// completion can then be delivered, and which content was missed.
///
/// The rules read nothing: they receive facts and return changes of rows. A function that returns a ``CompletionStep`` decides
/// about one completion. ``consequences(of:at:knowing:)`` decides about the consequences of the step for other rows of the
/// binding.
package struct CompletionRules: Sendable {
    package init() {}

    // MARK: New completions

    /// Puts an update into an inbox. Returns nil if the offer is not valid.
    package func offer(_ offer: UpdateOffer, knowing facts: CompletionFacts) -> CompletionChanges? {
        guard let update = facts.update, update.isLive(at: offer.at), !update.isPaused, facts.revision == offer.revision
        else { return nil }
        guard let present = facts.completion else {
            guard !offer.isAgain, offer.attempt == 1 else { return nil }
            var machine = CompletionMachine()
            machine.offered()
            return CompletionChanges(
                inserting: Completion(key: offer.key, machine: machine, changedAt: offer.at, orderKey: offer.orderKey))
        }
        guard offer.isAgain, !present.hasLeftAudience, !present.machine.state.isFinal, present.machine.dueAt != nil,
            present.machine.attempt == offer.attempt - 1
        else { return nil }
        var changes = CompletionChanges()
        changes.changed[offer.key] = present.changed(at: offer.at) { $0.offered() }
        return changes
    }

    /// Adds a completion without an envelope. The completion waits for another one of its order key, is due, or is final. Returns
    /// nil if the completion exists, or if its update ended, because the row would then never end.
    package func evaluated(
        _ completion: Completion, at now: Timestamp, knowing facts: NewCompletionFacts
    ) -> CompletionChanges? {
        guard !facts.isKnown, let update = facts.update, update.isLive(at: now) else { return nil }
        var completion = completion
        if completion.orderKey != nil, !facts.isBlocked { completion.machine.released(at: now) }
        return CompletionChanges(inserting: completion)
    }

    /// Adds a completion that requests a binding to fetch all content. Returns nil if the device has not received the previous
    /// request yet.
    ///
    /// - Parameter last: The last entry of the update.
    package func resync(
        _ update: UpdateSerial, of binding: BindingSerial, at now: Timestamp, knowing last: Completion?
    ) -> CompletionChanges? {
        // A request that the device has not received also covers all content before its delivery.
        if let last, last.machine.isUnreceived { return nil }
        var machine = CompletionMachine()
        machine.released(at: now)
        let key = CompletionKey(update: update, binding: binding, entry: (last?.key.entry ?? 0) + 1)
        return CompletionChanges(inserting: Completion(key: key, machine: machine, changedAt: now))
    }

    // MARK: Steps

    /// Whether a device can be notified that an update ended. The end of a forgotten update is not reported.
    package func canEnd(knowing facts: CompletionFacts) -> Bool {
        guard facts.update != nil, let completion = facts.completion else { return false }
        return !completion.machine.state.isFinal
    }

    /// Returns nil if the completion ended before.
    package func end(_ completion: Completion, as state: CompletionMachine.State, at now: Timestamp) -> CompletionStep? {
        var machine = completion.machine
        guard machine.ended(as: state) else { return nil }
        let after = completion.changed(at: now) { $0 = machine }
        return CompletionStep(before: completion, after: after, takesOut: completion.machine.isInInbox)
    }

    /// Notes that an envelope of the completion left its inbox. Returns nil if this changes nothing.
    package func finished(_ completion: Completion, _ finalOutcome: FinalOutcome) -> CompletionStep? {
        var machine = completion.machine
        switch finalOutcome.outcome {
        case .acknowledged: machine.received(at: finalOutcome.at)
        case .unsupported: _ = machine.reported(.unsupported, at: finalOutcome.at)
        case .failed: _ = machine.reported(.failed(isPermanent: false, reason: nil), at: finalOutcome.at)
        // The completion ends with its update, and the device is notified then.
        case .cancelled, .expired, .gone: machine.takenOut(at: finalOutcome.at)
        case .replaced, .dropped: return nil
        }
        return step(completion, to: machine, at: finalOutcome.at)
    }

    /// Notes that envelopes of the completion are removed from the inbox. Returns nil if this changes nothing.
    package func takenOut(_ completion: Completion, at now: Timestamp) -> CompletionStep? {
        var machine = completion.machine
        machine.takenOut(at: now)
        return step(completion, to: machine, at: now)
    }

    /// Makes an update due that the device lost. Returns nil for a completion that was never delivered or waits already.
    package func lost(_ completion: Completion, at now: Timestamp) -> CompletionStep? {
        var machine = completion.machine
        guard machine.attempt > 0 else { return nil }
        machine.due(at: now)
        return step(completion, to: machine, at: now)
    }

    /// Returns nil if the completion is not parked.
    package func requeue(_ completion: Completion, at now: Timestamp) -> CompletionStep? {
        var machine = completion.machine
        return machine.requeued(at: now) ? step(completion, to: machine, at: now) : nil
    }

    /// Whether a completion can be postponed, because the inbox of a binding of a revision has no room. The completion must be
    /// due, now or later.
    package func canPutOff(revision: Int64, knowing facts: CompletionFacts) -> Bool {
        facts.revision == revision && facts.completion?.machine.dueAt != nil
    }

    private func step(_ completion: Completion, to machine: CompletionMachine, at now: Timestamp) -> CompletionStep? {
        guard machine != completion.machine else { return nil }
        return CompletionStep(before: completion, after: completion.changed(at: now) { $0 = machine })
    }

    /// Coalesces the completion into later content. Returns nil if the device received the completion, or if it ended.
    package func coalesce(_ completion: Completion, by coalescer: UpdateSerial, at now: Timestamp) -> CompletionStep? {
        var machine = completion.machine
        guard machine.coalesced() else { return nil }
        let after = completion.changed(at: now) { $0 = machine }
        return CompletionStep(before: completion, after: after, coalescer: coalescer, takesOut: true)
    }

    // MARK: Audiences

    /// Notes that the device left the audience of the update. Returns nil if this was noted before and changes nothing.
    package func leftAudience(_ completion: Completion, at now: Timestamp) -> CompletionStep? {
        guard !completion.hasLeftAudience || !completion.machine.state.isFinal else { return nil }
        let takesOut = completion.machine.isInInbox
        var machine = completion.machine
        guard !machine.leftAudience(at: now) else {
            return CompletionStep(before: completion, after: nil, takesOut: takesOut)
        }
        var after = completion.changed(at: now) { $0 = machine }
        after.hasLeftAudience = true
        return CompletionStep(before: completion, after: after, takesOut: takesOut)
    }

    /// Notes that the device belongs to the audience of the update again. Returns nil if the device had not left, or the update
    /// ended.
    package func returned(at now: Timestamp, knowing facts: CompletionFacts) -> CompletionStep? {
        guard let completion = facts.completion, completion.hasLeftAudience, let update = facts.update,
            update.isLive(at: now)
        else {
            return nil
        }
        var after = completion.changed(at: now) { $0.returned(at: now) }
        after.hasLeftAudience = false
        return CompletionStep(before: completion, after: after)
    }

    // MARK: Results

    package enum ReportRuling: Equatable, Sendable {
        case taken(CompletionStep)
        /// The result changes nothing.
        case late
        /// The content expired, and the device could not process it: the device must fetch all content.
        case lateFailure
        /// The content expired, and the device processed it: the device need not fetch it.
        case lateSuccess
    }

    package func report(
        _ reported: ReportedResult, of completion: Completion, isContent: Bool, at now: Timestamp
    ) -> ReportRuling {
        var machine = completion.machine
        if machine.reported(reported.result, of: reported.attempt, at: now) {
            let after = completion.changed(at: now) { $0 = machine }
            return .taken(CompletionStep(before: completion, after: after, takesOut: completion.machine.isInInbox))
        }
        guard machine.state == .expired else { return .late }
        switch reported.result {
        case .failed: return isContent ? .lateFailure : .late
        case .done, .doneWith: return .lateSuccess
        case .deferred, .unsupported: return .late
        }
    }

    // MARK: Releases

    package enum ReleaseRuling: Equatable, Sendable {
        case nothingLeft
        /// The binding is in use again, so its completions do not end.
        case stops
        case ends([CompletionStep])
    }

    /// Ends some completions of an ended binding.
    package func release(_ unfinished: [Completion], needsCleanup: Bool, at now: Timestamp) -> ReleaseRuling {
        guard !unfinished.isEmpty else { return .nothingLeft }
        guard needsCleanup else { return .stops }
        return .ends(unfinished.compactMap { end($0, as: .gone, at: now) })
    }
}

extension Completion {
    func changed(at now: Timestamp, _ change: (inout CompletionMachine) -> Void) -> Completion {
        var changed = self
        change(&changed.machine)
        changed.changedAt = now
        return changed
    }
}
