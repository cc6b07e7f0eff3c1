/// Detects slow readers. In each period, a peer must receive at least ``minimumBytes`` of the waiting data, or all of it. A peer
/// that receives a few bytes from time to time is too slow.
struct StallClock {
    static let minimumBytes = 4096

    private struct Period {
        var end: Int
        var sentBefore: Int
        var due: Int
    }

    private var period: Period?

    /// The time of the next check; nil if no data is waiting.
    var deadline: Int? { period?.end }

    /// Starts a period if data is waiting. A running period continues.
    mutating func started(_ progress: OutputProgress, at second: Int, periodSeconds: Int) {
        guard progress.waiting > 0, period == nil else { return }
        period = Period(
            end: second + periodSeconds, sentBefore: progress.sent, due: min(progress.waiting, Self.minimumBytes))
    }

    /// Returns true if a period ended and the peer received too little. Otherwise the next period begins if data is waiting.
    mutating func isStalled(_ progress: OutputProgress, at second: Int, periodSeconds: Int) -> Bool {
        guard let period, period.end <= second else { return false }
        if progress.sent - period.sentBefore < period.due { return true }
        self.period = nil
        started(progress, at: second, periodSeconds: periodSeconds)
        return false
    }

    /// Shortens the running period.
    mutating func hurry(to second: Int) {
        if let end = period?.end { period?.end = min(end, second) }
    }
}
