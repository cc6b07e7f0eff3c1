/// The facts of an update that decide about its completions.
package struct UpdateState: Equatable, Sendable {
    package var status: Update.Status
    package var expiresAt: Timestamp
    package var isPaused: Bool
    package var isContent: Bool

    package init(status: Update.Status, expiresAt: Timestamp, isPaused: Bool, isContent: Bool) {
        self.status = status
        self.expiresAt = expiresAt
        self.isPaused = isPaused
        self.isContent = isContent
    }

    func isLive(at now: Timestamp) -> Bool { status == .live && expiresAt > now }
}

/// A completion, and the facts that decide about it.
package struct CompletionFacts: Equatable, Sendable {
    /// The completion; nil if the store does not have it.
    package var completion: Completion?
    /// Nil if the update was forgotten.
    package var update: UpdateState?
    /// The revision of the binding; nil if the binding ended.
    package var revision: Int64?
    /// The place of the binding in the log. Nil if the binding ended, or if the place was not read.
    package var evaluated: CursorFacts?

    package init(
        completion: Completion? = nil, update: UpdateState? = nil, revision: Int64? = nil, evaluated: CursorFacts? = nil
    ) {
        self.completion = completion
        self.update = update
        self.revision = revision
        self.evaluated = evaluated
    }
}

/// The facts for adding a completion without an envelope.
package struct NewCompletionFacts: Equatable, Sendable {
    /// Nil if the update was forgotten.
    package var update: UpdateState?
    /// Whether the completion exists.
    package var isKnown: Bool
    /// Whether another completion of its order key must finish first.
    package var isBlocked: Bool

    package init(update: UpdateState? = nil, isKnown: Bool = false, isBlocked: Bool = false) {
        self.update = update
        self.isKnown = isKnown
        self.isBlocked = isBlocked
    }
}

/// The facts of other rows that are needed when a completion changes.
package struct ConsequenceQuestions: Equatable, Sendable {
    /// The first completion of the binding with this order key that others wait for, without the changed completion.
    package var orderKeys: Set<OrderKey> = []
    /// The completions of the binding that the update replaces.
    package var coalesced = false
    /// Whether the update is content, and whether the binding ended.
    package var content = false

    package init() {}

    package var isEmpty: Bool { self == ConsequenceQuestions() }
}

package struct ConsequenceFacts: Equatable, Sendable {
    /// A superseded completion that an update replaces.
    package struct Coalesced: Equatable, Sendable {
        package var completion: Completion
        /// Whether the update of the completion expired; otherwise it is live.
        package var isExpired: Bool

        package init(completion: Completion, isExpired: Bool) {
            self.completion = completion
            self.isExpired = isExpired
        }
    }

    package struct Content: Equatable, Sendable {
        package var isContent: Bool
        package var isBindingEnded: Bool

        package init(isContent: Bool, isBindingEnded: Bool) {
            self.isContent = isContent
            self.isBindingEnded = isBindingEnded
        }
    }

    /// For each requested order key, one completion or none.
    package var firsts: [OrderKey: [Completion]] = [:]
    /// The replaced completions, in the order of their updates. Empty if the update requests the device to fetch all content. Nil
    /// if they were not read.
    package var coalesced: [Coalesced]?
    /// Nil if it was not read.
    package var content: Content?

    package init(content: Content? = nil) { self.content = content }
}
