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

    /// Each problem with the line it is in and a caret under its place.
    public var description: String {
        let lines = source.split(separator: "\n", omittingEmptySubsequences: false)
        return problems.map { problem in
            let position = problem.position
            let line = position.line <= lines.count ? String(lines[position.line - 1]) : ""
            // Tabs stay, so that the caret stands where the place is shown.
            let indent = line.unicodeScalars.prefix(position.column - 1).map { $0 == "\t" ? "\t" : " " }.joined()
            return "\(position.line):\(position.column): \(problem.message)\n    \(line)\n    \(indent)^"
        }.joined(separator: "\n")
    }
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
    init(_ problems: [Problem], in source: String) {
        self.source = source
        self.problems = problems.sorted { $0.offset < $1.offset }.map {
            ExpressionProblem(
                code: $0.code, message: $0.message, position: ExpressionPosition(utf8Offset: $0.offset, in: source))
        }
    }
}
