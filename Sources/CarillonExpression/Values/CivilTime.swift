/// The date and time of an instant, by the proleptic Gregorian calendar.
struct CivilTime {
    let year: Int
    /// From 1.
    let month: Int
    let day: Int
    let hour: Int
    let minute: Int
    let second: Int
    /// From 0, which is Sunday.
    let dayOfWeek: Int
    /// From 0.
    let dayOfYear: Int

    init(_ timestamp: ExpressionTimestamp, offsetSeconds: Int) {
        let local = Int(timestamp.seconds) + offsetSeconds
        let days = local.flooredQuotient(by: 86_400)
        let rest = local - days * 86_400
        (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60)
        (year, month, day) = Self.date(daysSinceEpoch: days)
        dayOfYear = days - Self.daysSinceEpoch(year, 1, 1)
        // The first of January 1970 was a Thursday.
        dayOfWeek = (days + 4) - (days + 4).flooredQuotient(by: 7) * 7
    }

    static func isLeap(_ year: Int) -> Bool { year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) }

    static func days(ofMonth month: Int, in year: Int) -> Int {
        switch month {
        case 2: isLeap(year) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    /// Counts in years that begin in March, so that the leap day is the last day, and in eras of 400 years, which are all
    /// alike.
    static func daysSinceEpoch(_ year: Int, _ month: Int, _ day: Int) -> Int {
        let shifted = month > 2 ? year : year - 1
        let era = shifted.flooredQuotient(by: 400)
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    private static func date(daysSinceEpoch days: Int) -> (year: Int, month: Int, day: Int) {
        let shifted = days + 719_468
        let era = shifted.flooredQuotient(by: 146_097)
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * monthFromMarch + 2) / 5 + 1)
    }
}

extension Int {
    func flooredQuotient(by divisor: Int) -> Int {
        let quotient = self / divisor
        return self % divisor != 0 && (self < 0) != (divisor < 0) ? quotient - 1 : quotient
    }
}
