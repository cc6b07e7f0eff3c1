/// Numbers the days of the Gregorian calendar from 1 January 1970. All arithmetic is on integers.
package enum CivilDate {
    /// The number of days in 400 years, which is constant.
    private static let daysPerEra: Int64 = 146_097
    /// The number of days from 1 March of the year 0 to 1 January 1970. Eras and years begin in March, so that a leap day is the
    /// last day of its year.
    private static let daysToEpoch: Int64 = 719_468

    /// Returns the quotient rounded down, and a remainder that is never negative.
    package static func floorDivision(_ number: Int64, by divisor: Int64) -> (quotient: Int64, remainder: Int64) {
        let (quotient, remainder) = number.quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }

    package static func days(ofMonth month: Int64, in year: Int64) -> Int64 {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    /// Returns the day number of a date.
    package static func day(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let (era, yearOfEra) = floorDivision(month > 2 ? year : year - 1, by: 400)
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * daysPerEra + dayOfEra - daysToEpoch
    }

    /// Returns the date of a day number.
    package static func date(ofDay day: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let (era, dayOfEra) = floorDivision(day + daysToEpoch, by: daysPerEra)
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shifted = (5 * dayOfYear + 2) / 153
        let month = shifted < 10 ? shifted + 3 : shifted - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * shifted + 2) / 5 + 1)
    }
}
