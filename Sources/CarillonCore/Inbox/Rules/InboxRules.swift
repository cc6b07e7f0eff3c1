import CarillonWire

/// Decides the effect of a batch of operations on the inboxes: which envelopes are accepted or replaced, the answer to a
/// repetition, the envelopes that end with an origin, and the outcomes and keys that are removed.
///
/// The rules read nothing. They return the facts that they need (``questions(for:)``), receive the facts, and return the net
/// changes of rows and a result for each operation. If the facts show that more facts are needed, the rules request them. The
/// store reads and writes each kind of row for the whole batch at once.
package struct InboxRules: Sendable {
    package enum Verdict: Equatable, Sendable {
        /// Read these facts as well, and decide again.
        case needs(InboxQuestions)
        case decided([InboxResult], InboxChanges)
    }

    private let limits: InboxLimits

    package init(limits: InboxLimits) { self.limits = limits }

    /// Returns the facts that are most likely sufficient.
    package func questions(for operations: [InboxOperation]) -> InboxQuestions {
        var questions = InboxQuestions()
        for operation in operations {
            switch operation {
            case .append(let envelope, let rules):
                questions.ask(for: envelope, rules)
                questions.origins.insert(envelope.origin.key)
                if envelope.behaviour.isRefusedWhenFull { questions.waiting.insert(envelope.device) }
                if rules.wake != nil { questions.woken.insert(envelope.device) }
                if envelope.behaviour.endsOrigin {
                    questions.originContents.insert(DeviceOrigin(envelope.device, envelope.origin.key))
                    questions.outcomes.insert(envelope.device)
                }
                questions.effects.formUnion(rules.effects)
            case .record(let envelope, let rules, _):
                questions.ask(for: envelope, rules)
                questions.outcomes.insert(envelope.device)
            case .replace(let envelope, let rules):
                questions.ask(for: envelope, rules)
            case .finish(let id, let device, _):
                questions.rows.insert(id.position)
                if let device { questions.outcomes.insert(device) }
            case .forget(let id), .expire(let id, _):
                questions.rows.insert(id.position)
            case .end(let origin, _, _):
                questions.origins.insert(origin.origin)
                questions.originContents.insert(origin)
                questions.outcomes.insert(origin.device)
            case .changeUser(let device, _, _):
                questions.inboxes.insert(device)
                questions.outcomes.insert(device)
            }
        }
        return questions
    }

    /// - Parameter asked: All facts that were read.
    package func decide(_ operations: [InboxOperation], knowing facts: InboxFacts, asked: InboxQuestions) -> Verdict {
        var ruling = InboxRuling(limits: limits, facts: facts, asked: asked)
        let results = operations.map { ruling.perform($0) }
        let changes = ruling.changes()
        return ruling.missing.isEmpty ? .decided(results, changes) : .needs(ruling.missing)
    }
}

extension InboxQuestions {
    fileprivate mutating func ask(for envelope: Envelope, _ rules: AppendRules) {
        if let topic = rules.topic {
            topics.insert(TopicKey(DeviceOrigin(envelope.device, envelope.origin.key), topic))
            // An envelope most likely replaces an envelope of its own kind.
            if envelope.behaviour.keepsOutcome { outcomes.insert(envelope.device) }
        }
        if let claim = rules.idempotency {
            claims.insert(ClaimKey(origin: envelope.origin.key, keyHash: claim.keyHash))
            keys.insert(envelope.device)
        }
    }

    /// Adds the other questions to these.
    package mutating func formUnion(_ other: InboxQuestions) {
        origins.formUnion(other.origins)
        originContents.formUnion(other.originContents)
        rows.formUnion(other.rows)
        topics.formUnion(other.topics)
        claims.formUnion(other.claims)
        waiting.formUnion(other.waiting)
        outcomes.formUnion(other.outcomes)
        keys.formUnion(other.keys)
        overdue.merge(other.overdue) { max($0, $1) }
        consumers.merge(other.consumers) { max($0, $1) }
        inboxes.formUnion(other.inboxes)
        effects.formUnion(other.effects)
    }
}
