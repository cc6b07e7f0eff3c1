/// The functions, operators and names that a condition on an item uses, for hosts that allow only some of them.
package struct ItemVocabulary: Equatable, Sendable {
    /// The called functions and macros. Operators, `has()` and `[]` are not functions.
    package var functions: Set<String> = []
    /// The operators, as they are written. `-` is also the sign of a value that is not a constant, and `?:` is the
    /// conditional.
    package var operators: Set<String> = []
    /// Fields, and `previous`, `item` and `update.time`. `fields` means any field: it is used if a field's name is known only
    /// during the evaluation.
    package var names: Set<String> = []

    package init() {}

    /// - Parameter fields: The names of the fields, which can contain dots.
    package init(of program: ExpressionProgram, over fields: some Sequence<String>) {
        var walk = Walk(tree: program.tree, fields: Set(fields))
        walk.visit(program.tree.root, bound: [])
        self = walk.found
    }

    package mutating func formUnion(_ other: Self) {
        functions.formUnion(other.functions)
        operators.formUnion(other.operators)
        names.formUnion(other.names)
    }

    /// The functions and macros of the language.
    package static let allFunctions: [String] =
        (Function.allCases.map(\.rawValue) + SyntaxTree.Fold.Kind.allCases.map(\.rawValue)).sorted()
    /// The operators of the language.
    package static let allOperators: [String] =
        (Set(Operator.allCases.map(\.rawValue) + Operator.Unary.allCases.map(\.rawValue)).union(["&&", "||", "?:", "[]"]))
        .sorted()
    /// Names that are not fields.
    package static let ownNames = ["fields", "item", "previous", "update.time"]

    /// Returns the name of a field in the vocabulary. A field with the same name as one of ``ownNames`` is `fields.item`, for
    /// instance.
    package static func name(ofField field: String) -> String { ownNames.contains(field) ? "fields." + field : field }

    private struct Walk {
        let tree: SyntaxTree
        let fields: Set<String>
        var found = ItemVocabulary()

        mutating func visit(_ id: SyntaxTree.ID, bound: Set<String>) {
            if let (parts, isRoot) = tree.dottedName(id) {
                if isRoot || !bound.contains(parts[0]) { note(parts) }
                return
            }
            let form = tree[id].form
            if let name = form.operatorName { found.operators.insert(name) }
            switch form {
            case .presence(let operand, let field):
                if let (parts, isRoot) = tree.dottedName(operand), isRoot || !bound.contains(parts[0]) {
                    return note(parts + [field])
                }
            case .index(let operand, let key):
                if case .literal(.string(let field)) = tree[key].form, let (parts, isRoot) = tree.dottedName(operand),
                    isRoot || !bound.contains(parts[0])
                {
                    return note(parts + [field])
                }
                found.operators.insert("[]")
            case .call(let name, _, _): found.functions.insert(name)
            case .fold(let fold):
                found.functions.insert(fold.kind.rawValue)
                visit(fold.range, bound: bound)
                for part in [fold.predicate, fold.transform].compactMap(\.self) {
                    visit(part, bound: bound.union([fold.variable, fold.second].compactMap(\.self)))
                }
                return
            default: break
            }
            for child in form.children { visit(child, bound: bound) }
        }

        private mutating func note(_ parts: [String]) {
            switch parts[0] {
            case "previous":
                found.names.insert("previous")
                noteField(parts.dropFirst())
            case "fields": noteField(parts.dropFirst())
            case "item": found.names.insert("item")
            case "update" where parts.count > 1 && parts[1] == "time": found.names.insert("update.time")
            default:
                let isType = ExpressionType.named[parts.joined(separator: ".")] != nil && !fields.contains(parts[0])
                if !isType { noteDotted(parts) }
            }
        }

        /// A dotted name means the longest field that the item has at the time of the evaluation.
        private mutating func noteDotted(_ parts: [String]) {
            let names = (1...parts.count).map { parts.prefix($0).joined(separator: ".") }
            let known = names.lastIndex { fields.contains($0) } ?? 0
            found.names.formUnion(names[known...])
        }

        private mutating func noteField(_ parts: ArraySlice<String>) {
            guard let first = parts.first else {
                found.names.insert("fields")
                return
            }
            found.names.insert(ItemVocabulary.name(ofField: first))
        }
    }
}

extension SyntaxTree.Form {
    fileprivate var operatorName: String? {
        switch self {
        case .unary(let sign, _): sign.rawValue
        case .binary(let sign, _, _): sign.rawValue
        case .all: "&&"
        case .any: "||"
        case .conditional: "?:"
        default: nil
        }
    }
}
