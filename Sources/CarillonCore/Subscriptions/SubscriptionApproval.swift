package import CarillonWire

/// A new or changed subscription that the app's approval hook allows or refuses.
package struct SubscriptionQuestion: Sendable {
    package var device: DeviceID
    package var user: UserID?
    /// The subscription that changes; nil for a new one.
    package var subscription: SubscriptionID?
    package var definition: Subscription.Definition
}

/// Calls the approval hooks of apps for subscriptions of their devices.
package protocol SubscriptionApproval: Sendable {
    /// Whether the app has an approval hook for subscriptions. Without a hook every subscription is allowed.
    func hasHook(_ app: AppSerial) async throws -> Bool
    /// - Throws: ``Refusal`` if the hook refuses the subscription or does not answer in time.
    func ask(_ question: SubscriptionQuestion, of app: AppID, serial: AppSerial) async throws
}
