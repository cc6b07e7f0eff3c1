import CarillonBasics

extension RetryAfter {
    /// Returns the wait of a member of a JSON document: not negative, and at most a day.
    static func duration(seconds: Int) -> Duration { .seconds(max(0, min(Int64(seconds), longestSeconds))) }
}
