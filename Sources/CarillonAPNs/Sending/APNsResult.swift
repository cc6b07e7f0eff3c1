/// The result of one push of a batch.
public struct APNsResult<Recipient: APNsRecipient>: Sendable {
    /// The recipient of the push.
    public let recipient: Recipient
    /// The response of APNs, or the reason why there is no response.
    public let result: Result<APNsResponse, APNsError>

    /// Makes a result, for instance in the tests of a backend.
    public init(recipient: Recipient, result: Result<APNsResponse, APNsError>) {
        self.recipient = recipient
        self.result = result
    }

    /// Whether APNs accepted the push.
    public var isAccepted: Bool { response?.isAccepted ?? false }

    /// The response of APNs; nil if the push has no response.
    public var response: APNsResponse? {
        guard case .success(let response) = result else { return nil }
        return response
    }

    /// The rejection; nil if APNs accepted the push, or if there is no response.
    public var rejection: APNsRejection? { response?.rejection }

    /// The reason why there is no response; nil if there is a response.
    public var error: APNsError? {
        guard case .failure(let error) = result else { return nil }
        return error
    }
}
