/// An item in a list of an app's items.
package struct ListedItem: Equatable, Sendable {
    package var name: ItemName
    /// The number of updates of the item.
    package var version: Int64
    package var updatedAt: Timestamp
    /// The number of subscriptions on the item.
    package var subscriptions: Int

    package init(name: ItemName, version: Int64, updatedAt: Timestamp, subscriptions: Int) {
        self.name = name
        self.version = version
        self.updatedAt = updatedAt
        self.subscriptions = subscriptions
    }
}
