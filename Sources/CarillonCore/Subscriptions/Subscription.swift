package import CarillonWire

/// The store's number for a subscription. A number is never used twice.
package struct SubscriptionSerial: Hashable, Comparable, Sendable {
    package var rawValue: Int64
    package init(_ rawValue: Int64) { self.rawValue = rawValue }

    package static func < (one: Self, other: Self) -> Bool { one.rawValue < other.rawValue }
}

/// A device's request to be notified when a condition on one of its items holds.
package struct Subscription: Equatable, Sendable {
    package var serial: SubscriptionSerial
    package var id: SubscriptionID
    package var device: DeviceSerial
    package var app: AppSerial
    /// The user who owns the subscription; nil if the device owns the subscription.
    package var user: UserID?
    package var definition: Definition
    package var machine: SubscriptionMachine
    package var createdAt: Timestamp

    package init(
        serial: SubscriptionSerial, id: SubscriptionID, device: DeviceSerial, app: AppSerial, user: UserID?,
        definition: Definition, machine: SubscriptionMachine, createdAt: Timestamp
    ) {
        self.serial = serial
        self.id = id
        self.device = device
        self.app = app
        self.user = user
        self.definition = definition
        self.machine = machine
        self.createdAt = createdAt
    }

    package var origin: Origin { Origin(.subscription, serial: serial.rawValue, id: id.value) }

    /// The part of a subscription that the device sets.
    package struct Definition: Equatable, Sendable {
        package var items: [ItemName]
        package var fields: [String]
        /// The mode that each item must have; nil accepts any mode.
        package var mode: ItemState.Mode?
        /// The source of the condition; if nil, the subscription fires with each update.
        package var trigger: String?
        package var format: NotificationFormat
        package var policy: SubscriptionMachine.Policy
        /// If nil, each firing is delivered at once.
        package var pace: FiringPace?
        /// The app's name for the subscription; unique among the subscriptions of the device.
        package var key: String?
        package var tags: [String]
        package var expiresAt: Timestamp?

        package init(
            items: [ItemName], fields: [String], mode: ItemState.Mode? = nil, trigger: String? = nil,
            format: NotificationFormat, policy: SubscriptionMachine.Policy = .once, pace: FiringPace? = nil,
            key: String? = nil, tags: [String] = [],
            expiresAt: Timestamp? = nil
        ) {
            self.items = items
            self.fields = fields
            self.mode = mode
            self.trigger = trigger
            self.format = format
            self.policy = policy
            self.pace = pace
            self.key = key
            self.tags = tags
            self.expiresAt = expiresAt
        }

        /// Whether the members that cannot change while the subscription exists are equal.
        package func watchesTheSame(as other: Definition) -> Bool {
            items == other.items && fields == other.fields && mode == other.mode && key == other.key
        }
    }
}

/// The highest rate at which a device is notified about an item. Firings in between are throttled: the newest waits, or as many
/// as fit into the buffer.
package struct FiringPace: Equatable, Sendable {
    /// Firings per second.
    package var maxFrequency: Double
    /// The number of firings of an item that can wait; if nil, the item's mode sets the number.
    package var bufferSize: Int?

    package init(maxFrequency: Double, bufferSize: Int? = nil) {
        self.maxFrequency = maxFrequency
        self.bufferSize = bufferSize
    }

    package static let frequencies = 0.00001...1000.0
    package static let largestBuffer = 100

    /// The minimum interval between two deliveries.
    package var milliseconds: Int64 { Int64((1000 / maxFrequency).rounded(.up)) }

    /// The number of firings that can wait. Without ``bufferSize`` only the newest waits for a `merge` item, and up to
    /// ``largestBuffer`` firings wait for a `distinct` item.
    package func buffer(of mode: ItemState.Mode) -> Int { bufferSize ?? (mode == .merge ? 1 : Self.largestBuffer) }
}

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

/// A condition in the form that the engine loads: the shape and the constants.
package struct WatchedCondition: Sendable, Equatable {
    /// The key of the condition's shape, which conditions that differ only in constants have in common; and the source of a
    /// condition of this shape.
    package var shape: String
    package var source: String
    /// The constants, encoded by ``ValueCoding``; if nil, the engine parses ``source`` instead.
    package var constants: [UInt8]?

    package init(shape: String, source: String, constants: [UInt8]?) {
        self.shape = shape
        self.source = source
        self.constants = constants
    }
}
