/// Decides which connections are too old for a rejection because of an APNs topic, a key, or the number of provider tokens to
/// be final.
///
/// A connection knows the APNs topics and keys that existed at its first push, and counts the provider tokens since then. A
/// rejection on an older connection is therefore not final: the push is sent once more, on a connection that was opened after
/// it. An APNs topic that is always rejected would cause a new connection for each of its pushes. Within a minute, only one
/// connection is therefore replaced, and the rejection on its replacement is final.
struct FreshnessLedger {
    enum Verdict: Equatable {
        case final
        /// Send the push on a connection with a higher number. The rejecting connection is retired, or is kept for the APNs
        /// topics and keys that it knows.
        case elsewhere(after: Int, retires: Bool)
    }

    /// Connections up to this number are old.
    private var newestOld = 0
    private var replacedAt: Moment?

    /// A push was rejected because of its APNs topic, its key, or the number of provider tokens.
    /// - Parameters:
    ///   - number: the number of the connection that rejected the push.
    ///   - newest: the highest number of a connection.
    mutating func refused(on number: Int, newest: Int, _ now: Moment) -> Verdict {
        if let replacedAt, now - replacedAt < .seconds(60) {
            return number <= newestOld ? .elsewhere(after: newestOld, retires: false) : .final
        }
        replacedAt = now
        if number > newestOld { newestOld = newest }
        return .elsewhere(after: newestOld, retires: true)
    }
}
