package import CarillonBasics

/// The notification that a device receives when one of its item subscriptions fires.
package struct FiredNotification: Equatable, Sendable {
    package var subscription: SubscriptionID
    package var key: String?
    package var item: String
    /// The time of the item update, in milliseconds since 1970.
    package var at: Int64
    /// The content of the ``NotificationFormat`` with all placeholders filled in, without the members that only the server uses.
    package var notification: JSONValue

    package init(subscription: SubscriptionID, key: String?, item: String, at: Int64, notification: JSONValue) {
        self.subscription = subscription
        self.key = key
        self.item = item
        self.at = at
        self.notification = notification
    }

    /// Returns nil for a value that is not a notification.
    package init?(_ json: JSONValue) {
        guard case .string(let id)? = json["subscription"], let subscription = SubscriptionID(id),
            case .string(let item)? = json["item"], case .integer(let at)? = json["at"],
            let notification = json["notification"], case .object = notification
        else { return nil }
        self.init(subscription: subscription, key: nil, item: item, at: Int64(at), notification: notification)
        if case .string(let key)? = json["key"] { self.key = key }
    }

    package var json: JSONValue {
        var members: [JSONValue.Member] = [.init(name: "subscription", value: .string(subscription.description))]
        if let key { members.append(.init(name: "key", value: .string(key))) }
        members.append(.init(name: "item", value: .string(item)))
        members.append(.init(name: "at", value: .integer(Int(at))))
        members.append(.init(name: "notification", value: notification))
        return .object(members)
    }

    /// Whether the notification shows something or plays a sound.
    package var isShown: Bool { NotificationFormat.isShown(notification) }

    /// The public keys of the device for which the notification is encrypted on its way through the vendor's push service.
    package var privateKeys: PrivateKeys? { PrivateKeys(notification["private"]) }

    /// The notification without these keys.
    package var content: FiredNotification {
        guard case .object(let members) = notification else { return self }
        var content = self
        content.notification = .object(members.filter { $0.name != "private" })
        return content
    }

    /// Whether the server counts the number on the app's icon.
    package var countsBadge: Bool { notification["badge"] == .string("auto") }
}
