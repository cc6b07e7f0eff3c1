import CarillonCore

/// Moments at which something is due are put together, the coarser the longer they were ahead, so that rows which are written
/// one after the other stand together. What is due in a bucket is due by its end.
enum DueBucket {
    /// A bucket is at most this part of the time that was ahead.
    private static let fraction: Int64 = 16
    private static let finest: Int64 = 1000

    static func of(_ moment: Timestamp, since: Timestamp) -> Int64 {
        guard moment.milliseconds < .max / 2 else { return .max }
        let ahead = max(0, moment.milliseconds - since.milliseconds)
        var width = finest
        while width * 2 <= ahead / fraction { width *= 2 }
        return (moment.milliseconds + width - 1) / width * width
    }
}
