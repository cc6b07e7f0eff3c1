package import CarillonExpression

/// The style in which a placeholder shows a value in the reader's locale.
package enum ValueStyle: Hashable, Sendable {
    /// A number with this number of decimal places; nil shows as many as the value has.
    case number(digits: Int?)
    case percent(digits: Int?)
    /// An amount of a currency with this ISO 4217 code.
    case currency(String)
    case date(Length)
    case time(Length)
    case dateTime(Length)

    package enum Length: String, CaseIterable, Sendable {
        case short, medium, long, full
    }

    /// Parses `name` or `name(argument)`. Returns nil for an unknown style.
    init?(_ text: String) {
        let parts = text[...].trimmed.split(separator: "(", maxSplits: 1, omittingEmptySubsequences: false)
        var argument: String?
        if parts.count == 2 {
            guard parts[1].hasSuffix(")") else { return nil }
            argument = parts[1].dropLast().trimmed
        }
        switch (parts[0].trimmed, argument) {
        case ("number", let digits): self = .number(digits: digits.flatMap(Self.digits))
        case ("percent", let digits): self = .percent(digits: digits.flatMap(Self.digits))
        case ("currency", let code?) where code.utf8.count == 3 && code.utf8.allSatisfy({ (65...90).contains($0) }):
            self = .currency(code)
        case ("date", let length): self = .date(length.flatMap(Length.init) ?? .medium)
        case ("time", let length): self = .time(length.flatMap(Length.init) ?? .short)
        case ("dateTime", let length): self = .dateTime(length.flatMap(Length.init) ?? .medium)
        default: return nil
        }
        guard let argument else { return }
        switch self {
        case .number, .percent: if Self.digits(argument) == nil { return nil }
        case .date, .time, .dateTime: if Length(rawValue: argument) == nil { return nil }
        case .currency: break
        }
    }

    private static func digits(_ text: String) -> Int? { Int(text).flatMap { (0...15).contains($0) ? $0 : nil } }
}

/// The locale and the time zone that the device of a notification's reader reported.
package struct Reader: Hashable, Sendable {
    package var locale: String?
    package var timeZone: String?

    package init(locale: String? = nil, timeZone: String? = nil) {
        self.locale = locale
        self.timeZone = timeZone
    }
}

/// Formats values in the locale of a reader. Returns nil if the style cannot show the value.
package struct ValueStyles: Sendable {
    package let text: @Sendable (ExpressionValue, ValueStyle, Reader) -> String?

    package init(text: @escaping @Sendable (ExpressionValue, ValueStyle, Reader) -> String?) { self.text = text }
}

extension Substring {
    /// The text without leading and trailing spaces.
    fileprivate var trimmed: String {
        var rest = self[...]
        while rest.first == " " { rest = rest.dropFirst() }
        while rest.last == " " { rest = rest.dropLast() }
        return String(rest)
    }
}
