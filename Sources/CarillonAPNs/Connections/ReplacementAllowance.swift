/// The rate limit for the replacement of lost connections: some at once, then some per second. It counts only connections
/// that had a response.
///
/// Without the limit, connections to a server that ends each of them after a response would be opened as fast as the server
/// responds. Each lost connection reduces the number that is left. While none is left, no connection is opened.
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

    /// Counts a lost connection that the pool did not retire.
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
