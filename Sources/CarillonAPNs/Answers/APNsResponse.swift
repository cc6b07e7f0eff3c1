/// The service's answer to one push.
public struct APNsResponse: Hashable, Sendable {
    /// What the service decided.
    public enum Outcome: Hashable, Sendable {
        /// The service took the push. Whether the device gets it, the service does not say.
        case accepted
        /// The service refused the push.
        case rejected(APNsRejection)
    }

    /// What the service decided.
    public let outcome: Outcome
    /// The HTTP status.
    public let status: Int
    /// The notification's ID as the service gave it back: its own when the notification had none.
    ///
    /// Nil for a push that waited when the service refused the credentials or the topic of another push. The service has not
    /// processed it: it was not sent, or it was sent and came back, for instance because the service refused its stream.
    public let id: String?
    /// The ID by which Apple's Push Notifications Console finds the push. The sandbox alone gives it.
    public let uniqueID: String?
    /// The ID of the request, which broadcasts have.
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

    /// Whether the service took the push.
    public var isAccepted: Bool { outcome == .accepted }

    /// The refusal; nil when the service took the push.
    public var rejection: APNsRejection? {
        guard case .rejected(let rejection) = outcome else { return nil }
        return rejection
    }
}
