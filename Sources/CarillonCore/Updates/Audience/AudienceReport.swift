import CarillonExpression

/// The result of evaluating an audience for the devices of an app: the number of matching devices, and the errors for others.
package struct AudienceReport: Equatable, Sendable {
    /// The number of evaluated devices that belong to the audience.
    package private(set) var matching = 0
    package private(set) var looked = 0
    /// The errors that evaluations ended with, with the number of devices. The most frequent cause is a parameter that the device
    /// does not report.
    package private(set) var errors: [String: Int] = [:]
    /// The number of all devices, if not all were evaluated.
    package var all: Int?

    package init() {}

    /// The largest number of different errors. Further errors are counted together.
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

    /// The number of matching devices, projected from the evaluated devices to all.
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
    /// Returns whether a device belongs to the audience. Without an audience every device does.
    ///
    /// - Parameter source: The source of the audience.
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

/// The result of evaluating an audience for one device.
package struct DeviceReport: Equatable, Sendable {
    package var profile: String
    package var verdict: AudienceVerdict
    /// The names of the parameters that the device reports.
    package var reportedParameters: [String]
}
