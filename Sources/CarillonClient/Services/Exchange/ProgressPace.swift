/// The progress of the files of one message, with the times at which the app is notified: up to ten times per second, and always
/// of the end.
struct ProgressPace {
    /// Eight times per second, so that the beginning and the end are within the ten.
    static let interval = Duration.milliseconds(125)

    /// The bytes of all files.
    let total: Int64
    /// The number of the present file.
    private(set) var part = 0
    /// The bytes of the files before the present one.
    private var before: Int64 = 0
    private var furthest: Int64 = 0
    private var notified: (bytes: Int64, at: ContinuousClock.Instant)?

    init(total: Int64) { self.total = total }

    /// Records the transferred bytes of a file. A report about an earlier file is ignored, and so is a smaller number: an
    /// interrupted transfer begins again before its last byte. The end is not reported here, because the server need not have
    /// received all written bytes.
    ///
    /// - Returns: The bytes of all files, if the app is notified now.
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

    /// Records that the present file was transferred. The next one begins.
    mutating func finished(_ bytes: Int64, at now: ContinuousClock.Instant) -> Int64? {
        defer {
            before += bytes
            part += 1
        }
        return moved(part, to: bytes, at: now, isFinished: true)
    }
}
