/// A subscription on one of its items.
package struct FiringKey: Hashable, Sendable {
    package var subscription: SubscriptionSerial
    package var item: ItemName

    package init(_ subscription: SubscriptionSerial, on item: ItemName) {
        self.subscription = subscription
        self.item = item
    }
}

/// The state of a subscription that decides whether its firings are valid.
package struct FiringSubscription: Equatable, Sendable {
    package var machine: SubscriptionMachine
    /// Whether the subscription ended and must still be removed.
    package var isEnded: Bool
    package var expiresAt: Timestamp?
    package var pace: FiringPace?

    package init(
        _ machine: SubscriptionMachine, isEnded: Bool = false, expiresAt: Timestamp? = nil, pace: FiringPace? = nil
    ) {
        self.machine = machine
        self.isEnded = isEnded
        self.expiresAt = expiresAt
        self.pace = pace
    }

    /// Whether the condition is evaluated.
    package var isArmed: Bool { machine.isArmed && !isEnded }

    /// Whether the subscription has not expired at a moment.
    func isValid(at now: Timestamp) -> Bool { expiresAt.map { $0 > now } ?? true }
}

/// The stored state of the firings of one item of a subscription.
package struct FiringWatch: Equatable, Sendable {
    package var app: AppSerial
    /// Whether the item has a value.
    package var hasItem: Bool
    /// The number of the last valid firing since the subscription was armed, or 0. After a deletion of the item, and after a
    /// crossing that exceeded a limit of the device, the number is negative: firings up to its absolute value are not valid.
    package var lastFiring: Int64
    /// When the device was last notified about the item.
    package var notifiedAt: Timestamp?

    package init(app: AppSerial, hasItem: Bool, lastFiring: Int64 = 0, notifiedAt: Timestamp? = nil) {
        self.app = app
        self.hasItem = hasItem
        self.lastFiring = lastFiring
        self.notifiedAt = notifiedAt
    }
}

/// A firing that is throttled by the pace of its subscription.
package struct ThrottledEntry: Equatable, Sendable {
    package var key: FiringKey
    /// The revision of the subscription with which the firing was found.
    package var revision: Int64

    package init(_ key: FiringKey, revision: Int64) {
        self.key = key
        self.revision = revision
    }
}

/// The number and the size of a throttled firing.
package struct ThrottledSize: Equatable, Sendable {
    package var number: Int64
    package var bytes: Int

    package init(_ number: Int64, bytes: Int) {
        self.number = number
        self.bytes = bytes
    }
}

/// The number of throttled firings of one device, and their bytes.
package struct ThrottledUsage: Equatable, Sendable {
    package var firings: Int
    package var bytes: Int

    package init(firings: Int = 0, bytes: Int = 0) {
        self.firings = firings
        self.bytes = bytes
    }
}

/// The rows that ``FiringRules`` needs from the store.
package struct FiringQuestions: Equatable, Sendable {
    /// Subscriptions with their state on an item.
    package var watches: Set<FiringKey> = []
    /// Throttled firings, with their subscription and item.
    package var throttled: Set<Int64> = []
    /// The throttled firings of a subscription and item, in the order of their numbers.
    package var queues: Set<FiringKey> = []
    /// The usage of throttled firings by devices.
    package var usage: Set<DeviceSerial> = []

    package init() {}

    package mutating func formUnion(_ other: FiringQuestions) {
        watches.formUnion(other.watches)
        throttled.formUnion(other.throttled)
        queues.formUnion(other.queues)
        usage.formUnion(other.usage)
    }
}

/// The rows that the store returned. A requested row that is missing here does not exist.
package struct FiringFacts: Equatable, Sendable {
    package var subscriptions: [SubscriptionSerial: FiringSubscription] = [:]
    package var watches: [FiringKey: FiringWatch] = [:]
    package var throttled: [Int64: ThrottledEntry] = [:]
    package var queues: [FiringKey: [ThrottledSize]] = [:]
    package var usage: [DeviceSerial: ThrottledUsage] = [:]

    package init() {}
}
