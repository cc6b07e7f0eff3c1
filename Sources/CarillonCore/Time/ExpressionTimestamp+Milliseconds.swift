import CarillonExpression

extension ExpressionTimestamp {
    /// Milliseconds since 1970; nil beyond what the language knows.
    init?(milliseconds: Int64) {
        // Rounded down, so that the rest is positive.
        let rest = (milliseconds % 1000 + 1000) % 1000
        self.init(seconds: (milliseconds - rest) / 1000, nanoseconds: Int32(rest * 1_000_000))
    }
}
