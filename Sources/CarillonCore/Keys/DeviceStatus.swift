/// Whether a device may be pushed to through its vendor. Live connections and polls do not ask.
package enum DeviceStatus: Equatable, Sendable {
    case registered
    case suspended(SuspensionReason)

    /// On the wire.
    package var name: String { self == .registered ? "registered" : "suspended" }

    /// Nil of one that is registered.
    package var reason: SuspensionReason? {
        guard case .suspended(let reason) = self else { return nil }
        return reason
    }
}

/// Why a device is suspended.
package enum SuspensionReason: String, CaseIterable, Sendable {
    /// Another install of the app registered with its push token.
    case tokenTaken = "token_taken"
    /// The vendor's push service says that the token leads nowhere.
    case tokenDead = "token_dead"
    /// An operator wanted it so.
    case byOperator = "operator"

    /// As the store numbers it in an envelope.
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

    /// Whether the device ends it by registering again.
    package var endsWithRegistration: Bool { self != .byOperator }
}
