import CarillonCore
import CarillonExpression
import Foundation
import Synchronization

/// Formats values in the language and format of their readers, with the system's locale data.
enum FoundationStyles {
    static let styles = ValueStyles { value, style, reader in text(value, style, reader) }

    /// The locale for a device that reported none.
    private static let standardLocale = "en_US"
    private static let locales = Mutex<[String: Locale]>([:])
    private static let mostLocales = 1000

    private static func locale(_ name: String) -> Locale {
        locales.withLock { locales in
            if let known = locales[name] { return known }
            if locales.count >= mostLocales { locales.removeAll() }
            let locale = Locale(identifier: name)
            locales[name] = locale
            return locale
        }
    }

    private static func text(_ value: ExpressionValue, _ style: ValueStyle, _ reader: Reader) -> String? {
        let locale = locale(reader.locale ?? standardLocale)
        switch style {
        case .number(let digits):
            guard let number = number(value) else { return nil }
            let format = Decimal.FormatStyle(locale: locale)
            return number.formatted(digits.map { format.precision(.fractionLength($0)) } ?? format)
        case .percent(let digits):
            guard let number = number(value) else { return nil }
            let format = Decimal.FormatStyle.Percent(locale: locale)
            return number.formatted(format.precision(.fractionLength(digits ?? 0)))
        case .currency(let code):
            guard let number = number(value) else { return nil }
            return number.formatted(Decimal.FormatStyle.Currency(code: code, locale: locale))
        case .date(let length): return moment(value, date: length, time: nil, locale, reader)
        case .time(let length): return moment(value, date: nil, time: length, locale, reader)
        case .dateTime(let length): return moment(value, date: length, time: .short, locale, reader)
        }
    }

    /// Converts through the decimal digits, so that 0.1 does not become 0.1000000000000000055.
    private static func number(_ value: ExpressionValue) -> Decimal? {
        switch value {
        case .int(let number): Decimal(number)
        case .uint(let number): Decimal(number)
        case .double(let number) where number.isFinite: Decimal(string: String(number), locale: Locale(identifier: "en_US"))
        default: nil
        }
    }

    private static func moment(
        _ value: ExpressionValue, date: ValueStyle.Length?, time: ValueStyle.Length?, _ locale: Locale, _ reader: Reader
    ) -> String? {
        guard case .timestamp(let moment) = value else { return nil }
        var format = Date.FormatStyle(
            date: date.map(dateStyle) ?? .omitted, time: time.map(timeStyle) ?? .omitted, locale: locale)
        format.timeZone = reader.timeZone.flatMap(TimeZones.zone) ?? .gmt
        return Date(timeIntervalSince1970: Double(moment.seconds)).formatted(format)
    }

    private static func dateStyle(_ length: ValueStyle.Length) -> Date.FormatStyle.DateStyle {
        switch length {
        case .short: .numeric
        case .medium: .abbreviated
        case .long: .long
        case .full: .complete
        }
    }

    private static func timeStyle(_ length: ValueStyle.Length) -> Date.FormatStyle.TimeStyle {
        switch length {
        case .short: .shortened
        case .medium: .standard
        case .long, .full: .complete
        }
    }
}
