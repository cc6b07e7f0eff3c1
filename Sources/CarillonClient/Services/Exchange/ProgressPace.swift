/// How far the files of one message are, and when the app is notified: at most ten times in a second, and always of the end.
struct ProgressPace {
    /// Eight in a second, so that the beginning and the end fit into ten.
    static let interval = Duration.milliseconds(125)

    /// The bytes of all files.
    let total: Int64
    /// The number of the present file.
    private(set) var part = 0
    /// The bytes of the files before.
    private var before: Int64 = 0
    private var furthest: Int64 = 0
    private var notified: (bytes: Int64, at: ContinuousClock.Instant)?

    init(total: Int64) { self.total = total }

    /// A file has so many bytes there. What is said of an earlier file is ignored, and so is a step back: a transfer that is cut off begins
    /// again before its last byte. The end is not reported: bytes that were written need not be at the server.
    ///
    /// - Returns: The bytes of all files, if the app is notified of them now.
    mutating func moved(_ part: Int, to bytes: Int64, at now: ContinuousClock.Instant) -> Int64? {
        moved(part, to: bytes, at: now, isFinished: false)
    }

    private mutating func moved(
        _ part: Int, to bytes: Int64, at now: ContinuousClock.Instant, isFinished: Bool
    ) -> Int64? {
        guard part == self.part else { return nil }
        furthest = max(furthest, min(total, before + bytes))
        guard furthest < total || isFinished else { return nil }
        if let notified {
            guard furthest > notified.bytes else { return nil }
            guard furthest == total || notified.at.duration(to: now) >= Self.interval else { return nil }
        }
        notified = (furthest, now)
        return furthest
    }

    /// The present file is there; the next begins.
    mutating func finished(_ bytes: Int64, at now: ContinuousClock.Instant) -> Int64? {
        defer {
            before += bytes
            part += 1
        }
        return moved(part, to: bytes, at: now, isFinished: true)
    }
}
