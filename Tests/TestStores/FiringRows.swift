package import CarillonCore

/// Rows of firings, and of throttled ones.
package protocol FiringRows: Sendable {
    /// Damages a firing, so that its targets cannot be read.
    func damageFiring(_ number: Int64, in store: any Store) async throws
    /// Damages the waiting firings of an item, so that the name of their item cannot be read.
    func damageThrottledFirings(of item: String, in store: any Store) async throws
    /// Adds a firing of the item "i" that waits.
    func addThrottledFiring(
        of subscription: SubscriptionSerial, _ device: DeviceSerial, dueAt: Timestamp, in store: any Store
    ) async throws
    /// Sets the time at which each waiting firing is due to 1970.
    func makeThrottledFiringsDue(in store: any Store) async throws
    func throttledFirings(in store: any Store) async throws -> [ThrottledFiringRow]
    /// Returns the bytes of waiting firings of each device that has any. Throws if the store counts other bytes than it keeps.
    func throttledBytes(in store: any Store) async throws -> [Int]
    /// Adds this many waiting firings of another item to each subscription.
    func addThrottledFirings(_ count: Int, in store: any Store) async throws
    func removeThrottledFirings(in store: any Store) async throws
}

package struct ThrottledFiringRow: Sendable {
    package var subscription: SubscriptionSerial
    package var device: DeviceSerial
    package var revision: Int64

    package init(subscription: SubscriptionSerial, device: DeviceSerial, revision: Int64) {
        (self.subscription, self.device, self.revision) = (subscription, device, revision)
    }
}
