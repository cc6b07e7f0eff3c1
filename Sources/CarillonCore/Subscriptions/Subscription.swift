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
