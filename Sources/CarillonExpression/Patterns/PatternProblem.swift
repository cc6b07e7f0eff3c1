/// Why a pattern is not taken, and where.
struct PatternProblem: Error {
    let message: String
    /// In code points from its beginning.
    let offset: Int
}
