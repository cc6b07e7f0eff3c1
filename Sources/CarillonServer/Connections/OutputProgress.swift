/// How far the writing to a peer has come, in bytes.
struct OutputProgress: Equatable {
    /// Taken by the kernel since the connection began.
    var sent = 0
    /// Given to the connection, and not yet taken by the kernel.
    var waiting = 0
}

/// Whether a peer reads: of what waits for it, it must take ``minimumBytes`` in each period, or all of it. One that takes a
/// byte now and then is no reader.
struct StallClock {
    static let minimumBytes = 4096

    private struct Period {
        var end: Int
        var sentBefore: Int
        var due: Int
    }

    private var period: Period?

    /// When it is to be looked at next; nil while nothing waits.
    var deadline: Int? { period?.end }

    /// Something may wait from now on. A period that runs already goes on.
    mutating func started(_ progress: OutputProgress, at second: Int, periodSeconds: Int) {
        guard progress.waiting > 0, period == nil else { return }
        period = Period(
            end: second + periodSeconds, sentBefore: progress.sent, due: min(progress.waiting, Self.minimumBytes))
    }

    /// Answers true when a period ended without enough having been taken; else the next one begins, if anything waits.
    mutating func isStalled(_ progress: OutputProgress, at second: Int, periodSeconds: Int) -> Bool {
        guard let period, period.end <= second else { return false }
        if progress.sent - period.sentBefore < period.due { return true }
        self.period = nil
        started(progress, at: second, periodSeconds: periodSeconds)
        return false
    }

    /// There is less time from now on.
    mutating func hurry(to second: Int) {
        if let end = period?.end { period?.end = min(end, second) }
    }
}
