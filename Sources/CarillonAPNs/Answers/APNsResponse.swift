/// The response of APNs to one push.
public struct APNsResponse: Hashable, Sendable {
    /// Whether APNs accepted or rejected the push.
    public enum Outcome: Hashable, Sendable {
        /// APNs accepted the push. APNs does not report whether the device receives it.
        case accepted
        /// APNs rejected the push.
        case rejected(APNsRejection)
    }

    /// Whether APNs accepted or rejected the push.
    public let outcome: Outcome
    /// The HTTP status.
    public let status: Int
    /// The notification's ID, as APNs returned it. APNs generates an ID if the notification has none.
    ///
    /// Nil for a push that was waiting when APNs rejected the push credentials or the APNs topic of another push. APNs has
    /// not processed this push: it was not sent, or was sent and returned, for instance because APNs refused its stream.
    public let id: String?
    /// The ID of the push in Apple's Push Notifications Console. Only the sandbox returns it.
    public let uniqueID: String?
    /// The ID of the request. Only the responses to broadcasts have one.
    public let requestID: String?

    /// Makes a response, for instance in the tests of a backend.
    public init(
        outcome: Outcome, status: Int, id: String? = nil, uniqueID: String? = nil, requestID: String? = nil
    ) {
        self.outcome = outcome
        self.status = status
        self.id = id
        self.uniqueID = uniqueID
        self.requestID = requestID
    }

    /// Whether APNs accepted the push.
    public var isAccepted: Bool { outcome == .accepted }

    /// The rejection; nil if APNs accepted the push.
    public var rejection: APNsRejection? {
        guard case .rejected(let rejection) = outcome else { return nil }
        return rejection
    }
}
