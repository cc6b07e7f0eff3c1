/// The syntax tree of a pattern, without the names of groups, which are not used.
indirect enum PatternTree {
    case empty
    case scalar(Unicode.Scalar)
    /// Equal sets are stored once.
    case set(ScalarSet)
    case any
    case assertion(Assertion)
    case sequence([PatternTree])
    case choice([PatternTree])
    case repetition(PatternTree, least: Int, most: Int?)

    enum Assertion {
        case beginOfText, endOfText, beginOfLine, endOfLine, wordBoundary, noWordBoundary
    }
}
