package import CarillonWire

/// What became of one call outward.
package enum CallResult: Equatable, Sendable {
    /// An answer of HTTP came, whole and within its bounds.
    ///
    /// `retryAfter` is the wait that the answer asked for.
    case answered(status: Int, retryAfter: Duration? = nil)
    /// `detail` is for the developer of the back end, and holds nothing of the answer.
    case failed(PingFailure, detail: String)
    /// This server could not make it, by no fault of the other side.
    case notMade(reason: String)
    /// Nobody can make it any more: what it needs is gone.
    case impossible(reason: String)

    package var isSuccess: Bool {
        if case .answered(let status, _) = self { (200..<300).contains(status) } else { false }
    }

    /// The longest wait that a back end can ask for with a refusal.
    package static let longestWait = Duration.seconds(3600)

    /// The wait that a refusal asked for, at most ``longestWait``; nil for any other result.
    package var wait: Duration? {
        guard case .answered(_, let wait?) = self, !isSuccess else { return nil }
        return min(wait, Self.longestWait)
    }
}
