/// A step of a program, which names its operands by their places. It holds no references, so that a walk over operations counts none.
enum Operation {
    case constant(Int32)
    case variable(slot: Int32)
    /// A dotted name of which nothing is declared: for each number of its parts, from all of them down, candidates stand in `Shape.names`,
    /// and its parts in `Shape.fields`.
    case unresolved(first: Int32, fields: Int32, count: Int32)
    /// The variable of a macro, counted from the outermost.
    case local(Int32)
    case select(Int32, field: Int32)
    case presence(Int32, field: Int32)
    case index(Int32, Int32)
    case not(Int32)
    case negate(Int32)
    case add(Int32, Int32)
    case subtract(Int32, Int32)
    case multiply(Int32, Int32)
    case divide(Int32, Int32)
    case modulo(Int32, Int32)
    case equal(Int32, Int32)
    case unequal(Int32, Int32)
    case less(Int32, Int32)
    case lessOrEqual(Int32, Int32)
    case more(Int32, Int32)
    case moreOrEqual(Int32, Int32)
    case contained(Int32, Int32)
    /// A variable and the set that it is looked up in, which stands in `Shape.sets`.
    case member(slot: Int32, set: Int32)
    /// Operands stand in `Shape.operands`.
    case all(first: Int32, count: Int32)
    case any(first: Int32, count: Int32)
    case conditional(first: Int32)
    case list(first: Int32, count: Int32)
    /// Keys and values by turns.
    case map(first: Int32, count: Int32)
    case call(Function, first: Int32, count: Int32)
    /// `matches` with a pattern that is known.
    case matches(Int32, pattern: Int32)
    case fold(Int32)
    /// What cannot be evaluated, whatever its operands are.
    case noOverload
    /// What is to be said of it stands among the fields.
    case unknownFunction(Int32)
    case badPattern
}

/// A macro in a program.
struct FoldOperation {
    let kind: SyntaxTree.Fold.Kind
    let range: Int32
    let predicate: Int32?
    let transform: Int32?
    /// Where its variable stands, and behind it the second, if there is one.
    let local: Int32
    let hasSecond: Bool
}

/// A program without its constants: what conditions that differ in them have in common.
final class Shape: Sendable {
    let operations: [Operation]
    /// By operation, in UTF-8 from the beginning of the text it was made of.
    let offsets: [Int32]
    let operands: [Int32]
    let names: [[String]]
    let fields: [String]
    let folds: [FoldOperation]
    let patterns: [Pattern]
    let sets: [ConstantSet]
    let root: Int32
    /// How many macros lie in each other.
    let locals: Int
    /// How many it is evaluated with.
    let constants: Int
    let key: String

    init(
        operations: [Operation], offsets: [Int32], operands: [Int32], names: [[String]], fields: [String],
        folds: [FoldOperation], patterns: [Pattern], sets: [ConstantSet], locals: Int, constants: Int, key: String
    ) {
        self.operations = operations
        self.offsets = offsets
        self.operands = operands
        self.names = names
        self.fields = fields
        self.folds = folds
        self.patterns = patterns
        self.sets = sets
        root = Int32(operations.count - 1)
        self.locals = locals
        self.constants = constants
        self.key = key
    }
}
