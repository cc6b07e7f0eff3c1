/// Reads the dates of HTTP header fields, in the three forms of RFC 9110 section 5.6.7.
package enum HTTPDate {
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    private static let weekdays: Set<Substring> = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]

    /// Returns the seconds since 1970; nil if the text is not an HTTP date. The weekday is not compared with the date.
    ///
    /// - Parameter now: The present time, in seconds since 1970. A two-digit year is at most 50 years after it (RFC 9110).
    package static func seconds(_ text: String, at now: Int64) -> Int64? {
        let parts = text.split(separator: " ")
        guard let weekday = parts.first?.prefix(3), weekdays.contains(weekday) else { return nil }
        switch parts.count {
        // Sun, 06 Nov 1994 08:49:37 GMT
        case 6 where parts[5] == "GMT":
            return seconds(number(parts[3], digits: 4...4), parts[2], parts[1], parts[4])
        // Sun Nov  6 08:49:37 1994
        case 5:
            return seconds(number(parts[4], digits: 4...4), parts[1], parts[2], parts[3])
        // Sunday, 06-Nov-94 08:49:37 GMT
        case 4 where parts[3] == "GMT":
            let date = parts[1].split(separator: "-")
            guard date.count == 3, let short = number(date[2], digits: 2...2) else { return nil }
            let present = CivilDate.date(ofDay: CivilDate.floorDivision(now, by: 86_400).quotient).year
            var year = present - present % 100 + 100 + short
            while year > present + 50 { year -= 100 }
            return seconds(year, date[1], date[0], parts[2])
        default:
            return nil
        }
    }

    private static func seconds(_ year: Int64?, _ name: Substring, _ day: Substring, _ time: Substring) -> Int64? {
        let times = time.split(separator: ":", omittingEmptySubsequences: false)
        guard let year, let index = months.firstIndex(of: String(name)), let day = number(day, digits: 1...2),
            times.count == 3, let hour = number(times[0], digits: 2...2), let minute = number(times[1], digits: 2...2),
            let second = number(times[2], digits: 2...2), hour < 24, minute < 60, second <= 60
        else { return nil }
        let month = Int64(index) + 1
        guard (1...CivilDate.days(ofMonth: month, in: year)).contains(day) else { return nil }
        return CivilDate.day(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second
    }

    private static func number(_ text: Substring, digits: ClosedRange<Int>) -> Int64? {
        guard digits.contains(text.utf8.count),
            text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
        else { return nil }
        return Int64(text)
    }
}
