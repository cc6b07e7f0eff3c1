import CarillonExpression

extension ExpressionTimestamp {
    /// - Parameter milliseconds: Milliseconds since 1970. The result is nil outside the range of the condition language.
    init?(milliseconds: Int64) {
        // The division rounds down, so that the remainder is positive.
        let rest = (milliseconds % 1000 + 1000) % 1000
        self.init(seconds: (milliseconds - rest) / 1000, nanoseconds: Int32(rest * 1_000_000))
    }
}
