/// What became of one push of many.
public struct APNsResult<Recipient: APNsRecipient>: Sendable {
    /// To whom it went.
    public let recipient: Recipient
    /// The service's answer, or why there is none.
    public let result: Result<APNsResponse, APNsError>

    /// Makes a result, for instance in the tests of a backend.
    public init(recipient: Recipient, result: Result<APNsResponse, APNsError>) {
        self.recipient = recipient
        self.result = result
    }

    /// Whether the service took the push.
    public var isAccepted: Bool { response?.isAccepted ?? false }

    /// The service's answer; nil when there is none.
    public var response: APNsResponse? {
        guard case .success(let response) = result else { return nil }
        return response
    }

    /// The service's refusal; nil when it took the push, or when there is no answer.
    public var rejection: APNsRejection? { response?.rejection }

    /// Why there is no answer; nil when there is one.
    public var error: APNsError? {
        guard case .failure(let error) = result else { return nil }
        return error
    }
}
