package enum SubscriptionLimits {
    /// The number of subscriptions of one app.
    package static let perApp = 10_000_000
    package static let items = 100
    package static let triggerBytes = 4096
    /// The bytes in the constants of a trigger, multiplied by the number of items of the subscription.
    package static let constantBytes = 65_536
    package static let keyBytes = 128
    package static let tags = 16
    package static let tagBytes = 64
    /// Conditions of one item that do not begin with an indexed comparison, and are therefore evaluated with each update. The
    /// same limit applies to conditions of which only a part is indexed.
    package static let unguardedPerItem = 100_000
    /// The bytes in the constants of an item's conditions. Equal constants count once.
    package static let constantBytesPerItem = 64 << 20
    /// Different expressions that conditions of one item compare. Each update of the item evaluates all of them.
    package static let comparedPerItem = 1000
    /// The part of each of these limits of an item that one user, or one device without a user, can use.
    package static let quotaPercent = 5
    /// Nodes in the syntax tree of an expression that a condition compares.
    package static let comparedNodes = 20
    /// The bytes of a notification in the form that Apple's push service receives.
    package static let payloadBytes = 4096
    /// The number of throttled firings of one device, and their bytes.
    package static let throttledFirings = 1000
    package static let throttledBytes = 1 << 20
    /// The longest cool-down of the policy ``SubscriptionMachine/Policy/every(coolDownSeconds:)``.
    package static let coolDownSeconds: Int64 = 30 * 86_400
}
