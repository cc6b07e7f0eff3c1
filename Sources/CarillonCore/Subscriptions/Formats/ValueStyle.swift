package import CarillonExpression

/// How a placeholder shows a value in the words of its reader.
package enum ValueStyle: Hashable, Sendable {
    /// With so many digits behind the point, or as many as there are.
    case number(digits: Int?)
    case percent(digits: Int?)
    /// Of a currency by its code in ISO 4217.
    case currency(String)
    case date(Length)
    case time(Length)
    case dateTime(Length)

    package enum Length: String, CaseIterable, Sendable {
        case short, medium, long, full
    }

    /// Reads `name` or `name(argument)`; nil for what is no style.
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

/// Who reads a notification: the device's locale and time zone, as it said them.
package struct Reader: Hashable, Sendable {
    package var locale: String?
    package var timeZone: String?

    package init(locale: String? = nil, timeZone: String? = nil) {
        self.locale = locale
        self.timeZone = timeZone
    }
}

/// Shows values in the words of their readers; nil where a value is none that the style shows.
package struct ValueStyles: Sendable {
    package let text: @Sendable (ExpressionValue, ValueStyle, Reader) -> String?

    package init(text: @escaping @Sendable (ExpressionValue, ValueStyle, Reader) -> String?) { self.text = text }
}

extension Substring {
    /// Without the spaces around it.
    fileprivate var trimmed: String {
        var rest = self[...]
        while rest.first == " " { rest = rest.dropFirst() }
        while rest.last == " " { rest = rest.dropLast() }
        return String(rest)
    }
}
