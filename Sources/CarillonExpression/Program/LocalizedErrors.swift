#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

extension ExpressionProblem: LocalizedError, CustomStringConvertible {
    /// The position in the text of the condition, and ``message``.
    public var errorDescription: String? { description }
    /// The line, the column and the message.
    public var description: String { "\(position.line):\(position.column): \(message)" }
}

extension ExpressionRefusal: LocalizedError {
    /// Each problem with its line, as in ``description``.
    public var errorDescription: String? { description }
}

extension ExpressionError: LocalizedError {
    /// The position in the text of the condition, and ``message``.
    public var errorDescription: String? { description }
}
