package import CarillonWire

/// The store's number for a subscription; never used twice.
package struct SubscriptionSerial: Hashable, Comparable, Sendable {
    package var rawValue: Int64
    package init(_ rawValue: Int64) { self.rawValue = rawValue }

    package static func < (one: Self, other: Self) -> Bool { one.rawValue < other.rawValue }
}

/// A device's standing order: watch these items, and tell me when the condition holds.
package struct Subscription: Equatable, Sendable {
    package var serial: SubscriptionSerial
    package var id: SubscriptionID
    package var device: DeviceSerial
    package var app: AppSerial
    /// Whose it is; nil of one that is the device's.
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

    /// What its device says of it.
    package struct Definition: Equatable, Sendable {
        package var items: [ItemName]
        package var fields: [String]
        /// That the items must have; nil takes any.
        package var mode: ItemState.Mode?
        /// Nil fires with each update.
        package var trigger: String?
        package var format: NotificationFormat
        package var policy: SubscriptionMachine.Policy
        /// Nil tells of each firing at once.
        package var pace: FiringPace?
        /// The app's name for it, of which a device has one.
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

        /// Whether what is frozen while it is active is the same.
        package func watchesTheSame(as other: Definition) -> Bool {
            items == other.items && fields == other.fields && mode == other.mode && key == other.key
        }
    }
}

/// How often a device is told of an item at the most. What fires in between waits: the newest of it, or as many as its buffer has room for.
package struct FiringPace: Equatable, Sendable {
    /// Firings a second.
    package var maxFrequency: Double
    /// Firings of an item that wait; nil where the item's mode decides.
    package var bufferSize: Int?

    package init(maxFrequency: Double, bufferSize: Int? = nil) {
        self.maxFrequency = maxFrequency
        self.bufferSize = bufferSize
    }

    package static let frequencies = 0.00001...1000.0
    package static let largestBuffer = 100

    /// Between two firings.
    package var milliseconds: Int64 { Int64((1000 / maxFrequency).rounded(.up)) }

    /// One that merges wants the newest only; each of those that are distinct counts.
    package func buffer(of mode: ItemState.Mode) -> Int { bufferSize ?? (mode == .merge ? 1 : Self.largestBuffer) }
}

package enum SubscriptionLimits {
    /// Of one app.
    package static let perApp = 10_000_000
    package static let items = 100
    package static let triggerBytes = 4096
    /// The constants of a trigger, times the items that it is kept for.
    package static let constantBytes = 65_536
    package static let keyBytes = 128
    package static let tags = 16
    package static let tagBytes = 64
    /// Conditions of one item that are evaluated with each of its updates, as no comparison guards them.
    package static let unguardedPerItem = 100_000
    /// What constants of an item's conditions may have together, each counted once.
    package static let constantBytesPerItem = 64 << 20
    /// Different expressions that conditions of one item compare: each of its updates evaluates all of them.
    package static let comparedPerItem = 1000
    /// What one user, or one device without a user, may take of each of these limits of an item.
    package static let sharePercent = 5
    /// The nodes of the syntax tree of an expression that a condition compares.
    package static let comparedNodes = 20
    /// A notification as it travels to Apple.
    package static let payloadBytes = 4096
    /// Notifications of one device that wait until they may be told, and their bytes.
    package static let throttledFirings = 1000
    package static let heldBytes = 1 << 20
    /// The longest cool-down.
    package static let coolDownSeconds: Int64 = 30 * 86_400
}

/// Its condition as the engine needs it, read and taken apart.
package struct WatchedCondition: Sendable, Equatable {
    /// Of its shape, which many share; and a condition of that shape.
    package var shape: String
    package var source: String
    /// As ``ValueCoding`` writes them; nil where the source is read instead.
    package var constants: [UInt8]?

    package init(shape: String, source: String, constants: [UInt8]?) {
        self.shape = shape
        self.source = source
        self.constants = constants
    }
}
