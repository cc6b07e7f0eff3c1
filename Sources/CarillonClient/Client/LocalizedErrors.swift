#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

extension PushError: LocalizedError {
    /// ``message``.
    public var errorDescription: String? { message }
}

extension ServiceError: LocalizedError {
    /// ``text``, or a sentence with the code if the text is empty.
    public var errorDescription: String? {
        guard text.isEmpty else { return text }
        let name = number.map { "\(domain) \($0)" } ?? code.name
        return "The request of a service has no result: \(name)."
    }
}

extension ServiceDefinitionFaults: LocalizedError {
    /// A line for each fault.
    public var errorDescription: String? { description }
}

extension UpdateFailure: LocalizedError, CustomStringConvertible {
    /// ``message``.
    public var errorDescription: String? { message }
    /// The kind and the message.
    public var description: String { "\(kind): \(message)" }
}

extension ContentFault: LocalizedError, CustomStringConvertible {
    /// The sentence of the content store.
    public var errorDescription: String? {
        switch self {
        case .retryable(let message), .permanent(let message): message
        }
    }

    /// Whether the fault may pass, and the sentence of the content store.
    public var description: String {
        switch self {
        case .retryable(let message): "retryable: \(message)"
        case .permanent(let message): "permanent: \(message)"
        }
    }
}
