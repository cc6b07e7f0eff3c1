/// How many connections that were of use and went may be replaced: so many at once, then so many a second.
///
/// A service that ends each connection after an answer would otherwise be called as fast as it answers. When a connection
/// goes, it is taken from what is left; while nothing is left, none is opened.
struct ReplacementAllowance: Sendable {
    let atOnce: Double
    let perSecond: Double
    private var left: Double
    private var countedAt: Moment?

    init(atOnce: Double, perSecond: Double) {
        self.atOnce = atOnce
        self.perSecond = perSecond
        left = atOnce
    }

    /// A connection went that was not let go of.
    mutating func lost(_ now: Moment) {
        left = left(now) - 1
        countedAt = now
    }

    func allows(_ now: Moment) -> Bool { left(now) >= 0 }

    private func left(_ now: Moment) -> Double {
        guard let countedAt else { return left }
        return min(atOnce, left + (now - countedAt) / .seconds(1) * perSecond)
    }
}
