package import CarillonWire

/// Stores items, subscriptions on items, and firings that are not delivered.
///
/// Each change is one transaction: a concurrent call sees all of the change or nothing. Concurrent changes of one row are
/// serialized, and each reads the result of the change before it. A read sees one moment of the store. Every method throws
/// ``StoreFault`` if the store cannot be read or written; a change that throws is not made. A limit on the length of a list
/// returns the first rows of its order.
///
/// Methods with a set of shards neither return nor change rows of devices in other shards.
package protocol SubscriptionStore: Sendable {
    // MARK: Items

    /// Returns apps whose item rules (``AppDocument/Kind/itemRules``) are not applied completely: subscriptions on items
    /// that the rules close may not be ended yet.
    func appsWithUnappliedRules() async throws -> [AppSerial]
    /// Notes that a revision of the rules is applied, unless the app has set other rules. A second call changes nothing.
    func markRulesApplied(_ revision: Int64, of app: AppSerial) async throws
    /// Returns an item in the state of its last commit; nil before the first commit and after a deletion.
    func item(_ key: ItemKey) async throws -> StoredItem?
    /// Writes an item after a batch of updates, together with the firings of the updates. The caller is the only writer of the
    /// item: the new state replaces the stored state.
    ///
    /// Numbers of firings ascend in the order of their commits: a reader that has seen a firing of an item never sees one with a
    /// smaller number appear.
    ///
    /// - Returns: The numbers of the firings; nil if the app was deleted, or a new item would exceed ``ItemLimits/itemsPerApp``,
    ///   also by concurrent commits. Then neither the item nor a firing is written.
    func commitItem(_ commit: ItemCommit) async throws -> [Int64]?
    /// Returns a page of an app's items whose names begin with a prefix, in the order of the bytes of their names.
    func items(of app: AppSerial, prefix: String, after name: String, limit: Int) async throws -> [ListedItem]
    /// Returns items of an app that have no subscriptions and whose last update is not later than a moment. The search starts
    /// after a name and reads a limited number of rows.
    ///
    /// - Returns: The items, and the name after which the next part begins; nil after the last part.
    func unwatchedItems(
        of app: AppSerial, updatedBy moment: Timestamp, after name: String, limit: Int
    ) async throws -> (items: [ListedItem], end: String?)
    /// Resets some of the subscriptions on an item, as before its first update, and drops their throttled firings. The call
    /// changes nothing if the item has a row. The subscriptions are read before the transaction that changes them.
    ///
    /// - Parameter all: Whether the call also invalidates firings that are being delivered. Otherwise it leaves out subscriptions
    ///   that are in this state already.
    /// - Returns: The last of these subscriptions; nil after the last part.
    func resetSubscriptions(
        on item: ItemKey, after subscription: SubscriptionSerial, limit: Int, all: Bool
    ) async throws -> SubscriptionSerial?
    /// Deletes an item with its firings that were not delivered. Its subscriptions stay; the next update of the item is its
    /// first.
    ///
    /// - Parameter moment: Deletes the item only if its last update is not later than this moment and the item has no
    ///   subscription; nil deletes it in any case.
    /// - Returns: Whether this call deleted it.
    func deleteItem(_ item: ItemKey, ifIdleSince moment: Timestamp?) async throws -> Bool

    // MARK: Subscriptions

    /// Creates a subscription, or changes the subscription of the device that has the requested key or identifier. A repeated
    /// request with a key returns the subscription unchanged. Concurrent calls exceed neither the limit of the device nor the
    /// limit of the app.
    func putSubscription(_ request: SubscriptionRequest, at now: Timestamp) async throws -> SubscriptionPut
    /// Returns the user of a device, who owns its new subscriptions; nil if the device owns them.
    func user(of device: DeviceSerial) async throws -> UserID?
    /// Returns a subscription that has not ended; nil if the device has none with this identifier.
    func subscription(_ id: SubscriptionID, of device: DeviceSerial) async throws -> Subscription?
    /// Returns a page of a device's subscriptions that have not ended, in the order in which they were created.
    func subscriptions(
        of device: DeviceSerial, _ filter: SubscriptionFilter, after: SubscriptionSerial, limit: Int
    ) async throws -> [Subscription]
    /// Marks subscriptions of a device as ended: they do not fire any more, and other subscriptions can use their keys. They stay
    /// in the store until they are removed.
    ///
    /// - Returns: The number of subscriptions that this call ended.
    func endSubscriptions(of device: DeviceSerial, _ filter: SubscriptionFilter) async throws -> Int
    /// Marks some of a device's subscriptions as ended. Subscriptions of other devices are left out.
    func endSubscriptions(_ subscriptions: [SubscriptionSerial], of device: DeviceSerial) async throws -> Int
    /// Marks subscriptions of an app's devices as ended.
    ///
    /// - Parameter revision: The revision of the app's rules for items. If the app has set other rules, no subscription ends.
    /// - Returns: The number of subscriptions; nil if the app has set other rules.
    func endSubscriptions(
        _ subscriptions: [SubscriptionSerial], of app: AppSerial, rulesRevision revision: Int64
    ) async throws -> Int?
    /// Returns names of an app's items that have subscriptions, in the order of their bytes.
    func subscribedItems(of app: AppSerial, after name: String, limit: Int) async throws -> [ItemName]
    /// Returns the subscriptions on an item that have not ended, in the order of their numbers.
    func subscribers(
        of item: ItemKey, after subscription: SubscriptionSerial, limit: Int
    ) async throws -> [ItemSubscriber]
    /// Returns ended subscriptions that must still be removed, of one device or of all.
    func endedSubscriptions(
        of device: DeviceSerial?, in shards: ShardSet, limit: Int
    ) async throws -> [EndedSubscription]
    /// Removes ended subscriptions with their envelopes. A second call changes nothing.
    func removeSubscriptions(_ ended: [EndedSubscription], at now: Timestamp) async throws
    /// Marks expired subscriptions as ended. Returns the number of subscriptions that this call ended.
    func endExpiredSubscriptions(in shards: ShardSet, at now: Timestamp, limit: Int) async throws -> Int

    // MARK: Watching

    /// Returns the armed subscriptions on an item, in the order of their numbers. Subscriptions of suspended devices are left
    /// out.
    func armed(on item: ItemKey, after: SubscriptionSerial, limit: Int) async throws -> [ArmedSubscription]
    /// Returns items of the shards that have a value and one of these subscriptions: an armed subscription that never fired on
    /// the value and still can, or one whose last crossing was refused. The search starts at a place and reads a limited number
    /// of rows, also of items in other shards. An item can be in two parts.
    ///
    /// - Returns: The items, and the place after which the next part begins; nil after the last part.
    func itemsNeverFired(
        in shards: ShardSet, after place: WatchPlace, limit: Int
    ) async throws -> (items: [ItemKey], end: WatchPlace?)
    /// Returns the rows of some subscriptions on all their items, armed or not. Unknown subscriptions are left out.
    func armed(_ subscriptions: [SubscriptionSerial]) async throws -> [ArmedSubscription]
    /// Returns the subscriptions of a device that are in the store, including ended subscriptions until they are removed.
    func serials(of device: DeviceSerial) async throws -> [SubscriptionSerial]

    // MARK: Firing

    /// Returns the data for notifications, in the order of the subscriptions. Subscriptions that cannot fire are left out.
    func subjects(_ subscriptions: [SubscriptionSerial]) async throws -> [FiringSubject]
    /// Returns items of the shards with firings that were not delivered, in the order of their keys.
    func itemsWithFirings(in shards: ShardSet, after: ItemKey?, limit: Int) async throws -> [ItemKey]
    /// Returns the first firing of an item that was not delivered; nil if the item has no such firing.
    func nextFiring(of item: ItemKey) async throws -> NextFiring?
    /// Returns the subscriptions with firings of an item that were not delivered. Firings that cannot be read are left out.
    func firingTargets(of item: ItemKey) async throws -> Set<SubscriptionSerial>
    /// Returns the numbers of an item's firings that were not delivered.
    func firingNumbers(of item: ItemKey) async throws -> [Int64]
    /// Notes that a number of a firing's targets were handled; nil removes the firing. The call changes nothing if the firing was
    /// removed.
    ///
    /// - Parameter refused: Targets with the policy `everyCrossing` that exceeded a limit of their device. Afterwards each is
    ///   stored as not fired on the item since it was armed, with a condition that did not hold (``ArmedSubscription/held``), so
    ///   that the crossing is found again. Subscriptions that changed since the firing was found, or that have a later firing of
    ///   the item, are left as they are.
    func advance(_ firing: Int64, to count: Int?, refused: [Firing.Target]) async throws

    // MARK: Throttled firings

    /// Stores firings of subscriptions that have a pace, in order, unless they can be delivered now. A firing is ignored unless
    /// its number is later than the last of its subscription and item. Concurrent calls do not exceed
    /// ``SubscriptionLimits/throttledFirings`` and ``SubscriptionLimits/throttledBytes`` of a device.
    ///
    /// - Returns: A result for each firing.
    func throttle(_ firings: [ThrottledFiring], at now: Timestamp) async throws -> [ThrottleResult]
    /// Returns throttled firings that are due, in the order of their due times. The call removes nothing:
    /// ``Effect/throttledNotified(_:at:)`` is applied once for each firing.
    func dueFirings(in shards: ShardSet, at now: Timestamp, limit: Int) async throws -> [DueFiring]
    /// Returns the due time of the first throttled firing; nil if the shards have no throttled firings.
    func nextThrottledFiring(in shards: ShardSet) async throws -> Timestamp?
    /// Corrects due times after the clock was set back: no firing waits longer than the interval of its pace.
    func bringBackThrottled(in shards: ShardSet, at now: Timestamp) async throws
    /// Drops throttled firings that are not valid any more. The next firing of the same subscription and item is then due at
    /// once. A second call changes nothing.
    func dropThrottled(_ firings: [Int64], at now: Timestamp) async throws
}

/// A rendered firing of a subscription that has a pace.
package struct ThrottledFiring: Equatable, Sendable {
    package var target: Firing.Target
    package var device: DeviceSerial
    package var item: ItemName
    /// The number of the stored firing from which the notification is delivered.
    package var number: Int64
    /// The bytes of ``FiredNotification``.
    package var body: [UInt8]
    package var ttl: Int64
    package var isAlwaysPushed: Bool
    /// Whether the item has the mode `distinct`.
    package var isDistinct: Bool
    package var milliseconds: Int64
    package var buffer: Int

    package init(
        target: Firing.Target, device: DeviceSerial, item: ItemName, number: Int64, body: [UInt8], ttl: Int64,
        isAlwaysPushed: Bool, isDistinct: Bool, milliseconds: Int64, buffer: Int
    ) {
        self.target = target
        self.device = device
        self.item = item
        self.number = number
        self.body = body
        self.ttl = ttl
        self.isAlwaysPushed = isAlwaysPushed
        self.isDistinct = isDistinct
        self.milliseconds = milliseconds
        self.buffer = buffer
    }
}

package enum ThrottleResult: Equatable, Sendable {
    /// The firing must be delivered now.
    case due
    /// The firing is stored, and replaces this number of firings that waited before it.
    case throttled(insteadOf: Int)
    /// The firing is not valid any more.
    case late
    /// The throttled firings of the device have reached a limit.
    case full
}

/// A throttled firing whose due time is reached.
package struct DueFiring: Sendable {
    package var number: Int64
    package var device: DeviceSerial
    package var app: AppSerial
    package var origin: Origin
    package var body: [UInt8]
    package var ttl: Int64
    package var isAlwaysPushed: Bool
    /// Whether the item has the mode `distinct`.
    package var isDistinct: Bool

    package init(
        number: Int64, device: DeviceSerial, app: AppSerial, origin: Origin, body: [UInt8], ttl: Int64, isAlwaysPushed: Bool,
        isDistinct: Bool
    ) {
        self.number = number
        self.device = device
        self.app = app
        self.origin = origin
        self.body = body
        self.ttl = ttl
        self.isAlwaysPushed = isAlwaysPushed
        self.isDistinct = isDistinct
    }
}

package struct ItemCommit: Sendable {
    package var key: ItemKey
    package var item: StoredItem
    package var firings: [Firing]

    package init(key: ItemKey, item: StoredItem, firings: [Firing]) {
        self.key = key
        self.item = item
        self.firings = firings
    }
}

/// A subscription on an item, with all its items.
package struct ItemSubscriber: Equatable, Sendable {
    package var subscription: SubscriptionSerial
    /// The items, in the order of the subscription's definition.
    package var items: [ItemName]

    package init(_ subscription: SubscriptionSerial, items: [ItemName]) {
        self.subscription = subscription
        self.items = items
    }
}

/// The subscriptions that one update fired.
package struct Firing: Sendable {
    /// A subscription, and the revision with which its condition was evaluated.
    package struct Target: Hashable, Sendable {
        package var subscription: SubscriptionSerial
        package var revision: Int64

        package init(subscription: SubscriptionSerial, revision: Int64) {
            self.subscription = subscription
            self.revision = revision
        }
    }

    package var item: ItemName
    package var app: AppSerial
    /// The state of the item after the update.
    package var state: ItemState
    package var targets: [Target]

    package init(item: ItemName, app: AppSerial, state: ItemState, targets: [Target]) {
        self.item = item
        self.app = app
        self.state = state
        self.targets = targets
    }

    /// The largest number of targets in one row.
    package static let targetsPerRow = 4096
}

package enum NextFiring: Sendable {
    case readable(StoredFiring)
    /// The row with this number is damaged.
    case unreadable(Int64)

    package var number: Int64 {
        switch self {
        case .readable(let firing): firing.number
        case .unreadable(let number): number
        }
    }
}

package struct StoredFiring: Sendable {
    package var number: Int64
    package var firing: Firing
    /// The number of targets that were handled.
    package var done: Int

    package init(number: Int64, firing: Firing, done: Int = 0) {
        self.number = number
        self.firing = firing
        self.done = done
    }
}

package struct SubscriptionRequest: Sendable {
    /// The identifier of a new subscription.
    package var proposed: SubscriptionID
    /// The subscription to change; nil to create one, or to find it by its key.
    package var changed: SubscriptionID?
    /// The revision that ``changed`` must still have; nil accepts any revision.
    package var revision: Int64?
    package var device: DeviceSerial
    package var definition: Subscription.Definition
    package var condition: WatchedCondition?
    /// The largest number of subscriptions of one device.
    package var limit: Int
    /// The revision of the app's rules for items that allow the subscription; nil accepts any rules.
    package var rulesRevision: Int64?
    /// Whether the condition holds on each item, if the policy needs this.
    package var found: [FoundCondition]
    /// The shards of other homes that have items of the subscription. Each gets a hand-over (``HandOver/Kind/subscriptionPut``)
    /// if the subscription is created or changed.
    package var otherShards: [Shard]

    package init(
        proposed: SubscriptionID, changed: SubscriptionID? = nil, revision: Int64? = nil, device: DeviceSerial,
        definition: Subscription.Definition, condition: WatchedCondition?, limit: Int, rulesRevision: Int64? = nil,
        found: [FoundCondition] = [], otherShards: [Shard] = []
    ) {
        self.proposed = proposed
        self.changed = changed
        self.revision = revision
        self.device = device
        self.definition = definition
        self.condition = condition
        self.limit = limit
        self.rulesRevision = rulesRevision
        self.found = found
        self.otherShards = otherShards
    }
}

/// Whether a condition holds on an item after one of its updates.
package struct FoundCondition: Equatable, Sendable {
    package var item: ItemName
    /// The number of updates of the item; 0 before the first.
    package var version: Int64
    package var holds: Bool

    package init(item: ItemName, version: Int64, holds: Bool) {
        self.item = item
        self.version = version
        self.holds = holds
    }
}

package enum SubscriptionPut: Equatable, Sendable {
    case made(Subscription)
    case changed(Subscription)
    /// The subscription exists already, as requested.
    case same(Subscription)
    /// The subscription exists with other items, fields or mode, which cannot change.
    case frozen(Subscription)
    /// The subscription does not have the expected revision any more.
    case overtaken
    /// The app has set other rules for its items.
    case rulesChanged
    case tooMany
    case deviceSuspended
    case deviceGone
    /// The device has no subscription with this identifier.
    case unknown
}

package struct SubscriptionFilter: Equatable, Sendable {
    package var status: SubscriptionMachine.Status?
    package var key: String?
    package var id: SubscriptionID?
    package var tag: String?

    package init(
        status: SubscriptionMachine.Status? = nil, key: String? = nil, id: SubscriptionID? = nil, tag: String? = nil
    ) {
        self.status = status
        self.key = key
        self.id = id
        self.tag = tag
    }
}

package struct EndedSubscription: Equatable, Sendable {
    package var serial: SubscriptionSerial
    package var device: DeviceSerial

    package init(serial: SubscriptionSerial, device: DeviceSerial) {
        self.serial = serial
        self.device = device
    }
}

/// The data of a subscription on one item that the engine needs to evaluate its condition.
package struct ArmedSubscription: Sendable {
    package var item: ItemKey
    /// Whether the subscription can fire and its device is not suspended.
    package var isArmed: Bool
    package var target: Firing.Target
    package var owner: ConditionOwner
    package var policy: ItemIndex.Policy
    /// Nil if the subscription fires with each update.
    package var condition: WatchedCondition?
    /// The number of updates that the item had when the subscription was armed.
    package var since: Int64
    /// Whether the subscription fired on the item since then.
    package var hasFired: Bool
    /// Whether the condition held then; nil if this is not known. False after a crossing that exceeded a limit of the device.
    package var held: Bool?
    package var coolDownSeconds: Int64
    package var firedAt: Timestamp?

    package init(
        item: ItemKey, isArmed: Bool = true, target: Firing.Target, owner: ConditionOwner,
        policy: ItemIndex.Policy, condition: WatchedCondition?, since: Int64, hasFired: Bool = false, held: Bool? = nil,
        coolDownSeconds: Int64 = 0, firedAt: Timestamp? = nil
    ) {
        self.item = item
        self.isArmed = isArmed
        self.target = target
        self.owner = owner
        self.policy = policy
        self.condition = condition
        self.since = since
        self.hasFired = hasFired
        self.held = held
        self.coolDownSeconds = coolDownSeconds
        self.firedAt = firedAt
    }
}

/// The data of a subscription that a notification is rendered from, and its reader.
package struct FiringSubject: Sendable {
    package var serial: SubscriptionSerial
    package var id: SubscriptionID
    package var device: DeviceSerial
    package var app: AppSerial
    package var key: String?
    package var fields: [String]
    /// The format, as JSON.
    package var format: String
    package var policy: SubscriptionMachine.Policy
    package var pace: FiringPace?
    package var items: Int
    package var reader: Reader

    package init(
        serial: SubscriptionSerial, id: SubscriptionID, device: DeviceSerial, app: AppSerial, key: String?, fields: [String],
        format: String, policy: SubscriptionMachine.Policy, pace: FiringPace?, items: Int, reader: Reader
    ) {
        self.serial = serial
        self.id = id
        self.device = device
        self.app = app
        self.key = key
        self.fields = fields
        self.format = format
        self.policy = policy
        self.pace = pace
        self.items = items
        self.reader = reader
    }

    package var origin: Origin { Origin(.subscription, serial: serial.rawValue, id: id.value) }
}

/// A position in all subscribed items, in the order of apps, items and subscriptions.
package struct WatchPlace: Sendable {
    package var app: AppSerial
    package var item: String
    package var subscription: SubscriptionSerial

    package static let start = WatchPlace(app: AppSerial(0), item: "", subscription: SubscriptionSerial(0))

    package init(app: AppSerial, item: String, subscription: SubscriptionSerial) {
        self.app = app
        self.item = item
        self.subscription = subscription
    }
}
