/// Which connections are too old to be believed about a topic, a key, or the number of provider tokens.
///
/// A connection knows the topics and keys that there were at its first push, and counts the provider tokens since then, so that
/// the refusal of an older one does not count: the push is sent once more, by a connection that was opened after it. A topic that
/// is refused for good would have the pool opened anew for each of its pushes; so within a minute a single connection is replaced, and the one
/// that took its place is believed.
struct FreshnessLedger {
    enum Verdict: Equatable {
        case final
        /// By a connection with a higher number; the one that refused is to be retired, or is kept for what it does know.
        case elsewhere(after: Int, retires: Bool)
    }

    /// Connections up to this number are old.
    private var newestOld = 0
    private var replacedAt: Moment?

    /// A push was refused because of its topic, its key, or the number of provider tokens.
    /// - Parameters:
    ///   - number: of the connection that refused it.
    ///   - newest: the highest number that a connection has.
    mutating func refused(on number: Int, newest: Int, _ now: Moment) -> Verdict {
        if let replacedAt, now - replacedAt < .seconds(60) {
            return number <= newestOld ? .elsewhere(after: newestOld, retires: false) : .final
        }
        replacedAt = now
        if number > newestOld { newestOld = newest }
        return .elsewhere(after: newestOld, retires: true)
    }
}
