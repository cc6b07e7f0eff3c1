/// Makes the engine of another home load subscriptions in their stored state (``ItemEngine/follow(_:looks:)``). A repeated
/// request reads the same rows.
package struct FollowedSubscriptions: HomeQuestion {
    package typealias Answer = Void

    package let shard: Shard?
    let subscriptions: [SubscriptionSerial]
    let looks: Bool

    /// - Parameter shard: The shard of an item that the subscriptions watch.
    init(at shard: Shard, _ subscriptions: [SubscriptionSerial], looks: Bool) {
        self.shard = shard
        self.subscriptions = subscriptions
        self.looks = looks
    }
}

/// Returns why items of another home cannot accept a condition; nil if they can.
package struct ConditionRefusal: HomeQuestion {
    package typealias Answer = String?

    package let shard: Shard?
    let trigger: String
    let app: AppSerial
    let items: [ItemName]
    let device: DeviceSerial
    let user: UserID?

    /// - Parameters:
    ///   - shard: The shard of one of the items.
    ///   - items: Items of one home.
    init(at shard: Shard, of trigger: String, on items: [ItemName], for device: Device, of user: UserID?) {
        self.shard = shard
        self.trigger = trigger
        app = device.app
        self.items = items
        self.device = device.serial
        self.user = user
    }
}

/// Makes the other homes apply the hand-overs to their items now. Without this request they apply hand-overs periodically.
package struct HandOversWait: HomeQuestion {
    package typealias Answer = Void

    package var shard: Shard? { nil }
}

/// Returns whether a request at another home is setting the rules of an app for its items. That request applies the rules itself.
package struct ItemRulesBeingSet: HomeQuestion {
    package typealias Answer = Bool

    package let app: AppSerial
    package var shard: Shard? { nil }

    init(of app: AppSerial) { self.app = app }
}
