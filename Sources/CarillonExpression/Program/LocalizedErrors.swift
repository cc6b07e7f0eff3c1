#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

extension ExpressionProblem: LocalizedError, CustomStringConvertible {
    /// The place in the text of the condition, and ``message``.
    public var errorDescription: String? { description }
    /// The line, the column and the message.
    public var description: String { "\(position.line):\(position.column): \(message)" }
}

extension ExpressionRefusal: LocalizedError {
    /// Each problem with its line: ``description``.
    public var errorDescription: String? { description }
}

extension ExpressionError: LocalizedError {
    /// The place in the text of the condition, and ``message``.
    public var errorDescription: String? { description }
}
