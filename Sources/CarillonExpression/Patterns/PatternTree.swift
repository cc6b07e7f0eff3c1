/// A pattern as it is written, without its groups' names: none is asked for them.
indirect enum PatternTree {
    case empty
    case scalar(Unicode.Scalar)
    /// Several of these that say the same are kept once.
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
