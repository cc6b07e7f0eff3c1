/// A point in time on a clock that never goes back, in nanoseconds. State machines receive it as an argument; they read no
/// clock.
struct Moment: Comparable, Sendable {
    var nanoseconds: Int64

    static let distantPast = Moment(nanoseconds: .min)

    static func < (one: Moment, other: Moment) -> Bool { one.nanoseconds < other.nanoseconds }
    static func + (moment: Moment, span: Duration) -> Moment {
        let (sum, overflows) = moment.nanoseconds.addingReportingOverflow(span.wholeNanoseconds)
        return Moment(nanoseconds: overflows ? .max : sum)
    }
    static func - (later: Moment, earlier: Moment) -> Duration {
        .nanoseconds(later.nanoseconds - earlier.nanoseconds)
    }
}

extension Duration {
    /// The duration in nanoseconds, limited to the range of the integer (292 years).
    var wholeNanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (product, overflows) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        guard !overflows else { return seconds < 0 ? .min : .max }
        let (sum, overflowsToo) = product.addingReportingOverflow(attoseconds / 1_000_000_000)
        return overflowsToo ? .max : sum
    }
}
