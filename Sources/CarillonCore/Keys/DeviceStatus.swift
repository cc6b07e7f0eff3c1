/// Whether pushes can be sent to a device. Live connections and polls do not depend on this.
package enum DeviceStatus: Equatable, Sendable {
    case registered
    case suspended(SuspensionReason)

    /// The name in the protocol.
    package var name: String { self == .registered ? "registered" : "suspended" }

    /// The reason of the suspension; nil for a registered device.
    package var reason: SuspensionReason? {
        guard case .suspended(let reason) = self else { return nil }
        return reason
    }
}

/// The reason why a device is suspended.
package enum SuspensionReason: String, CaseIterable, Sendable {
    /// Another installation of the app registered with the device's push token.
    case tokenTaken = "token_taken"
    /// The gateway reports that the push token is invalid.
    case tokenDead = "token_dead"
    /// An operator suspended the device.
    case byOperator = "operator"

    /// The number in the store and in envelopes.
    package var number: Int {
        switch self {
        case .tokenTaken: 1
        case .tokenDead: 2
        case .byOperator: 3
        }
    }

    package init?(number: Int) {
        guard let reason = Self.allCases.first(where: { $0.number == number }) else { return nil }
        self = reason
    }

    /// Whether the suspension ends when the device registers again.
    package var endsWithRegistration: Bool { self != .byOperator }
}
