package import CarillonWire

/// Requests approvals from the approval hooks of apps. Apps without an approval hook allow everything.
package protocol ApprovalHooks: RegistrationApproval, SubscriptionApproval {
    /// - Parameter serial: The serial number of the app; nil if the caller does not have it. A lookup by the name can read a list of apps.
    /// - Throws: ``Refusal`` if the approval hook refuses or does not answer in time.
    func ask(_ question: ApprovalQuestion, of app: AppID, serial: AppSerial?) async throws
}

extension ApprovalHooks {
    package func ask(_ question: RegistrationQuestion, of app: AppID, serial: AppSerial?) async throws {
        try await ask(ApprovalQuestion.device(question), of: app, serial: serial)
    }

    package func ask(_ question: SubscriptionQuestion, of app: AppID, serial: AppSerial) async throws {
        try await ask(ApprovalQuestion.subscription(question), of: app, serial: serial)
    }
}

/// A request that an approval hook can refuse.
package enum ApprovalQuestion: Sendable {
    case device(RegistrationQuestion)
    case subscription(SubscriptionQuestion)

    /// The device; nil if it is not registered yet.
    package var device: DeviceID? {
        switch self {
        case .device(let question): question.device
        case .subscription(let question): question.device
        }
    }
}

/// Allows everything. This is for apps and tests without an approval hook.
package struct NoApprovalHooks: ApprovalHooks {
    package init() {}
    package func hasHook(_ app: AppSerial) -> Bool { false }
    package func ask(_ question: ApprovalQuestion, of app: AppID, serial: AppSerial?) {}
}
