/// The effect of a hand-over on the engine of items.
package enum ItemHandOver: Equatable, Sendable {
    /// The subscriptions of the device must be armed or disarmed.
    case subscriptionsChanged(of: DeviceSerial)
    /// The subscription must be loaded in its stored state, and its condition must be evaluated at once.
    case subscriptionPut(SubscriptionSerial)
    /// The subscription must be disarmed on the item. The item is nil if its name cannot be read. Such an item is not in memory.
    case subscriptionRemoved(SubscriptionSerial, from: ItemKey?, shape: Int64?)

    /// Returns nil if the content cannot be read. The hand-over is removed then, and changes nothing.
    package init?(_ handOver: HandOver) {
        switch handOver.kind {
        case .subscriptionsChanged:
            guard let device = Int64(handOver.content) else { return nil }
            self = .subscriptionsChanged(of: DeviceSerial(device))
        case .subscriptionPut:
            guard let subscription = Int64(handOver.content) else { return nil }
            self = .subscriptionPut(SubscriptionSerial(subscription))
        case .subscriptionRemoved:
            // The split works on bytes, because the first character of a name can combine with the space before it.
            let parts = handOver.content.utf8.split(
                separator: UInt8(ascii: " "), maxSplits: 3, omittingEmptySubsequences: false
            ).map { Substring($0) }
            guard parts.count >= 3, let app = Int64(parts[0]), let subscription = Int64(parts[1]) else { return nil }
            let name = parts.count == 4 ? ItemName(parts[3]) : nil
            let shape = Int64(parts[2])
            guard shape != nil || parts[2].isEmpty else { return nil }
            let item = name.map { ItemKey(app: AppSerial(app), name: $0) }
            self = .subscriptionRemoved(SubscriptionSerial(subscription), from: item, shape: shape)
        }
    }

    /// The change of rows that belongs to the hand-over.
    package var change: HandOverChange? {
        switch self {
        case .subscriptionsChanged, .subscriptionPut: nil
        case .subscriptionRemoved(_, from: _, shape: let shape): shape.map { HandOverChange.removeShape($0) }
        }
    }
}

extension AppliedHandOver {
    /// The hand-over with the change that belongs to it.
    package init(_ handOver: HandOver) {
        self.init(number: handOver.number, change: ItemHandOver(handOver)?.change)
    }
}
