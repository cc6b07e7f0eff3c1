package import CarillonWire

/// Asks apps' own servers whether something may be. Apps that name no server allow everything.
package protocol Vetoes: RegistrationApproval, SubscriptionApproval {
    /// - Parameter serial: The serial number of the app; nil if the caller does not know it. A lookup by the name can read a list of apps.
    /// - Throws: ``Refusal`` if it may not, or the app's server did not say so in time.
    func ask(_ question: VetoQuestion, of app: AppID, serial: AppSerial?) async throws
}

extension Vetoes {
    package func ask(_ question: RegistrationQuestion, of app: AppID, serial: AppSerial?) async throws {
        try await ask(VetoQuestion.device(question), of: app, serial: serial)
    }

    package func ask(_ question: SubscriptionQuestion, of app: AppID, serial: AppSerial) async throws {
        try await ask(VetoQuestion.subscription(question), of: app, serial: serial)
    }
}

/// What an app may refuse.
package enum VetoQuestion: Sendable {
    case device(RegistrationQuestion)
    case subscription(SubscriptionQuestion)

    /// Nil of one that is not registered yet.
    package var device: DeviceID? {
        switch self {
        case .device(let question): question.device
        case .subscription(let question): question.device
        }
    }
}

/// Of those who ask nobody.
package struct NoVetoes: Vetoes {
    package init() {}
    package func isAsked(_ app: AppSerial) -> Bool { false }
    package func ask(_ question: VetoQuestion, of app: AppID, serial: AppSerial?) {}
}
