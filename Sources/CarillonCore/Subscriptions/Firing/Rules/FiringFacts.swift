/// A subscription on one of its items.
package struct FiringKey: Hashable, Sendable {
    package var subscription: SubscriptionSerial
    package var item: ItemName

    package init(_ subscription: SubscriptionSerial, on item: ItemName) {
        self.subscription = subscription
        self.item = item
    }
}

/// A subscription, as far as firing goes.
package struct FiringSubscription: Equatable, Sendable {
    package var machine: SubscriptionMachine
    /// Whether it ended and is still to be removed.
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

    /// Whether its condition is to be watched.
    package var isArmed: Bool { machine.isArmed && !isEnded }

    /// Whether it has not expired by a moment.
    func isValid(at now: Timestamp) -> Bool { expiresAt.map { $0 > now } ?? true }
}

/// The stored state of the firings of one item of a subscription.
package struct FiringWatch: Equatable, Sendable {
    package var app: AppSerial
    /// Whether the item has a value.
    package var hasItem: Bool
    /// The number of the last firing that counted since the subscription was armed, or 0. After a deletion of the item, and after a
    /// crossing that had no room, the number is negative: firings up to its magnitude do not count.
    package var lastFiring: Int64
    /// When the device was last told of the item.
    package var notifiedAt: Timestamp?

    package init(app: AppSerial, hasItem: Bool, lastFiring: Int64 = 0, notifiedAt: Timestamp? = nil) {
        self.app = app
        self.hasItem = hasItem
        self.lastFiring = lastFiring
        self.notifiedAt = notifiedAt
    }
}

/// A firing that waits for the pace of its subscription.
package struct HeldEntry: Equatable, Sendable {
    package var key: FiringKey
    /// The revision of the subscription with which the firing was found.
    package var revision: Int64

    package init(_ key: FiringKey, revision: Int64) {
        self.key = key
        self.revision = revision
    }
}

/// The number and the size of a throttled firing.
package struct HeldSize: Equatable, Sendable {
    package var number: Int64
    package var bytes: Int

    package init(_ number: Int64, bytes: Int) {
        self.number = number
        self.bytes = bytes
    }
}

/// Throttled firings of one device, and their bytes.
package struct HeldUsage: Equatable, Sendable {
    package var firings: Int
    package var bytes: Int

    package init(firings: Int = 0, bytes: Int = 0) {
        self.firings = firings
        self.bytes = bytes
    }
}

/// The facts that ``FiringRules`` needs from the store.
package struct FiringQuestions: Equatable, Sendable {
    /// How does the subscription stand, and what is known of its item?
    package var watches: Set<FiringKey> = []
    /// A throttled firing, with its subscription and its item.
    package var held: Set<Int64> = []
    /// Which firings are held, in the order of their numbers?
    package var queues: Set<FiringKey> = []
    /// How much is held for the device?
    package var usage: Set<DeviceSerial> = []

    package init() {}

    package mutating func formUnion(_ other: FiringQuestions) {
        watches.formUnion(other.watches)
        held.formUnion(other.held)
        queues.formUnion(other.queues)
        usage.formUnion(other.usage)
    }
}

/// The answers of the store. A row that was asked for and is missing here does not exist.
package struct FiringFacts: Equatable, Sendable {
    package var subscriptions: [SubscriptionSerial: FiringSubscription] = [:]
    package var watches: [FiringKey: FiringWatch] = [:]
    package var held: [Int64: HeldEntry] = [:]
    package var queues: [FiringKey: [HeldSize]] = [:]
    package var usage: [DeviceSerial: HeldUsage] = [:]

    package init() {}
}
