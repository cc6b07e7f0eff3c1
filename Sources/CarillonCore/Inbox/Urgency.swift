/// The urgency of a message (RFC 8030 section 5.3).
package enum Urgency: String, CaseIterable, Sendable {
    case veryLow = "very-low"
    case low
    case normal
    case high

    /// The number in the store.
    package var number: Int {
        switch self {
        case .veryLow: 0
        case .low: 1
        case .normal: 2
        case .high: 3
        }
    }

    package init?(number: Int) {
        guard Self.allCases.indices.contains(number) else { return nil }
        self = Self.allCases[number]
    }
}
