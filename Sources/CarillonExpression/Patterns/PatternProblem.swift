/// Why a pattern is rejected, and at which position.
struct PatternProblem: Error {
    let message: String
    /// The number of code points before the position.
    let offset: Int
}
