package import CarillonBasics
import Crypto

/// An item subscription, as the device writes and reads it.
package struct SubscriptionBody: Codable, Equatable, Sendable {
    package var id: String
    package var items: [String]
    package var fields: [String]
    package var mode: String?
    package var trigger: String?
    package var format: JSONValue
    package var policy: String
    /// The interval of the policy `every`, in seconds.
    package var coolDown: Int64?
    /// The most firings of an item in one second.
    package var maxFrequency: Double?
    package var bufferSize: Int?
    package var key: String?
    package var tags: [String]
    package var expiresAt: String?
    /// `subscribed` or `triggered`.
    package var status: String
    package var statusAt: String
    package var createdAt: String
    /// The time of the last firing.
    package var firedAt: String?
    /// The hash of the definition by the device. The client compares it in order to find subscriptions that changed.
    package var hash: String

    package init(
        id: String, items: [String], fields: [String], mode: String?, trigger: String?, format: JSONValue, policy: String,
        coolDown: Int64?, maxFrequency: Double? = nil, bufferSize: Int? = nil, key: String?, tags: [String],
        expiresAt: String?,
        status: String, statusAt: String,
        createdAt: String, firedAt: String?, hash: String
    ) {
        self.id = id
        self.items = items
        self.fields = fields
        self.mode = mode
        self.trigger = trigger
        self.format = format
        self.policy = policy
        self.coolDown = coolDown
        self.maxFrequency = maxFrequency
        self.bufferSize = bufferSize
        self.key = key
        self.tags = tags
        self.expiresAt = expiresAt
        self.status = status
        self.statusAt = statusAt
        self.createdAt = createdAt
        self.firedAt = firedAt
        self.hash = hash
    }
}

/// The definition of an item subscription by a device, with all members in a fixed order.
package enum SubscriptionDocument {
    package static func json(
        items: [String], fields: [String], mode: String?, trigger: String?, format: JSONValue, policy: String,
        coolDown: Int64?, maxFrequency: Double?, bufferSize: Int?, key: String?, tags: [String], expiresAt: Int64?
    ) -> JSONValue {
        func texts(_ values: [String]) -> JSONValue { .array(values.map { .string($0) }) }
        // 2 and 2.0 are the same number.
        func number(_ value: Double) -> JSONValue { Int(exactly: value).map { .integer($0) } ?? .number(value) }
        func text(_ value: String?) -> JSONValue { value.map { .string($0) } ?? .null }
        return [
            "items": texts(items), "fields": texts(fields), "mode": text(mode), "trigger": text(trigger),
            "format": format, "policy": .string(policy), "coolDown": coolDown.map { .integer(Int($0)) } ?? .null,
            "maxFrequency": maxFrequency.map(number) ?? .null, "bufferSize": bufferSize.map(JSONValue.integer) ?? .null,
            "key": text(key), "tags": tags.isEmpty ? .null : texts(tags),
            "expiresAt": text(expiresAt.map(Timestamp3339.text)),
        ]
    }
}

/// The hash of the definition of an item subscription. Client and server compute the same hash, independent of the JSON's
/// notation.
package enum SubscriptionHash {
    /// - Parameter definition: The members that a device writes. Null members count as absent.
    package static func text(of definition: JSONValue) -> String {
        Base64URL.encode(Array(SHA256.hash(data: canonical(definition).bytes)).prefix(16))
    }

    /// Returns the value with members in a fixed order, without null members.
    static func canonical(_ value: JSONValue) -> JSONValue {
        switch value {
        case .object(let members):
            .object(
                members.filter { $0.value != .null }.sorted { $0.name < $1.name }
                    .map { .init(name: $0.name, value: canonical($0.value)) })
        case .array(let values): .array(values.map(canonical))
        default: value
        }
    }
}

package struct SubscriptionList: Codable, Equatable, Sendable {
    package var subscriptions: [SubscriptionBody]
    /// The value that continues the list; absent on the last page.
    package var next: String?

    package init(subscriptions: [SubscriptionBody], next: String?) {
        self.subscriptions = subscriptions
        self.next = next
    }
}

/// A page of an app's items.
package struct ItemList: Codable, Equatable, Sendable {
    package struct Item: Codable, Equatable, Sendable {
        package var item: String
        /// The number of updates of the item.
        package var version: Int64
        package var updatedAt: String
        /// The number of subscriptions to the item.
        package var subscriptions: Int

        package init(item: String, version: Int64, updatedAt: String, subscriptions: Int) {
            self.item = item
            self.version = version
            self.updatedAt = updatedAt
            self.subscriptions = subscriptions
        }
    }

    package var items: [Item]
    /// The value that continues the list; absent on the last page.
    package var next: String?

    package init(items: [Item], next: String?) {
        self.items = items
        self.next = next
    }
}

/// Why an item subscription fires, or does not fire, with the present values of its items.
package struct ExplanationList: Codable, Equatable, Sendable {
    package struct Item: Codable, Equatable, Sendable {
        package var item: String
        package var version: Int64
        /// `holds`, `does_not_hold`, `no_value`, `no_update`, `triggered` or `device_suspended`.
        package var verdict: String
        package var error: String?
        /// The condition holds if all parts of at least one alternative hold.
        package var alternatives: [[Part]]

        package init(item: String, version: Int64, verdict: String, error: String?, alternatives: [[Part]]) {
            self.item = item
            self.version = version
            self.verdict = verdict
            self.error = error
            self.alternatives = alternatives
        }
    }

    package struct Part: Codable, Equatable, Sendable {
        package var text: String
        /// The compared value.
        package var value: String?
        package var holds: Bool
        package var isIndexed: Bool

        package init(text: String, value: String?, holds: Bool, isIndexed: Bool) {
            self.text = text
            self.value = value
            self.holds = holds
            self.isIndexed = isIndexed
        }
    }

    package var subscription: String
    package var items: [Item]

    package init(subscription: String, items: [Item]) {
        self.subscription = subscription
        self.items = items
    }
}
