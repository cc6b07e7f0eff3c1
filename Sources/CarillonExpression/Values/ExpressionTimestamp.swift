/// An instant with nanoseconds, from the year 1 to the end of 9999.
public struct ExpressionTimestamp: Sendable, Hashable, Comparable {
    /// The seconds since 1970 in UTC; negative before.
    public let seconds: Int64
    /// The nanoseconds within the second, from 0 to 999,999,999.
    public let nanoseconds: Int32

    static let range: ClosedRange<Int64> = -62_135_596_800...253_402_300_799

    /// Returns nil outside of the years 1 to 9999, and for nanoseconds of a second or more.
    public init?(seconds: Int64, nanoseconds: Int32 = 0) {
        guard Self.range.contains(seconds), (0..<1_000_000_000).contains(nanoseconds) else { return nil }
        self.seconds = seconds
        self.nanoseconds = nanoseconds
    }

    public static func < (one: Self, other: Self) -> Bool {
        (one.seconds, one.nanoseconds) < (other.seconds, other.nanoseconds)
    }

    func adding(_ duration: ExpressionDuration, negated: Bool = false) -> ExpressionTimestamp? {
        let (quotient, remainder) = duration.nanoseconds.quotientAndRemainder(dividingBy: ExpressionDuration.perSecond)
        let sign: Int64 = negated ? -1 : 1
        var seconds = self.seconds + sign * quotient
        var nanoseconds = Int64(self.nanoseconds) + sign * remainder
        if nanoseconds < 0 {
            nanoseconds += ExpressionDuration.perSecond
            seconds -= 1
        } else if nanoseconds >= ExpressionDuration.perSecond {
            nanoseconds -= ExpressionDuration.perSecond
            seconds += 1
        }
        return ExpressionTimestamp(seconds: seconds, nanoseconds: Int32(nanoseconds))
    }

    func subtracting(_ other: ExpressionTimestamp) -> ExpressionDuration? {
        let (whole, overflow) = (seconds - other.seconds).multipliedReportingOverflow(by: ExpressionDuration.perSecond)
        let (sum, isMore) = whole.addingReportingOverflow(Int64(nanoseconds) - Int64(other.nanoseconds))
        return overflow || isMore ? nil : ExpressionDuration(nanoseconds: sum)
    }
}

extension ExpressionTimestamp: CustomStringConvertible {
    /// RFC 3339 in UTC, with the digits of the fraction that are needed.
    public var description: String {
        let date = CivilTime(self, offsetSeconds: 0)
        func padded(_ number: Int, _ width: Int) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, width - text.utf8.count)) + text
        }
        return "\(padded(date.year, 4))-\(padded(date.month, 2))-\(padded(date.day, 2))T"
            + "\(padded(date.hour, 2)):\(padded(date.minute, 2)):\(padded(date.second, 2))"
            + fractionText(Int(nanoseconds)) + "Z"
    }

    /// Parses RFC 3339: `2024-02-29T12:00:00.5+01:00`. Digits after the ninth of a fraction are ignored. Returns nil for
    /// another text, for a day that does not exist, and outside of the years 1 to 9999 in UTC.
    public init?(_ text: String) {
        let bytes = Array(text.utf8)
        func number(_ range: Range<Int>) -> Int? {
            guard range.upperBound <= bytes.count else { return nil }
            var value = 0
            for byte in bytes[range] {
                guard byte >= 0x30, byte <= 0x39 else { return nil }
                value = value * 10 + Int(byte - 0x30)
            }
            return value
        }
        func has(_ character: Unicode.Scalar, at place: Int) -> Bool {
            place < bytes.count && bytes[place] == UInt8(ascii: character)
        }
        guard has("-", at: 4), has("-", at: 7), has("T", at: 10), has(":", at: 13), has(":", at: 16),
            let year = number(0..<4), let month = number(5..<7), let day = number(8..<10),
            let hour = number(11..<13), let minute = number(14..<16), let second = number(17..<19),
            (1...12).contains(month), day >= 1, day <= CivilTime.days(ofMonth: month, in: year),
            hour < 24, minute < 60, second < 60
        else { return nil }
        var place = 19
        var nanoseconds = 0
        if has(".", at: place) {
            let digits = bytes[(place + 1)...].prefix { $0 >= 0x30 && $0 <= 0x39 }
            guard !digits.isEmpty else { return nil }
            for index in 0..<9 {
                nanoseconds = nanoseconds * 10 + (index < digits.count ? Int(digits[digits.startIndex + index] - 0x30) : 0)
            }
            place += 1 + digits.count
        }
        var offset = 0
        if !(has("Z", at: place) && place + 1 == bytes.count) {
            guard has("+", at: place) || has("-", at: place), has(":", at: place + 3), place + 6 == bytes.count,
                let hours = number(place + 1..<place + 3), let minutes = number(place + 4..<place + 6), hours < 24,
                minutes < 60
            else { return nil }
            offset = (hours * 3600 + minutes * 60) * (has("-", at: place) ? -1 : 1)
        }
        let seconds = CivilTime.daysSinceEpoch(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset
        self.init(seconds: Int64(seconds), nanoseconds: Int32(nanoseconds))
    }
}
