/// Swift code without its comments and without the content of its string literals and regular expressions.
enum SwiftSource {
    private static let (lineComment, blockComment, blockEnd) = (Array("//".utf8), Array("/*".utf8), Array("*/".utf8))
    private static let (long, raw, rawEnd) = (Array("\"\"\"".utf8), Array("#\"".utf8), Array("\"#".utf8))
    private static let (short, slash) = (Array("\"".utf8), Array("/".utf8))
    /// The marks before a regular expression.
    private static let openings = Set("(,=:".utf8)

    static func code(_ text: String) -> String {
        let bytes = Array(text.utf8)
        var (code, index): ([UInt8], Int) = ([], 0)
        func isNext(_ mark: [UInt8]) -> Bool { bytes[index...].starts(with: mark) }
        func skip(_ begin: [UInt8], to end: [UInt8], hasEscapes: Bool) {
            index += begin.count
            while index < bytes.count, !isNext(end) {
                index += hasEscapes && bytes[index] == UInt8(ascii: "\\") ? 2 : 1
            }
            index = min(index + end.count, bytes.count)
        }
        /// Whether the slash at the index begins a regular expression. Another slash is an operator.
        func beginsExpression() -> Bool {
            guard let next = bytes[(index + 1)...].first, next > UInt8(ascii: " "), next != UInt8(ascii: ")"),
                let former = code.last(where: { $0 > UInt8(ascii: " ") })
            else { return false }
            return openings.contains(former)
        }
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "/") where isNext(lineComment):
                index = bytes[index...].firstIndex(of: UInt8(ascii: "\n")) ?? bytes.count
            case UInt8(ascii: "/") where isNext(blockComment):
                skip(blockComment, to: blockEnd, hasEscapes: false)
            case UInt8(ascii: "/") where beginsExpression():
                skip(slash, to: slash, hasEscapes: true)
                code += short + short
            case UInt8(ascii: "\""):
                let quote = isNext(long) ? long : short
                skip(quote, to: quote, hasEscapes: true)
                code += short + short
            case UInt8(ascii: "#") where isNext(raw):
                skip(raw, to: rawEnd, hasEscapes: false)
                code += short + short
            default:
                code.append(bytes[index])
                index += 1
            }
        }
        return String(decoding: code, as: UTF8.self)
    }

    /// Returns the text between a bracket at the beginning of the text and its counterpart; nil if there is none.
    static func bracketed(_ text: Substring) -> Substring? {
        guard let first = text.first, "([{".contains(first) else { return nil }
        var depth = 0
        for index in text.indices {
            if "([{".contains(text[index]) { depth += 1 }
            if ")]}".contains(text[index]) { depth -= 1 }
            if depth == 0 { return text[text.index(after: text.startIndex)..<index] }
        }
        return nil
    }

    /// Splits the arguments or the parameters of a function.
    ///
    /// - Parameter areTypes: Whether angle brackets enclose types; in expressions they compare.
    static func parts(of list: Substring, areTypes: Bool) -> [Substring] {
        var (parts, depth, before): ([Substring], Int, Character) = ([], 0, " ")
        var start = list.startIndex
        for index in list.indices {
            let character = list[index]
            if "([{".contains(character) || (areTypes && character == "<") { depth += 1 }
            if ")]}".contains(character) || (areTypes && character == ">" && before != "-") { depth -= 1 }
            if character == ",", depth == 0 {
                parts.append(list[start..<index])
                start = list.index(after: index)
            }
            before = character
        }
        parts.append(list[start...])
        return parts.filter { !$0.allSatisfy(\.isWhitespace) }
    }
}
