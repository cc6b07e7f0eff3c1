/// Parses the text of a condition ("Syntax" in the language's definition). No input causes a trap or a recursion beyond the
/// limits.
struct Parser {
    private let tokens: [Token]
    private let limits: ExpressionLimits
    private var place = 0
    private var depth = 0
    private var constants = 0
    private var tree = SyntaxTree()

    static func parse(_ source: String, limits: ExpressionLimits) throws(Problem) -> SyntaxTree {
        guard source.utf8.count <= limits.bytes else {
            throw Problem(.size, "the condition is longer than \(limits.bytes) bytes", at: limits.bytes)
        }
        var parser = Parser(tokens: try Lexer.tokens(of: source), limits: limits)
        _ = try parser.expression()
        guard case .end = parser.token.kind else {
            throw Problem(.syntax, "\(parser.token.text) was not expected here", at: parser.token.offset)
        }
        return parser.tree
    }

    private init(tokens: [Token], limits: ExpressionLimits) {
        self.tokens = tokens
        self.limits = limits
    }

    // MARK: Tokens

    private var token: Token { tokens[place] }

    private func sees(_ symbol: Token.Symbol) -> Bool { token.kind == .symbol(symbol) }

    /// An accepted token is never the last one, which is the end.
    private mutating func accept(_ symbol: Token.Symbol) -> Bool {
        guard sees(symbol) else { return false }
        place += 1
        return true
    }

    private mutating func expect(_ symbol: Token.Symbol) throws(Problem) {
        guard accept(symbol) else {
            throw Problem(.syntax, "\"\(symbol.rawValue)\" was expected instead of \(token.text)", at: token.offset)
        }
    }

    private mutating func add(_ form: SyntaxTree.Form, at offset: Int) throws(Problem) -> SyntaxTree.ID {
        guard tree.nodes.count < limits.nodes else {
            throw Problem(.size, "the condition has more than \(limits.nodes) parts", at: offset)
        }
        let id = tree.add(form, at: offset)
        guard tree[id].depth <= limits.depth else { throw tooDeep(at: offset) }
        return id
    }

    private mutating func add(literal: ExpressionValue, at offset: Int) throws(Problem) -> SyntaxTree.ID {
        constants += 1
        guard constants <= limits.constants else {
            throw Problem(.size, "the condition has more than \(limits.constants) constants", at: offset)
        }
        return try add(.literal(literal), at: offset)
    }

    private func tooDeep(at offset: Int) -> Problem {
        Problem(.depth, "the condition is nested more than \(limits.depth) levels deep", at: offset)
    }

    // MARK: Operators

    private mutating func expression() throws(Problem) -> SyntaxTree.ID {
        depth += 1
        defer { depth -= 1 }
        guard depth <= limits.depth else { throw tooDeep(at: token.offset) }
        let condition = try binary(level: 0)
        let offset = token.offset
        guard accept(.question) else { return condition }
        let one = try binary(level: 0)
        try expect(.colon)
        let other = try expression()
        return try add(.conditional(condition, one, other), at: offset)
    }

    private enum Infix {
        case or
        case and
        case relation(Operator)
        case sum(Operator)
        case product(Operator)

        var level: Int {
            switch self {
            case .or: 0
            case .and: 1
            case .relation: 2
            case .sum: 3
            case .product: 4
            }
        }
    }

    private var infix: Infix? {
        switch token.kind {
        case .symbol(.or): .or
        case .symbol(.and): .and
        case .symbol(.less): .relation(.less)
        case .symbol(.lessOrEqual): .relation(.lessOrEqual)
        case .symbol(.more): .relation(.more)
        case .symbol(.moreOrEqual): .relation(.moreOrEqual)
        case .symbol(.equal): .relation(.equal)
        case .symbol(.unequal): .relation(.unequal)
        case .name("in"): .relation(.contained)
        case .symbol(.plus): .sum(.add)
        case .symbol(.minus): .sum(.subtract)
        case .symbol(.times): .product(.multiply)
        case .symbol(.divided): .product(.divide)
        case .symbol(.modulo): .product(.modulo)
        default: nil
        }
    }

    /// Parses operators that bind at least as tightly as the level. All levels use one stack frame, because parentheses can
    /// be deeply nested.
    private mutating func binary(level: Int) throws(Problem) -> SyntaxTree.ID {
        var left = try unary()
        while let infix, infix.level >= level {
            let offset = token.offset
            switch infix {
            case .or, .and:
                let symbol: Token.Symbol = infix.level == 0 ? .or : .and
                var operands = [left]
                while accept(symbol) { operands.append(try binary(level: infix.level + 1)) }
                left = try add(symbol == .or ? .any(operands) : .all(operands), at: offset)
            case .relation(let found), .sum(let found), .product(let found):
                place += 1
                let right = try binary(level: infix.level + 1)
                left = try add(.binary(found, left, right), at: offset)
            }
        }
        return left
    }

    private mutating func unary() throws(Problem) -> SyntaxTree.ID {
        let symbol: Token.Symbol = sees(.not) ? .not : .minus
        var offsets: [Int] = []
        while sees(symbol) {
            offsets.append(token.offset)
            place += 1
        }
        var operand: SyntaxTree.ID
        // After a "!", a sign is valid only as the sign of a number.
        if symbol == .not, sees(.minus), isNumber(tokens[place + 1]) {
            offsets.append(token.offset)
            place += 1
        }
        if let offset = offsets.last, tokens[place - 1].kind == .symbol(.minus), let literal = try negativeLiteral() {
            offsets.removeLast()
            operand = try add(literal: literal, at: offset)
            operand = try member(operand)
        } else {
            operand = try member(primary())
        }
        for offset in offsets.reversed() {
            operand = try add(.unary(symbol == .not ? .not : .negate, operand), at: offset)
        }
        return operand
    }

    private func isNumber(_ token: Token) -> Bool {
        switch token.kind {
        case .int, .double: true
        default: false
        }
    }

    /// A sign before an integer or a double belongs to the literal, so that the smallest integer can be written.
    private mutating func negativeLiteral() throws(Problem) -> ExpressionValue? {
        switch token.kind {
        case .int(let magnitude):
            guard magnitude <= UInt64(1) << 63 else {
                throw Problem(.syntax, "the number is out of range", at: token.offset)
            }
            place += 1
            return .int(Int64(truncatingIfNeeded: 0 &- magnitude))
        case .double(let value):
            place += 1
            return .double(-value)
        default: return nil
        }
    }

    // MARK: Members

    private mutating func member(_ first: SyntaxTree.ID) throws(Problem) -> SyntaxTree.ID {
        var operand = first
        while true {
            let offset = token.offset
            if accept(.dot) {
                let field = try fieldName()
                if case .quotedName = tokens[place - 1].kind {
                    operand = try add(.select(operand, field: field), at: offset)
                } else if accept(.openParenthesis) {
                    let arguments = try arguments()
                    operand =
                        try macro(field, on: operand, arguments, at: offset)
                        ?? add(.call(field, target: operand, arguments: arguments), at: offset)
                } else {
                    operand = try add(.select(operand, field: field), at: offset)
                }
            } else if accept(.openBracket) {
                let index = try expression()
                try expect(.closeBracket)
                operand = try add(.index(operand, index), at: offset)
            } else if sees(.openBrace) {
                throw Problem(
                    .syntax, "messages are not supported; remove \"{\" after the value", at: offset)
            } else {
                return operand
            }
        }
    }

    /// Words that are a field's name only between backticks.
    static let literals: Set<String> = ["true", "false", "null", "in"]
    private static let reserved: Set<String> = [
        "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package", "namespace",
        "return", "var", "void", "while",
    ]

    private mutating func fieldName() throws(Problem) -> String {
        switch token.kind {
        case .name(let name) where !Self.literals.contains(name), .quotedName(let name):
            place += 1
            return name
        default: throw Problem(.syntax, "a name was expected after the dot instead of \(token.text)", at: token.offset)
        }
    }

    private mutating func arguments() throws(Problem) -> [SyntaxTree.ID] {
        var arguments: [SyntaxTree.ID] = []
        if accept(.closeParenthesis) { return arguments }
        repeat { arguments.append(try expression()) } while accept(.comma)
        try expect(.closeParenthesis)
        return arguments
    }

    private mutating func primary() throws(Problem) -> SyntaxTree.ID {
        let offset = token.offset
        switch token.kind {
        case .int(let value):
            guard let value = Int64(exactly: value) else {
                throw Problem(.syntax, "the number is out of range", at: offset)
            }
            return try literal(.int(value))
        case .uint(let value): return try literal(.uint(value))
        case .double(let value): return try literal(.double(value))
        case .string(let text): return try literal(.string(text))
        case .bytes(let bytes): return try literal(.bytes(bytes))
        case .name("true"): return try literal(.bool(true))
        case .name("false"): return try literal(.bool(false))
        case .name("null"): return try literal(.null)
        case .name(let name): return try self.name(name, isRoot: false)
        case .symbol(.dot):
            place += 1
            guard case .name(let name) = token.kind else {
                throw Problem(.syntax, "a name was expected after the dot instead of \(token.text)", at: token.offset)
            }
            return try self.name(name, isRoot: true)
        case .symbol(.openParenthesis):
            place += 1
            let inner = try expression()
            try expect(.closeParenthesis)
            return inner
        case .symbol(.openBracket): return try list()
        case .symbol(.openBrace): return try map()
        default: throw Problem(.syntax, "a value was expected instead of \(token.text)", at: offset)
        }
    }

    private mutating func literal(_ value: ExpressionValue) throws(Problem) -> SyntaxTree.ID {
        place += 1
        return try add(literal: value, at: tokens[place - 1].offset)
    }

    private mutating func name(_ name: String, isRoot: Bool) throws(Problem) -> SyntaxTree.ID {
        let offset = token.offset
        guard !Self.literals.contains(name), !Self.reserved.contains(name) else {
            throw Problem(.syntax, "\"\(name)\" is a word of the language and cannot be a name", at: offset)
        }
        place += 1
        guard accept(.openParenthesis) else { return try add(.name(name, isRoot: isRoot), at: offset) }
        let arguments = try arguments()
        if name == "has", !isRoot, arguments.count == 1 {
            guard case .select(let operand, let field) = tree[arguments[0]].form else {
                throw Problem(.syntax, "has() needs a field, as in has(a.b)", at: tree[arguments[0]].offset)
            }
            return try add(.presence(operand, field: field), at: offset)
        }
        return try add(.call(isRoot ? "." + name : name, target: nil, arguments: arguments), at: offset)
    }

    private mutating func list() throws(Problem) -> SyntaxTree.ID {
        let offset = token.offset
        place += 1
        var elements: [SyntaxTree.ID] = []
        // An empty list can have a comma, too.
        if !accept(.comma) {
            while !sees(.closeBracket) {
                elements.append(try expression())
                guard accept(.comma) else { break }
            }
        }
        try expect(.closeBracket)
        return try add(.list(elements), at: offset)
    }

    private mutating func map() throws(Problem) -> SyntaxTree.ID {
        let offset = token.offset
        place += 1
        var entries: [(SyntaxTree.ID, SyntaxTree.ID)] = []
        if !accept(.comma) {
            while !sees(.closeBrace) {
                let key = try expression()
                try expect(.colon)
                entries.append((key, try expression()))
                guard accept(.comma) else { break }
            }
        }
        try expect(.closeBrace)
        return try add(.map(entries.map { (key: $0.0, value: $0.1) }), at: offset)
    }

    // MARK: Macros

    /// Parses a call that is a macro by its name and its number of arguments; nil for another call.
    private mutating func macro(
        _ name: String, on range: SyntaxTree.ID, _ arguments: [SyntaxTree.ID], at offset: Int
    ) throws(Problem) -> SyntaxTree.ID? {
        if name == SyntaxTree.Fold.Kind.bind.rawValue { return try bind(range, arguments, at: offset) }
        guard let kind = SyntaxTree.Fold.Kind(rawValue: name == "existsOne" ? "exists_one" : name),
            let variables = Self.variables(of: kind, arguments.count)
        else { return nil }
        let names = try arguments.prefix(variables).map { id throws(Problem) in try variable(id, of: name) }
        guard variables == 1 || names[0] != names[1] else {
            throw Problem(.syntax, "\(name)() has two variables of one name", at: tree[arguments[1]].offset)
        }
        let rest = arguments.dropFirst(variables)
        let transforms = kind == .map || kind == .transformList || kind == .transformMap
        let transform = transforms ? rest.last : nil
        let predicate = transforms && rest.count == 1 ? nil : rest.first
        return try add(
            .fold(
                .init(
                    kind: kind, range: range, variable: names[0], second: variables == 2 ? names[1] : nil,
                    predicate: predicate, transform: transform)),
            at: offset)
    }

    /// Returns the number of variables of a macro with a number of arguments; nil if the call is not a macro.
    private static func variables(of kind: SyntaxTree.Fold.Kind, _ arguments: Int) -> Int? {
        switch (kind, arguments) {
        case (.all, 2), (.exists, 2), (.existsOne, 2), (.filter, 2), (.map, 2), (.map, 3): 1
        case (.all, 3), (.exists, 3), (.existsOne, 3), (.transformList, 3...4), (.transformMap, 3...4): 2
        default: nil
        }
    }

    private func variable(_ id: SyntaxTree.ID, of name: String) throws(Problem) -> String {
        guard case .name(let variable, false) = tree[id].form else {
            throw Problem(.syntax, "\(name)() needs its variable first, as in \(name)(x, …)", at: tree[id].offset)
        }
        return variable
    }

    /// Parses `cel.bind(x, value, …)`.
    private mutating func bind(
        _ target: SyntaxTree.ID, _ arguments: [SyntaxTree.ID], at offset: Int
    ) throws(Problem) -> SyntaxTree.ID? {
        guard case .name("cel", false) = tree[target].form, arguments.count == 3 else { return nil }
        let name = try variable(arguments[0], of: "cel.bind")
        return try add(
            .fold(.init(kind: .bind, range: arguments[1], variable: name, predicate: nil, transform: arguments[2])),
            at: offset)
    }
}
