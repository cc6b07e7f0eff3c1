import CarillonCore

/// Groups due times in buckets. The further in the future a time is, the larger is its bucket, so that consecutive rows are in
/// one bucket. Everything in a bucket is due by its end.
enum DueBucket {
    /// A bucket covers at most this fraction of the time until it is due.
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
