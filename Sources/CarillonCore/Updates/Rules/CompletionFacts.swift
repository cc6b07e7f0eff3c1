/// The facts of an update that decide about its completions.
package struct UpdateStanding: Equatable, Sendable {
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
    /// The completion; nil if there is none.
    package var completion: Completion?
    /// Nil if the update was forgotten.
    package var update: UpdateStanding?
    /// The revision of the binding; nil if the binding ended.
    package var revision: Int64?
    /// The place of the binding in the log. Nil if the binding ended, or if the place was not read.
    package var evaluated: CursorFacts?

    package init(
        completion: Completion? = nil, update: UpdateStanding? = nil, revision: Int64? = nil, evaluated: CursorFacts? = nil
    ) {
        self.completion = completion
        self.update = update
        self.revision = revision
        self.evaluated = evaluated
    }
}

/// The facts that a new completion without an envelope needs.
package struct NewCompletionFacts: Equatable, Sendable {
    /// Nil if the update was forgotten.
    package var update: UpdateStanding?
    /// Whether the completion exists.
    package var isKnown: Bool
    /// Whether another completion of its order key must finish first.
    package var isHeldUp: Bool

    package init(update: UpdateStanding? = nil, isKnown: Bool = false, isHeldUp: Bool = false) {
        self.update = update
        self.isKnown = isKnown
        self.isHeldUp = isHeldUp
    }
}

/// The facts of other rows that the change of a completion needs.
package struct ConsequenceQuestions: Equatable, Sendable {
    /// Which completion of the binding with this order key is the first that others wait for, without the one that changes?
    package var orderKeys: Set<OrderKey> = []
    /// Which completions of the binding does the update replace?
    package var coalesced = false
    /// Is the update content, and did the binding end?
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
    /// In the order of their updates. Empty if the update requests the device to fetch everything. Nil if they were not
    /// read.
    package var coalesced: [Coalesced]?
    /// Nil if it was not read.
    package var content: Content?

    package init(content: Content? = nil) { self.content = content }
}
