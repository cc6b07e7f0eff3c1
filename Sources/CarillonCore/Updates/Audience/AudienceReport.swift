import CarillonExpression

/// How an audience and the devices of an app come together: how many belong to it, and why others cannot be asked.
package struct AudienceReport: Equatable, Sendable {
    /// Devices that belong to it.
    package private(set) var matching = 0
    package private(set) var looked = 0
    /// What kept devices from being asked, by how many: mostly a parameter that they do not say.
    package private(set) var errors: [String: Int] = [:]
    /// How many there are, where not all were looked at.
    package var all: Int?

    package init() {}

    /// The most errors that are told apart; the rest is counted as one.
    private static let mostErrors = 20
    private static let otherErrors = "other errors"

    package mutating func note(_ verdict: AudienceVerdict) {
        looked += 1
        switch verdict {
        case .belongs: matching += 1
        case .stranger: break
        case .error(let text):
            let isKnown = errors[text] != nil || errors.count < Self.mostErrors
            errors[isKnown ? text : Self.otherErrors, default: 0] += 1
        }
    }

    /// How many belong to it of all, projected from those that were looked at.
    package var count: Int {
        guard let all, looked > 0 else { return matching }
        return Int((Double(matching) / Double(looked) * Double(max(all, looked))).rounded())
    }
}

/// Whether one device belongs to an audience.
package enum AudienceVerdict: Equatable, Sendable {
    case belongs
    case stranger
    case error(String)
}

extension Optional where Wrapped == Audience {
    /// Without an audience every device belongs.
    ///
    /// - Parameter source: Of the audience.
    func verdict(for facts: DeviceFacts, source: String?) -> AudienceVerdict {
        guard let self else { return .belongs }
        do {
            return try self.holds(for: facts) ? .belongs : .stranger
        } catch {
            guard error.code == .unbound, let source else { return .error("\(error)") }
            let name = source.unicodeScalars.dropFirst(error.position.offset).prefix { scalar in
                scalar == "_" || scalar.isASCII && scalar.properties.isAlphabetic || ("0"..."9").contains(scalar)
            }
            return .error("\(error) (\(String(name)))")
        }
    }
}

/// One device, as an audience finds it.
package struct DeviceReport: Equatable, Sendable {
    package var profile: String
    package var verdict: AudienceVerdict
    /// The parameters that it says.
    package var says: [String]
}
