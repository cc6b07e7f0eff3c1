package import CarillonWire

/// What became of one call outward.
package enum CallResult: Equatable, Sendable {
    /// An answer of HTTP came, whole and within its bounds.
    case answered(status: Int)
    /// `detail` is for the developer of the back end, and holds nothing of the answer.
    case failed(PingFailure, detail: String)
    /// This server could not make it, by no fault of the other side.
    case notMade(reason: String)
    /// Nobody can make it any more: what it needs is gone.
    case impossible(reason: String)

    package var isSuccess: Bool {
        if case .answered(let status) = self { (200..<300).contains(status) } else { false }
    }
}
