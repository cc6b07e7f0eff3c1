/// Why there is no device yet, or no answer of the server to another request.
enum RegistrationFailure: Equatable, Sendable {
    /// No answer came.
    case unreachable
    /// The server cannot now; it may say when to come back.
    case unavailable(retryAfter: Duration?)
    /// The same request will never succeed.
    case refused

    /// The wait that the server asks for.
    var retryAfter: Duration? { if case .unavailable(let retryAfter) = self { retryAfter } else { nil } }
}
