package import CarillonWire

/// The result of one outgoing call.
package enum CallResult: Equatable, Sendable {
    /// An HTTP response was received completely and within its limits.
    ///
    /// `retryAfter` is the delay that the response requested.
    case answered(status: Int, retryAfter: Duration? = nil)
    /// `detail` is for the developer of the backend, and contains nothing of the response.
    case failed(PingFailure, detail: String)
    /// This server could not make the call. The backend is not the cause.
    case notMade(reason: String)
    /// The call can never be made, because data that it needs does not exist any more.
    case impossible(reason: String)

    package var isSuccess: Bool {
        if case .answered(let status, _) = self { (200..<300).contains(status) } else { false }
    }

    /// The longest delay that a backend can request with a refusal.
    package static let longestWait = Duration.seconds(3600)

    /// The delay that a refusal requested, at most ``longestWait``; nil for any other result.
    package var wait: Duration? {
        guard case .answered(_, let wait?) = self, !isSuccess else { return nil }
        return min(wait, Self.longestWait)
    }
}
