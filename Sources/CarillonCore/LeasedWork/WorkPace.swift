/// How many calls outward may begin: a bound on those under way, and one on those that begin in a second.
///
/// The second is an allowance that grows with time and is spent by each call; it never holds more than a tenth of a
/// second's worth, so that a pause is not made up for by a burst.
package struct WorkPace: Sendable {
    package struct Limits: Equatable, Sendable {
        package var underWay: Int
        package var perSecond: Int

        package init(underWay: Int = 64, perSecond: Int = 500) {
            self.underWay = underWay
            self.perSecond = perSecond
        }
    }

    private let limits: Limits
    package private(set) var underWay = 0
    /// In thousandths of a call.
    private var allowance: Int64 = 0
    private var refilledAt: Timestamp?

    package init(limits: Limits = Limits()) { self.limits = limits }

    /// How many calls may begin now.
    package mutating func room(at now: Timestamp) -> Int {
        let most = Int64(max(limits.perSecond * 100, 1000))
        // A clock that was set back begins a new count.
        let passed = refilledAt.map { max(0, min(now.milliseconds - $0.milliseconds, 1000)) } ?? 1000
        allowance = min(most, allowance + passed * Int64(limits.perSecond))
        refilledAt = now
        return max(0, min(limits.underWay - underWay, Int(allowance / 1000)))
    }

    package mutating func began(_ count: Int) {
        underWay += count
        allowance -= Int64(count) * 1000
    }

    package mutating func ended() { underWay -= 1 }
}
