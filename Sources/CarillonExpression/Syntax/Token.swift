struct Token {
    enum Kind: Equatable {
        case name(String)
        /// A name between backticks, after a dot only.
        case quotedName(String)
        case int(UInt64)
        case uint(UInt64)
        case double(Double)
        case string(String)
        case bytes([UInt8])
        case symbol(Symbol)
        case end
    }

    enum Symbol: String, CaseIterable {
        case or = "||", and = "&&", equal = "==", unequal = "!=", lessOrEqual = "<=", moreOrEqual = ">="
        case less = "<", more = ">", plus = "+", minus = "-", times = "*", divided = "/", modulo = "%", not = "!"
        case question = "?", colon = ":", comma = ",", dot = "."
        case openParenthesis = "(", closeParenthesis = ")", openBracket = "[", closeBracket = "]", openBrace = "{",
            closeBrace = "}"
    }

    let kind: Kind
    /// The position in UTF-8 from the beginning.
    let offset: Int

    /// The token in error messages.
    var text: String {
        switch kind {
        case .name(let name): "\"\(name)\""
        case .quotedName(let name): "`\(name)`"
        case .int, .uint, .double: "a number"
        case .string: "a string"
        case .bytes: "bytes"
        case .symbol(let symbol): "\"\(symbol.rawValue)\""
        case .end: "the end"
        }
    }
}
