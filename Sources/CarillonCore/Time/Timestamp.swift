/// A moment, in milliseconds since 1970 in UTC.
package struct Timestamp: Hashable, Comparable, Sendable {
    package var milliseconds: Int64

    package init(milliseconds: Int64) { self.milliseconds = milliseconds }

    /// Later than any other time. This is the expiry of data that never expires.
    package static let never = Timestamp(milliseconds: .max)

    package var seconds: Int64 { milliseconds / 1000 }

    package func adding(seconds: Int64) -> Timestamp {
        adding(milliseconds: seconds.multipliedReportingOverflow(by: 1000).partialValue)
    }

    package func adding(milliseconds addend: Int64) -> Timestamp {
        let (sum, overflow) = milliseconds.addingReportingOverflow(addend)
        return overflow ? .never : Timestamp(milliseconds: sum)
    }

    package static func < (left: Timestamp, right: Timestamp) -> Bool { left.milliseconds < right.milliseconds }
}
