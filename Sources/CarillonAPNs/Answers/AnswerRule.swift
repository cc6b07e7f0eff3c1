/// The rule by which a response accepts a request.
///
/// APNs sends an ID with each response. A successful response without an ID comes from another program on the way to APNs,
/// and the outcome of the request is unknown.
enum AnswerRule: Sendable {
    /// A push to a device: 200 with an `apns-id`.
    case push
    /// A broadcast: 200 with an `apns-request-id` or an `apns-id`.
    case broadcast
    /// A request about channels: any 2xx status, with an `apns-request-id` or an `apns-id`.
    case management

    /// Returns the result of the request for its response.
    func result(_ answer: RawAnswer) -> SubmissionResult {
        guard answer.isSuccess else { return .success(answer.read()) }
        guard answer.status == 200 || self == .management else { return .success(answer.refused()) }
        let hasID = answer.id != nil || (self != .push && answer.requestID != nil)
        return hasID ? .success(answer) : .failure(Self.noID(answer))
    }

    private static func noID(_ answer: RawAnswer) -> APNsError {
        APNsError(
            .answerInvalid,
            "The answer has status \(answer.status) and no ID, which the service always sends. Check for a proxy in between.",
            mayHaveBeenProcessed: true)
    }
}
