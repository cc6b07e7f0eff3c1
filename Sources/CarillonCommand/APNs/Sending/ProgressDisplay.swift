import Foundation

/// Draws a ``ProgressLine`` on the terminal of standard error, in place of the last one.
struct ProgressDisplay {
    /// The counts of the last two seconds, for the rate.
    private var samples: [(at: ContinuousClock.Instant, settled: Int)] = []
    private var hasDrawn = false

    static let interval = Duration.milliseconds(100)

    /// Whether standard error is a terminal that supports the display.
    static var isPossible: Bool { isatty(STDERR_FILENO) == 1 && Environment["TERM"] != "dumb" }

    mutating func draw(_ tally: SendTally, of size: Int?, at now: ContinuousClock.Instant) {
        samples.append((now, tally.settled))
        if samples.count > 20 { samples.removeFirst() }
        let first = samples[0]
        let seconds = (now - first.at) / .seconds(1)
        let line = ProgressLine(
            accepted: tally.accepted, rejected: tally.rejected, failed: tally.failed,
            fraction: size.map { $0 == 0 ? 1 : Double(tally.bytes) / Double($0) },
            perSecond: seconds > 0 ? Int(Double(tally.settled - first.settled) / seconds) : 0)
        // The last column stays empty, because some terminals start a new line when it is written.
        StandardError.draw(line.text(width: Self.width - 1))
        hasDrawn = true
    }

    /// Erases the line.
    mutating func clear() {
        if hasDrawn { StandardError.clearLine() }
        hasDrawn = false
    }

    private static var width: Int {
        var size = winsize()
        guard ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
        return Int(size.ws_col)
    }
}
