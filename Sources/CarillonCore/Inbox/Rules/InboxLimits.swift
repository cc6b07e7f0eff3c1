/// How much is kept for one device, and how long.
package struct InboxLimits: Equatable, Sendable {
    /// The most envelopes that may wait.
    package var envelopes: Int
    /// The most bytes that may wait, each envelope counted with ``Envelope/overhead``.
    package var bytes: Int
    /// How many percent of both one consumer of a provider may have in the provider's inbox.
    package static let consumerPercent = 10
    /// The most outcomes that are kept; beyond it the oldest are forgotten.
    package var outcomes: Int
    /// The most `Idempotency-Key`s that are remembered; beyond it the oldest are forgotten.
    package var idempotencyKeys: Int
    /// How long an outcome is kept.
    package var outcomeRetentionSeconds: Int64

    package init(
        envelopes: Int = 10_000, bytes: Int = 32 << 20, outcomes: Int = 10_000, idempotencyKeys: Int = 10_000,
        outcomeRetentionSeconds: Int64 = 7 * 86_400
    ) {
        self.envelopes = envelopes
        self.bytes = bytes
        self.outcomes = outcomes
        self.idempotencyKeys = idempotencyKeys
        self.outcomeRetentionSeconds = outcomeRetentionSeconds
    }
}

extension InboxLimits {
    /// What one consumer may have in the inbox of a provider: one envelope in any case.
    package var consumerShare: InboxUsage.Waiting {
        .init(
            envelopes: max(1, envelopes * Self.consumerPercent / 100), bytes: bytes * Self.consumerPercent / 100)
    }
}

/// How full the inbox of a device is; nil is what was not asked for.
package struct InboxUsage: Equatable, Sendable {
    package struct Waiting: Equatable, Sendable {
        package var envelopes: Int
        package var bytes: Int

        package init(envelopes: Int = 0, bytes: Int = 0) {
            self.envelopes = envelopes
            self.bytes = bytes
        }
    }

    package struct Change: Equatable, Sendable {
        package var envelopes = 0
        package var bytes = 0
        package var outcomes = 0
        package var keys = 0

        package init(envelopes: Int = 0, bytes: Int = 0, outcomes: Int = 0, keys: Int = 0) {
            self.envelopes = envelopes
            self.bytes = bytes
            self.outcomes = outcomes
            self.keys = keys
        }
    }

    package var waiting: Waiting?
    package var outcomes: Int?
    package var keys: Int?

    package init(waiting: Waiting? = nil, outcomes: Int? = nil, keys: Int? = nil) {
        self.waiting = waiting
        self.outcomes = outcomes
        self.keys = keys
    }

    /// What is not known stays so.
    package mutating func apply(_ change: Change) {
        waiting?.envelopes += change.envelopes
        waiting?.bytes += change.bytes
        outcomes? += change.outcomes
        keys? += change.keys
    }
}
