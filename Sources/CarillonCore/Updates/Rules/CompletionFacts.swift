/// What of an update decides about its completions.
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

/// A completion, with what decides about it.
package struct CompletionFacts: Equatable, Sendable {
    /// Nil if there is none.
    package var completion: Completion?
    /// Nil if the update was forgotten.
    package var update: UpdateStanding?
    /// The revision of the binding; nil if the binding ended.
    package var revision: Int64?
    /// How far the log was held against the binding. Nil if the binding ended, or this was not read.
    package var held: HeldFacts?

    package init(
        completion: Completion? = nil, update: UpdateStanding? = nil, revision: Int64? = nil, held: HeldFacts? = nil
    ) {
        self.completion = completion
        self.update = update
        self.revision = revision
        self.held = held
    }
}

/// What must be known to write a completion that has no envelope.
package struct NewCompletionFacts: Equatable, Sendable {
    /// Nil if the update was forgotten.
    package var update: UpdateStanding?
    /// Whether the completion exists.
    package var isKnown: Bool
    /// Whether a completion of its order key holds up others.
    package var isHeldUp: Bool

    package init(update: UpdateStanding? = nil, isKnown: Bool = false, isHeldUp: Bool = false) {
        self.update = update
        self.isKnown = isKnown
        self.isHeldUp = isHeldUp
    }
}

/// What must be known of other rows when a completion changes.
package struct ConsequenceQuestions: Equatable, Sendable {
    /// Which completion of the binding with this order key is the first that holds up others, without the one that changes?
    package var orderKeys: Set<OrderKey> = []
    /// Which completions of the binding does the update stand for?
    package var absorbed = false
    /// Is the update content, and did the binding end?
    package var content = false

    package init() {}

    package var isEmpty: Bool { self == ConsequenceQuestions() }
}

package struct ConsequenceFacts: Equatable, Sendable {
    /// A superseded completion for which an update stands.
    package struct Absorbed: Equatable, Sendable {
        package var completion: Completion
        /// Whether its own update expired; otherwise it is live.
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

    /// One completion for each order key that was asked for, or none.
    package var firsts: [OrderKey: [Completion]] = [:]
    /// In the order of their updates, and none if the update tells to fetch everything. Nil if they were not read.
    package var absorbed: [Absorbed]?
    /// Nil if it was not read.
    package var content: Content?

    package init(content: Content? = nil) { self.content = content }
}
