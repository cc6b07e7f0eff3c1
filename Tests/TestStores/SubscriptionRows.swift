package import CarillonCore

/// Rows of subscriptions, and of the items that they watch.
package protocol SubscriptionRows: Sendable {
    func addSubscription(_ subscription: SubscriptionRow, in store: any Store) async throws
    /// Adds copies of the only subscription, with its items.
    func copySubscription(times count: Int, in store: any Store) async throws
    func subscriptions(in store: any Store) async throws -> [SubscriptionSerial]
    /// Damages the items of a subscription, so that their names cannot be read.
    func damageWatchedItems(of subscription: SubscriptionSerial, in store: any Store) async throws
    /// Returns the statuses of all subscriptions: 0 subscribed, 1 triggered, 2 ended.
    func subscriptionStatuses(in store: any Store) async throws -> [Int]
    /// Ends the subscription with this key, and does not remove it.
    func endSubscription(key: String, in store: any Store) async throws
    /// Sets the status of all subscriptions to triggered.
    func trigger(subscriptionsIn store: any Store) async throws
    /// Makes all subscriptions live, as if none had fired.
    func forgetFirings(in store: any Store) async throws

    /// Returns the version at which each watched item is armed; 0 if the next update is its first.
    ///
    /// - Parameter holds: Only the items whose condition was true, or false, when it was evaluated; nil: all.
    func watchedVersions(where holds: Bool?, in store: any Store) async throws -> [Int64]
    /// Returns the number of the last firing of each watched item; 0 for none.
    func lastFirings(in store: any Store) async throws -> [Int64]
    /// Returns for each watched item, in the order of the subscriptions, whether its condition was true; nil if that is not
    /// known.
    func heldConditions(in store: any Store) async throws -> [Bool?]
    /// Forgets when a firing of each watched item was delivered.
    func forgetDeliveries(in store: any Store) async throws
}

/// A subscription without a condition to one item.
package struct SubscriptionRow: Sendable {
    package var serial: SubscriptionSerial
    package var device: DeviceSerial
    package var app: AppSerial
    package var user: String?
    package var hasEnded = false
    package var createdAt: Timestamp
    package var expiresAt: Timestamp?
    package var maxFrequency: Double?

    package init(serial: SubscriptionSerial, device: DeviceSerial, app: AppSerial, createdAt: Timestamp) {
        (self.serial, self.device, self.app, self.createdAt) = (serial, device, app, createdAt)
    }
}
