/// Moments as the API writes them (RFC 3339, in UTC, with milliseconds).
///
/// All arithmetic is on integers: a floating-point number of seconds loses a millisecond here and there.
package enum Timestamp3339 {
    package static func text(_ milliseconds: Int64) -> String {
        let (days, rest) = floorDivision(milliseconds, by: millisecondsPerDay)
        let (year, month, day) = date(ofDay: days)
        let seconds = rest / 1000
        let digits = [
            padded(year, 4), "-", padded(month, 2), "-", padded(day, 2), "T", padded(seconds / 3600, 2), ":",
            padded(seconds / 60 % 60, 2), ":", padded(seconds % 60, 2), ".", padded(rest % 1000, 3), "Z",
        ]
        return digits.joined()
    }

    /// Returns the milliseconds since 1970; nil for a text that is not an RFC 3339 moment.
    ///
    /// The fraction of the second can be left out. Digits after the third are dropped. The zone is `Z` or an offset such as `+01:00`.
    package static func milliseconds(_ text: String) -> Int64? {
        var rest = Array(text.utf8)[...]
        guard let year = number(of: 4, in: &rest), skip("-", in: &rest), let month = number(of: 2, in: &rest),
            skip("-", in: &rest), let day = number(of: 2, in: &rest), skip("T", in: &rest) || skip("t", in: &rest),
            let hour = number(of: 2, in: &rest), skip(":", in: &rest), let minute = number(of: 2, in: &rest),
            skip(":", in: &rest), let second = number(of: 2, in: &rest), (1...12).contains(month),
            (1...days(ofMonth: month, in: year)).contains(day), hour < 24, minute < 60, second < 60,
            let fraction = fraction(in: &rest), let offset = offset(in: &rest), rest.isEmpty
        else { return nil }
        let seconds = self.day(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset
        return seconds * 1000 + fraction
    }

    // MARK: Parts of a text

    private static func padded(_ number: Int64, _ width: Int) -> String {
        let digits = String(number.magnitude)
        let zeros = String(repeating: "0", count: max(0, width - digits.utf8.count))
        return (number < 0 ? "-" : "") + zeros + digits
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

    private static func number(of digits: Int, in text: inout ArraySlice<UInt8>) -> Int64? {
        let bytes = text.prefix(digits)
        guard bytes.count == digits, bytes.allSatisfy(isDigit) else { return nil }
        text = text.dropFirst(digits)
        return bytes.reduce(0) { $0 * 10 + Int64($1 - UInt8(ascii: "0")) }
    }

    private static func skip(_ character: Unicode.Scalar, in text: inout ArraySlice<UInt8>) -> Bool {
        guard text.first == UInt8(ascii: character) else { return false }
        text = text.dropFirst()
        return true
    }

    /// In milliseconds.
    private static func fraction(in text: inout ArraySlice<UInt8>) -> Int64? {
        guard skip(".", in: &text) else { return 0 }
        let digits = text.prefix(while: isDigit)
        guard !digits.isEmpty else { return nil }
        text = text.dropFirst(digits.count)
        let first = Array(digits.prefix(3)) + Array(repeating: UInt8(ascii: "0"), count: max(0, 3 - digits.count))
        return first.reduce(0) { $0 * 10 + Int64($1 - UInt8(ascii: "0")) }
    }

    /// In seconds.
    private static func offset(in text: inout ArraySlice<UInt8>) -> Int64? {
        if skip("Z", in: &text) || skip("z", in: &text) { return 0 }
        let isNegative = text.first == UInt8(ascii: "-")
        guard skip("+", in: &text) || skip("-", in: &text), let hours = number(of: 2, in: &text), skip(":", in: &text),
            let minutes = number(of: 2, in: &text), hours < 24, minutes < 60
        else { return nil }
        return (hours * 3600 + minutes * 60) * (isNegative ? -1 : 1)
    }

    // MARK: The calendar

    private static let millisecondsPerDay: Int64 = 86_400_000
    /// 400 years have the same number of days each time.
    private static let daysPerEra: Int64 = 146_097
    /// From 1 March of the year 0 to 1 January 1970. Eras and years begin in March, so that a leap day is the last of its year.
    private static let daysToEpoch: Int64 = 719_468

    private static func floorDivision(_ number: Int64, by divisor: Int64) -> (quotient: Int64, remainder: Int64) {
        let (quotient, remainder) = number.quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }

    private static func days(ofMonth month: Int64, in year: Int64) -> Int64 {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    /// Returns the number of a date's day, counted from 1 January 1970.
    private static func day(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let (era, yearOfEra) = floorDivision(month > 2 ? year : year - 1, by: 400)
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * daysPerEra + dayOfEra - daysToEpoch
    }

    private static func date(ofDay day: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let (era, dayOfEra) = floorDivision(day + daysToEpoch, by: daysPerEra)
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shifted = (5 * dayOfYear + 2) / 153
        let month = shifted < 10 ? shifted + 3 : shifted - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * shifted + 2) / 5 + 1)
    }
}
