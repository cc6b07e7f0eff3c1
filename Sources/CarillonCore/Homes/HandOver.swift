/// The effect of a change in one shard on another shard.
///
/// The change writes the hand-over in its own transaction. The home of the other shard reads the hand-over, applies it, and
/// removes it. A home that is killed in between applies the hand-over again after its next start. Therefore, a hand-over must be
/// safe to apply twice.
package struct HandOver: Equatable, Sendable {
    package enum Kind: Int64, CaseIterable, Sendable {
        /// A device was suspended or resumed that has subscriptions on items of the shard. The content is the device.
        case subscriptionsChanged = 1
        /// A subscription on an item of the shard was removed. The content is the app, the subscription, the shape of the
        /// condition or nothing, and the name of the item, with a space between each. The shape is removed also if the name
        /// cannot be read.
        case subscriptionRemoved = 2
        /// Another home made or changed a subscription on an item of the shard. The content is the subscription.
        case subscriptionPut = 3
    }

    /// The number of the hand-over. Numbers increase in the order in which hand-overs are written, and are never used again.
    package var number: Int64
    /// The shard whose home applies the hand-over.
    package var shard: Shard
    package var kind: Kind
    package var content: String

    package init(number: Int64, shard: Shard, kind: Kind, content: String) {
        self.number = number
        self.shard = shard
        self.kind = kind
        self.content = content
    }
}

/// The change of rows that belongs to a hand-over.
package enum HandOverChange: Equatable, Sendable {
    /// The shape of a condition is removed, unless a subscription uses it.
    case removeShape(Int64)
}

/// A hand-over that a home has applied.
package struct AppliedHandOver: Equatable, Sendable {
    package var number: Int64
    /// The change of rows that belongs to the hand-over; nil if the hand-over changes no rows.
    package var change: HandOverChange?

    package init(number: Int64, change: HandOverChange?) {
        self.number = number
        self.change = change
    }
}

/// The hand-overs that are not applied.
package struct WaitingHandOvers: Equatable, Sendable {
    package var count: Int
    /// The lowest number, which belongs to the oldest hand-over; nil if none waits.
    package var first: Int64?

    package init(count: Int, first: Int64?) {
        self.count = count
        self.first = first
    }
}
