package import CarillonWire

/// A new or changed subscription, which the app can refuse.
package struct SubscriptionQuestion: Sendable {
    package var device: DeviceID
    package var user: UserID?
    /// The subscription; nil for a new one.
    package var subscription: SubscriptionID?
    package var definition: Subscription.Definition
}

/// Asks apps about subscriptions of their devices.
package protocol SubscriptionApproval: Sendable {
    /// Whether the app is asked. If not, the app allows everything.
    func isAsked(_ app: AppSerial) async throws -> Bool
    /// - Throws: ``Refusal`` if the app refuses, or if it did not answer in time.
    func ask(_ question: SubscriptionQuestion, of app: AppID, serial: AppSerial) async throws
}
