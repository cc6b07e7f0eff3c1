import CarillonBasics

extension RetryAfter {
    /// Returns the wait of a member of a JSON document, limited to the range from zero to a day.
    static func duration(seconds: Int) -> Duration { .seconds(max(0, min(Int64(seconds), longestSeconds))) }
}
