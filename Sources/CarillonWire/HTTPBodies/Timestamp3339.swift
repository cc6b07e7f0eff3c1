import CarillonBasics

/// Moments in the form of the API (RFC 3339, in UTC, with milliseconds).
///
/// All arithmetic is on integers, because a floating-point number of seconds can lose a millisecond.
package enum Timestamp3339 {
    package static func text(_ milliseconds: Int64) -> String {
        let (days, rest) = CivilDate.floorDivision(milliseconds, by: millisecondsPerDay)
        let (year, month, day) = CivilDate.date(ofDay: days)
        let seconds = rest / 1000
        let digits = [
            padded(year, 4), "-", padded(month, 2), "-", padded(day, 2), "T", padded(seconds / 3600, 2), ":",
            padded(seconds / 60 % 60, 2), ":", padded(seconds % 60, 2), ".", padded(rest % 1000, 3), "Z",
        ]
        return digits.joined()
    }

    /// Returns the milliseconds since 1970; nil if the text is not an RFC 3339 moment.
    ///
    /// The fraction of the second is optional. Digits after the third are dropped. The zone is `Z` or an offset such as `+01:00`.
    package static func milliseconds(_ text: String) -> Int64? {
        var rest = Array(text.utf8)[...]
        guard let year = number(of: 4, in: &rest), skip("-", in: &rest), let month = number(of: 2, in: &rest),
            skip("-", in: &rest), let day = number(of: 2, in: &rest), skip("T", in: &rest) || skip("t", in: &rest),
            let hour = number(of: 2, in: &rest), skip(":", in: &rest), let minute = number(of: 2, in: &rest),
            skip(":", in: &rest), let second = number(of: 2, in: &rest), (1...12).contains(month),
            (1...CivilDate.days(ofMonth: month, in: year)).contains(day), hour < 24, minute < 60, second < 60,
            let fraction = fraction(in: &rest), let offset = offset(in: &rest), rest.isEmpty
        else { return nil }
        let seconds = CivilDate.day(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset
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

    /// Reads the fraction of a second, in milliseconds.
    private static func fraction(in text: inout ArraySlice<UInt8>) -> Int64? {
        guard skip(".", in: &text) else { return 0 }
        let digits = text.prefix(while: isDigit)
        guard !digits.isEmpty else { return nil }
        text = text.dropFirst(digits.count)
        let first = Array(digits.prefix(3)) + Array(repeating: UInt8(ascii: "0"), count: max(0, 3 - digits.count))
        return first.reduce(0) { $0 * 10 + Int64($1 - UInt8(ascii: "0")) }
    }

    /// Reads the offset of the zone, in seconds.
    private static func offset(in text: inout ArraySlice<UInt8>) -> Int64? {
        if skip("Z", in: &text) || skip("z", in: &text) { return 0 }
        let isNegative = text.first == UInt8(ascii: "-")
        guard skip("+", in: &text) || skip("-", in: &text), let hours = number(of: 2, in: &text), skip(":", in: &text),
            let minutes = number(of: 2, in: &text), hours < 24, minutes < 60
        else { return nil }
        return (hours * 3600 + minutes * 60) * (isNegative ? -1 : 1)
    }

    private static let millisecondsPerDay: Int64 = 86_400_000
}
