/// The consequences of a changed completion for others of its binding: the next completion of its order key can be
/// delivered, and content that it replaced is delivered by itself.
extension CompletionRules {
    package enum Verdict: Equatable, Sendable {
        /// The caller must read these facts and decide again.
        case needs(ConsequenceQuestions)
        case decided(CompletionChanges)
    }

    package func consequences(
        of step: CompletionStep, at now: Timestamp, knowing facts: ConsequenceFacts
    ) -> Verdict {
        let missing = questions(about: step, facts)
        guard missing.isEmpty else { return .needs(missing) }
        var ruling = CompletionRuling(step, facts, at: now)
        if step.releasesNext { ruling.release(step.before.orderKey) }
        for coalesced in facts.coalesced ?? [] { ruling.revive(coalesced) }
        if step.expires, let content = facts.content, content.isContent, step.isOwed(at: now) || content.isBindingEnded {
            ruling.miss()
        }
        return .decided(ruling.changes)
    }

    private func questions(about step: CompletionStep, _ facts: ConsequenceFacts) -> ConsequenceQuestions {
        var questions = ConsequenceQuestions()
        let revived = (facts.coalesced ?? []).filter { !$0.isExpired }.compactMap(\.completion.orderKey)
        var orderKeys = Set(revived.map { OrderKey($0) })
        if step.releasesNext, let orderKey = step.before.orderKey { orderKeys.insert(OrderKey(orderKey)) }
        questions.orderKeys = orderKeys.filter { facts.firsts[$0] == nil }
        questions.coalesced = step.revivesCoalesced && facts.coalesced == nil
        questions.content = step.expires && facts.content == nil
        return questions
    }
}

extension CompletionStep {
    fileprivate var releasesNext: Bool { before.machine.blocksOthers && after?.machine.blocksOthers != true }

    /// Whether earlier content that the completion replaced must be delivered by itself. If a coalescing completion replaces the
    /// completion, it replaces the earlier content as well.
    fileprivate var revivesCoalesced: Bool {
        guard coalescer == nil, !before.machine.state.isFinal else { return false }
        guard let after else { return true }
        return [.parked, .withdrawn, .superseded, .gone].contains(after.machine.state)
    }

    fileprivate var expires: Bool { !before.machine.state.isFinal && after?.machine.state == .expired }

    /// Whether the device may lack the update. A device can have lost an update that was to be delivered again.
    fileprivate func isOwed(at now: Timestamp) -> Bool {
        [.waiting, .failed].contains(before.machine.state) || before.machine.dueAt.map { $0 <= now } ?? false
    }
}
