/// The limits of the data that is kept for one device, and its retention time.
package struct InboxLimits: Equatable, Sendable {
    /// The largest number of waiting envelopes.
    package var envelopes: Int
    /// The largest number of waiting bytes, each envelope counted with ``Envelope/overhead``.
    package var bytes: Int
    /// The percentage of both limits that one consumer of a provider can use in the provider's inbox.
    package static let consumerPercent = 10
    /// The largest number of outcomes that are kept. Beyond it, the oldest are removed.
    package var outcomes: Int
    /// The largest number of `Idempotency-Key`s that are kept. Beyond it, the oldest are removed.
    package var idempotencyKeys: Int
    /// The number of seconds for which an outcome is kept.
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
    /// The quota of one consumer in the inbox of a provider. One envelope is always allowed.
    package var consumerQuota: InboxUsage.Waiting {
        .init(
            envelopes: max(1, envelopes * Self.consumerPercent / 100), bytes: bytes * Self.consumerPercent / 100)
    }
}

/// The usage of the inbox of a device. A member is nil if it was not requested.
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

    /// Adds a change. Members that are nil stay nil.
    package mutating func apply(_ change: Change) {
        waiting?.envelopes += change.envelopes
        waiting?.bytes += change.bytes
        outcomes? += change.outcomes
        keys? += change.keys
    }
}
