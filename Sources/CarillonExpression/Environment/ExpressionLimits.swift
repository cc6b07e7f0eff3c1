/// The limits of a condition, when it is accepted and while it is evaluated.
public struct ExpressionLimits: Sendable, Hashable {
    /// A name of one part that is not declared costs one unit up to this length, as a declared one does. A longer name costs
    /// more, by its length.
    static let freeNameBytes = 64

    /// The bytes of the condition's text in UTF-8; 20,000 by default.
    public var bytes = 20_000
    /// The number of values, names, operators and calls; 5,000 by default.
    public var nodes = 5000
    /// The number of literals among these; 5,000 by default.
    public var constants = 5000
    /// The number of nested levels; 100 by default. Each level uses stack, so values above 250 are reduced to 250.
    public var depth = 100 {
        didSet { depth = min(depth, 250) }
    }
    /// Units of cost; 100,000 by default. A name, an operator or a call costs one unit. An operation over a text, a list or a
    /// map costs more, by its size. A condition whose greatest cost exceeds the limit is rejected by the check, and every
    /// evaluation that reaches the limit ends with an error.
    public var cost = 100_000
    /// The assumed largest size of a variable without a declared size; 1,000 by default.
    public var variableSize = 1000
    /// The assumed largest size of an element of a list, or of a key or a value of a map; 100 by default.
    public var elementSize = 100
    /// The assumed largest length in bytes of a value whose type or size is not known. Set it only if the host knows that no
    /// such value is a list or a map. Nil by default: such a value can then be any value.
    public var unknownBytes: Int?
    /// The number of instructions of a pattern; 1,000 by default, and at most a million.
    public var patternInstructions = 1000 {
        didSet { patternInstructions = min(max(0, patternInstructions), 1_000_000) }
    }

    public init() {}
}
