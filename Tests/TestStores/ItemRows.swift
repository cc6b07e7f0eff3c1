package import CarillonCore

/// Rows of items, and the counters of apps.
package protocol ItemRows: Sendable {
    /// Makes the store count this many items of each app. No rows are added.
    func setItemCount(_ count: Int, in store: any Store) async throws
    /// The same for subscriptions.
    func setSubscriptionCount(_ count: Int, in store: any Store) async throws
    /// Sets the time of the last update of each item to 1970.
    func ageItems(in store: any Store) async throws
    /// Removes all items, and nothing that depends on them.
    func loseItems(in store: any Store) async throws
    /// From now on all items are removed after an item's update, and each app counts this many.
    func loseItemsAfterUpdate(counting count: Int, in store: any Store) async throws
    /// From now on an unreadable item replaces each item that is removed.
    func replaceRemovedItems(in store: any Store) async throws
    /// Ends that, and removes all items.
    func stopReplacingRemovedItems(in store: any Store) async throws
    /// The item rules change as soon as this many subscriptions have ended.
    func changeRules(afterEnding count: Int, in store: any Store) async throws
}
