package import CarillonWire

/// Asks apps' own servers whether something may be. Apps that name no server allow everything.
package protocol Vetoes: Sendable {
    /// Whether an app names a server that is asked.
    func isAsked(_ app: AppSerial) async throws -> Bool
    /// - Parameter serial: The serial number of the app; nil if the caller does not know it. A lookup by the name can read a list of apps.
    /// - Throws: ``Refusal`` if it may not, or the app's server did not say so in time.
    func ask(_ question: VetoQuestion, of app: AppID, serial: AppSerial?) async throws
}

extension Vetoes {
    package func ask(_ question: VetoQuestion, of app: AppID) async throws {
        try await ask(question, of: app, serial: nil)
    }
}

/// What an app may refuse.
package enum VetoQuestion: Sendable {
    /// A device registers.
    case registration(DeviceProfile?, UserWord?, isAnonymous: Bool)
    /// A device has another push token, or its first.
    case token(DeviceID, DeviceProfile, UserID?)
    /// A subscription is made, or changed.
    case subscription(DeviceID, UserID?, SubscriptionID?, Subscription.Definition)

    /// Nil of one that is not registered yet.
    package var device: DeviceID? {
        switch self {
        case .registration: nil
        case .token(let device, _, _), .subscription(let device, _, _, _): device
        }
    }
}

/// Of those who ask nobody.
package struct NoVetoes: Vetoes {
    package init() {}
    package func isAsked(_ app: AppSerial) -> Bool { false }
    package func ask(_ question: VetoQuestion, of app: AppID, serial: AppSerial?) {}
}
