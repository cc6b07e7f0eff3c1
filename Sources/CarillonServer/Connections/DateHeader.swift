import CarillonCore

/// The value of "Date" (RFC 9110 section 6.6.1), which is written once a second.
final class DateHeader {
    private let time: TimeSource
    private var second: Int64 = .min
    private var written = ""

    init(time: TimeSource) { self.time = time }

    var text: String {
        let second = time.now().seconds
        if second != self.second {
            self.second = second
            written = Self.text(second)
        }
        return written
    }

    /// Returns a text such as `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110 section 5.6.7), for times from 1970 on.
    static func text(_ seconds: Int64) -> String {
        let (days, time) = Int(seconds).quotientAndRemainder(dividingBy: 86_400)
        let (year, month, day) = date(days)
        let clock = [time / 3600, time / 60 % 60, time % 60].map(twoDigits).joined(separator: ":")
        return "\(weekdays[(days + 4) % 7]), \(twoDigits(day)) \(months[month]) \(year) \(clock) GMT"
    }

    /// Returns the Gregorian date of a day since 1970. Years are counted from March, so that the leap day is the last day of its
    /// year.
    private static func date(_ days: Int) -> (year: Int, month: Int, day: Int) {
        let (era, day) = (days + 719_468).quotientAndRemainder(dividingBy: 146_097)
        let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365
        let dayOfYear = day - (365 * year + year / 4 - year / 100)
        let march = (5 * dayOfYear + 2) / 153
        let month = (march + 2) % 12
        return (era * 400 + year + (month < 2 ? 1 : 0), month, dayOfYear - (153 * march + 2) / 5 + 1)
    }

    private static func twoDigits(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }

    private static let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]
}
