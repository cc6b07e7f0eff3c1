/// Delays between attempts that double with each failure, up to a longest delay.
package struct BackOff<Delay: Comparable & Sendable>: Sendable {
    package let first: Delay
    package let longest: Delay

    /// - Parameters:
    ///   - first: The delay before any doubling. With `Int64`, `first` and `longest` have the unit of the caller.
    ///   - longest: The longest delay. It is returned also if it is less than `first`.
    package init(first: Delay, longest: Delay) {
        self.first = first
        self.longest = longest
    }
}

extension BackOff where Delay == Int64 {
    /// Returns the delay after so many doublings. Negative numbers count as 0.
    package func delay(doublings: Int) -> Int64 {
        let doublings = max(0, doublings)
        return doublings < 63 && first <= longest >> Int64(doublings) ? first << Int64(doublings) : longest
    }
}

extension BackOff where Delay == Duration {
    /// Returns the delay after so many doublings, at most 30. Negative numbers count as 0.
    package func delay(doublings: Int) -> Duration {
        min(longest, first * (1 << max(0, min(doublings, 30))))
    }
}
