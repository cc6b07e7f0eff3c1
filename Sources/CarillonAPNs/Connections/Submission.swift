/// A request on its way to a pool.
struct Submission: Sendable {
    var head: APNsRequestHead
    var path: String
    var body: RequestBody
    var timeout: Duration
    var completion: Completion
    /// By which the submitter can take it back.
    var ticket: CancellationTicket?
    /// Whether it may be sent again, by policy, when nobody knows what became of it.
    var isRepeatable = true
}

/// What one request came to.
typealias SubmissionResult = Result<RawAnswer, APNsError>

/// Who waits for a request.
enum Completion: Sendable {
    case single(UnsafeContinuation<SubmissionResult, Never>)
    case batch(BatchBox, Int)

    /// Tells one that never came to a pool's loop.
    func resume(_ result: SubmissionResult) {
        switch self {
        case .single(let continuation): continuation.resume(returning: result)
        case .batch(let box, let index): box.finished([(index, result)])
        }
    }
}
