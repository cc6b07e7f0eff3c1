/// Why a condition is rejected, and at which position.
public struct ExpressionProblem: Error, Sendable, Hashable {
    /// The kind of a problem.
    public struct Code: Sendable, Hashable {
        public let name: String

        /// The syntax is invalid.
        public static let syntax = Code(name: "syntax")
        /// There is no such variable, function or type.
        public static let unknownName = Code(name: "unknown_name")
        /// A function or an operator does not accept the types.
        public static let type = Code(name: "type")
        /// The pattern of `matches` is invalid.
        public static let pattern = Code(name: "pattern")
        /// The text is longer, or has more parts, than the limits allow.
        public static let size = Code(name: "size")
        /// The parts are nested more deeply than the limits allow.
        public static let depth = Code(name: "depth")
        /// The cost exceeds the limits.
        public static let cost = Code(name: "cost")
    }

    public let code: Code
    public let message: String
    public let position: ExpressionPosition
}

/// A rejected condition with all of its problems, in the order of its text. There is at least one.
public struct ExpressionRefusal: Error, Sendable, CustomStringConvertible {
    public let source: String
    public let problems: [ExpressionProblem]

    /// Each problem with its line, or with a part of a long line, and a caret below its position.
    public var description: String {
        // The text is split by code points, because a carriage return and a line feed are one character in Swift.
        let lines = source.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false)
        return problems.map { problem in
            let position = problem.position
            let line = position.line <= lines.count ? lines[position.line - 1] : Substring.UnicodeScalarView()
            let before = line.prefix(position.column - 1)
            let shownBefore = before.suffix(Self.shown)
            let after = line.dropFirst(position.column - 1)
            let shownAfter = after.prefix(Self.shown)
            let cut = shownBefore.count < before.count ? "…" : ""
            var text = cut + String(shownBefore) + String(shownAfter)
            if text.unicodeScalars.last == "\r" { text.unicodeScalars.removeLast() }
            if shownAfter.count < after.count { text += "…" }
            // Tabs are kept, so that the caret is below the position.
            let indent = (cut + String(shownBefore)).unicodeScalars.map { $0 == "\t" ? "\t" : " " }.joined()
            return "\(position.line):\(position.column): \(problem.message)\n    \(text)\n    \(indent)^"
        }.joined(separator: "\n")
    }

    /// The number of code points that are shown on each side of the position.
    private static let shown = 100
}

/// A problem before its line and column are computed.
struct Problem: Error {
    let code: ExpressionProblem.Code
    let message: String
    let offset: Int

    init(_ code: ExpressionProblem.Code, _ message: String, at offset: Int) {
        self.code = code
        self.message = message
        self.offset = offset
    }
}

extension ExpressionRefusal {
    /// Makes a refusal of a whole condition, for a host with requirements beyond those of the language.
    public init(source: String, sentence: String, code: ExpressionProblem.Code) {
        self.init([Problem(code, sentence, at: 0)], in: source)
    }

    init(_ problems: [Problem], in source: String) {
        self.source = source
        self.problems = problems.sorted { $0.offset < $1.offset }.map {
            ExpressionProblem(
                code: $0.code, message: $0.message, position: ExpressionPosition(utf8Offset: $0.offset, in: source))
        }
    }
}
