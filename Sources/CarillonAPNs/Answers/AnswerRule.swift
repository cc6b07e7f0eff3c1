/// Which answers to a request are the service's consent.
///
/// The service gives an ID with each answer. An answer of success without one comes from a program on the way to the service,
/// and says nothing about what became of the request.
enum AnswerRule: Sendable {
    /// A push to a device: 200 with an `apns-id`.
    case push
    /// A broadcast: 200 with an `apns-request-id` or an `apns-id`.
    case broadcast
    /// A request about channels: any status of success, with an `apns-request-id` or an `apns-id`.
    case management

    /// Returns the result of the request that an answer ends.
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
