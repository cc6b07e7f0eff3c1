/// Why a condition is not accepted, and where.
public struct ExpressionProblem: Error, Sendable, Hashable {
    /// What kind of problem it is.
    public struct Code: Sendable, Hashable {
        public let name: String

        /// It cannot be read.
        public static let syntax = Code(name: "syntax")
        /// A variable, function or type that there is not.
        public static let unknownName = Code(name: "unknown_name")
        /// A function or an operator that takes no such types.
        public static let type = Code(name: "type")
        /// A pattern that `matches` cannot take.
        public static let pattern = Code(name: "pattern")
        /// The text is longer, or has more parts, than the limits allow.
        public static let size = Code(name: "size")
        /// Its parts lie deeper in each other than the limits allow.
        public static let depth = Code(name: "depth")
        /// It could take longer than the limits allow.
        public static let cost = Code(name: "cost")
    }

    public let code: Code
    public let message: String
    public let position: ExpressionPosition
}

/// A condition that is not accepted, with all that is wrong in it, in the order of its text. There is at least one.
public struct ExpressionRefusal: Error, Sendable, CustomStringConvertible {
    public let source: String
    public let problems: [ExpressionProblem]

    /// Each problem with the line it is in, or what is near the place in a long one, and a caret under its place.
    public var description: String {
        // By code points: a carriage return and a line feed are one character to Swift.
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
            // Tabs stay, so that the caret stands where the place is shown.
            let indent = (cut + String(shownBefore)).unicodeScalars.map { $0 == "\t" ? "\t" : " " }.joined()
            return "\(position.line):\(position.column): \(problem.message)\n    \(text)\n    \(indent)^"
        }.joined(separator: "\n")
    }

    /// Code points on each side of the place.
    private static let shown = 100
}

/// A problem before its place is counted out.
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
    /// Of a condition as a whole, for a host that wants more of it than the language does.
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
