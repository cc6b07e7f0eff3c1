/// What a condition may take at most, before it is accepted and while it is evaluated.
public struct ExpressionLimits: Sendable, Hashable {
    /// A name of one part that is not declared costs one unit up to this length, as a declared one does, and by its length beyond.
    static let freeNameBytes = 64

    /// Of its text, in UTF-8; 20,000 unless said.
    public var bytes = 20_000
    /// Values, names, operators and calls in it; 5,000 unless said.
    public var nodes = 5000
    /// Literals among these; 5,000 unless said.
    public var constants = 5000
    /// Levels that these lie in each other; 100 unless said. Each takes stack, and more than 250 are not granted.
    public var depth = 100 {
        didSet { depth = min(depth, 250) }
    }
    /// Units of cost, of which a name, an operator or a call takes one, and what walks over a text, a list or a map takes more with its
    /// size; 100,000 unless said. A condition whose greatest cost lies above is refused where it is checked, and every evaluation
    /// ends with an error there.
    public var cost = 100_000
    /// The size that a variable is taken to have at most where its declaration does not say; 1,000 unless said.
    public var variableSize = 1000
    /// The size that an element of a list, or a key or a value of a map, is taken to have at most; 100 unless said.
    public var elementSize = 100
    /// The bytes that a text is taken to have at most where its type or size is not known, if the host knows that no such value is a list or a
    /// map; nil unless said, where it can be any value.
    public var unknownBytes: Int?
    /// Instructions of a pattern; 1,000 unless said, and no more than a million.
    public var patternInstructions = 1000 {
        didSet { patternInstructions = min(max(0, patternInstructions), 1_000_000) }
    }

    public init() {}
}
