import CarillonCore
import CarillonServer

/// The kinds of settings whose value and default are one member of ``ServerSettings``.
extension ServeSetting {
    typealias Path<Value> = any WritableKeyPath<ServerSettings, Value> & Sendable

    private static let defaults = ServerSettings(dataDirectory: "")

    /// Times that concern one connection.
    static let connectionSeconds = 1...86_400
    /// Times for which data is kept: up to 100 years.
    static let keepingSeconds = 1...3_153_600_000
    static let counts = 1...1_000_000_000
    static let byteCounts = 1...(1 << 60)

    static func number(
        _ name: String, _ path: Path<Int>, _ range: ClosedRange<Int>, _ description: String
    ) -> ServeSetting {
        let standard = String(defaults[keyPath: path])
        return ServeSetting(name, words(range), standard: standard, description) { text, settings in
            guard let number = Int(text), range.contains(number) else { return false }
            settings[keyPath: path] = number
            return true
        }
    }

    static func longNumber(
        _ name: String, _ path: Path<Int64>, _ range: ClosedRange<Int>, _ description: String
    ) -> ServeSetting {
        let standard = String(defaults[keyPath: path])
        return ServeSetting(name, words(range), standard: standard, description) { text, settings in
            guard let number = Int(text), range.contains(number) else { return false }
            settings[keyPath: path] = Int64(number)
            return true
        }
    }

    /// - Parameter standard: A description of the default, if it depends on other settings.
    static func optionalNumber(
        _ name: String, _ path: Path<Int?>, _ range: ClosedRange<Int>, standard: String? = nil, _ description: String
    ) -> ServeSetting {
        let standard = standard ?? defaults[keyPath: path].map { String($0) }
        return ServeSetting(name, words(range), standard: standard, description) { text, settings in
            guard let number = Int(text), range.contains(number) else { return false }
            settings[keyPath: path] = number
            return true
        }
    }

    /// A rate limit: the number per second, and after a colon the number at once. The default of the second is ten seconds'
    /// worth.
    static func rate(_ name: String, _ path: Path<Rate?>, _ description: String) -> ServeSetting {
        let standard = defaults[keyPath: path].map { "\($0.perSecond):\($0.burst)" } ?? "off"
        return ServeSetting(
            name, "PER_SECOND:AT_ONCE, PER_SECOND or off", standard: standard, description
        ) { text, settings in
            if text == "off" {
                settings[keyPath: path] = nil
                return true
            }
            let parts = text.split(separator: ":", omittingEmptySubsequences: false).map { Int($0) ?? 0 }
            guard (1...2).contains(parts.count), parts.allSatisfy(counts.contains) else { return false }
            let burst = parts.count == 2 ? parts[1] : min(10 * parts[0], counts.upperBound)
            settings[keyPath: path] = Rate(perSecond: parts[0], burst: burst)
            return true
        }
    }

    static func onOff(_ name: String, _ path: Path<Bool>, _ description: String) -> ServeSetting {
        let standard = defaults[keyPath: path] ? "on" : "off"
        return ServeSetting(name, "on or off", standard: standard, description) { text, settings in
            guard text == "on" || text == "off" else { return false }
            settings[keyPath: path] = text == "on"
            return true
        }
    }

    /// A text that is not checked.
    static func text(
        _ name: String, _ path: Path<String?>, _ values: String, isOption: Bool = false, _ description: String
    ) -> ServeSetting {
        ServeSetting(name, values, isOption: isOption, description) { text, settings in
            settings[keyPath: path] = text
            return true
        }
    }

    /// A host and a port.
    static func place(
        _ name: String, standard: String? = nil, _ description: String,
        set: @escaping @Sendable (_ place: HostPort, _ settings: inout ServerSettings) -> Void
    ) -> ServeSetting {
        ServeSetting(name, "HOST:PORT", standard: standard, description) { text, settings in
            set(try HostPort(text), &settings)
            return true
        }
    }

    /// An option that is on or off. ``ServeOptions`` applies its effect, which can depend on several options.
    static func flag(_ name: String, _ description: String) -> ServeSetting {
        ServeSetting(name, "true or false", standard: "`false`", isOption: true, description) { text, _ in
            truth(text) != nil
        }
    }

    /// Reads the value of an option that is on or off.
    static func truth(_ text: String) -> Bool? {
        switch text {
        case "false", "0", "no": false
        case "true", "1", "yes": true
        default: nil
        }
    }

    private static func words(_ range: ClosedRange<Int>) -> String {
        "a whole number from \(range.lowerBound) to \(range.upperBound)"
    }
}
