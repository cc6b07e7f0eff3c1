/// The syntax tree of a condition, with macros resolved. Its nodes are in one array, children before their parents.
struct SyntaxTree {
    typealias ID = Int

    struct Node {
        let form: Form
        /// The position for errors about the node, in UTF-8 from the beginning.
        let offset: Int
        /// The number of levels below the node, including itself.
        let depth: Int
    }

    enum Form {
        case literal(ExpressionValue)
        /// `isRoot` is true for a name after a dot: it does not mean a loop variable, and no container precedes it.
        case name(String, isRoot: Bool)
        case select(ID, field: String)
        /// `has(e.f)`.
        case presence(ID, field: String)
        case index(ID, ID)
        case unary(Operator.Unary, ID)
        case binary(Operator, ID, ID)
        /// `&&` or `||` of two or more operands.
        case all([ID])
        case any([ID])
        case conditional(ID, ID, ID)
        case call(String, target: ID?, arguments: [ID])
        case list([ID])
        case map([(key: ID, value: ID)])
        case fold(Fold)
    }

    /// A macro over a list or a map, or a macro that names a value.
    struct Fold {
        enum Kind: String, CaseIterable {
            case all, exists, existsOne = "exists_one", map, filter
            /// Macros with two variables.
            case transformList, transformMap
            /// `cel.bind(x, value, …)`: the range is the value.
            case bind
        }

        let kind: Kind
        let range: ID
        /// The variable: an element, or a key of a map. With a second variable, it is the index in a list, or the key.
        let variable: String
        /// The second variable: the element, or the value of the key.
        var second: String?
        /// The condition for an element; nil if all elements are used.
        let predicate: ID?
        /// The result for an element.
        let transform: ID?
    }

    private(set) var nodes: [Node] = []
    var root: ID { nodes.count - 1 }

    subscript(id: ID) -> Node { nodes[id] }

    mutating func add(_ form: Form, at offset: Int) -> ID {
        let depth = form.children.reduce(0) { max($0, nodes[$1].depth) } + 1
        nodes.append(Node(form: form, offset: offset, depth: depth))
        return nodes.count - 1
    }
}

enum Operator: String, CaseIterable {
    case add = "+", subtract = "-", multiply = "*", divide = "/", modulo = "%"
    case equal = "==", unequal = "!=", less = "<", lessOrEqual = "<=", more = ">", moreOrEqual = ">="
    case contained = "in"

    enum Unary: String, CaseIterable {
        case not = "!", negate = "-"
    }
}

extension SyntaxTree.Form {
    var children: [SyntaxTree.ID] {
        switch self {
        case .literal, .name: []
        case .select(let operand, _), .presence(let operand, _), .unary(_, let operand): [operand]
        case .index(let one, let other), .binary(_, let one, let other): [one, other]
        case .all(let operands), .any(let operands), .list(let operands): operands
        case .conditional(let condition, let one, let other): [condition, one, other]
        case .call(_, let target, let arguments): (target.map { [$0] } ?? []) + arguments
        case .map(let entries): entries.flatMap { [$0.key, $0.value] }
        case .fold(let fold): [fold.range] + [fold.predicate, fold.transform].compactMap(\.self)
        }
    }
}
