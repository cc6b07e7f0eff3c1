/// The rate limit for the replacement of lost connections: some at once, then some per second. It counts only connections
/// that had a response.
///
/// Without the limit, connections to a server that ends each of them after a response would be opened as fast as the server
/// responds. Each lost connection reduces the number that is left. While none is left, no connection is opened.
struct ReplacementRateLimit: Sendable {
    let atOnce: Double
    let perSecond: Double
    private var remaining: Double
    private var countedAt: Moment?

    init(atOnce: Double, perSecond: Double) {
        self.atOnce = atOnce
        self.perSecond = perSecond
        remaining = atOnce
    }

    /// Counts a lost connection that the pool did not retire.
    mutating func lost(_ now: Moment) {
        remaining = remaining(now) - 1
        countedAt = now
    }

    func allows(_ now: Moment) -> Bool { remaining(now) >= 0 }

    private func remaining(_ now: Moment) -> Double {
        guard let countedAt else { return remaining }
        return min(atOnce, remaining + (now - countedAt) / .seconds(1) * perSecond)
    }
}
