/// Limits outgoing calls: the number in progress, and the number that begin per second.
///
/// The second limit is a budget that grows with time. Each call uses some of it. It is never more than a tenth of a second's
/// worth (at least one call), so that no burst follows a pause.
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
    /// The budget in thousandths of a call.
    private var budget: Int64 = 0
    private var refilledAt: Timestamp?

    package init(limits: Limits = Limits()) { self.limits = limits }

    /// Returns the number of calls that may begin now.
    package mutating func freeSlots(at now: Timestamp) -> Int {
        let most = Int64(max(limits.perSecond * 100, 1000))
        // If the clock was set back, no time is added.
        let passed = refilledAt.map { max(0, min(now.milliseconds - $0.milliseconds, 1000)) } ?? 1000
        budget = min(most, budget + passed * Int64(limits.perSecond))
        refilledAt = now
        return max(0, min(limits.underWay - underWay, Int(budget / 1000)))
    }

    package mutating func began(_ count: Int) {
        underWay += count
        budget -= Int64(count) * 1000
    }

    package mutating func ended() { underWay -= 1 }
}
