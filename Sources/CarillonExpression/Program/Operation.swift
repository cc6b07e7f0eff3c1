/// A step of a program, which refers to its operands by index. It contains no references, so that the evaluation does no
/// reference counting for operations.
enum Operation {
    case constant(Int32)
    case variable(slot: Int32)
    /// A dotted name without a declaration. Its candidates are in `Shape.names`, one entry for each number of parts, from all
    /// parts down. Its parts are in `Shape.fields`.
    case unresolved(first: Int32, fields: Int32, count: Int32)
    /// The variable of a macro, numbered from the outermost.
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
    /// A variable and the index of its set in `Shape.sets`.
    case member(slot: Int32, set: Int32)
    /// The operands are in `Shape.operands`.
    case all(first: Int32, count: Int32)
    case any(first: Int32, count: Int32)
    case conditional(first: Int32)
    case list(first: Int32, count: Int32)
    /// Keys and values alternate.
    case map(first: Int32, count: Int32)
    case call(Function, first: Int32, count: Int32)
    /// `matches` with a constant pattern.
    case matches(Int32, pattern: Int32)
    case fold(Int32)
    /// An operation that is an error for all operands.
    case noOverload
    /// The error message is in `Shape.fields`.
    case unknownFunction(Int32)
    case badPattern
}

/// A macro in a program.
struct FoldOperation {
    let kind: SyntaxTree.Fold.Kind
    let range: Int32
    let predicate: Int32?
    let transform: Int32?
    /// The slot of its variable. The slot of the second variable follows, if there is one.
    let local: Int32
    let hasSecond: Bool
}

/// A program without its constants: the common part of conditions that differ in their constants.
final class Shape: Sendable {
    let operations: [Operation]
    /// The offset of each operation, in UTF-8 from the beginning of the text from which the shape was made.
    let offsets: [Int32]
    let operands: [Int32]
    let names: [[String]]
    let fields: [String]
    let folds: [FoldOperation]
    let patterns: [Pattern]
    let sets: [ConstantSet]
    let root: Int32
    /// The number of slots for the variables of nested macros.
    let locals: Int
    /// The number of constants.
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
