import Synchronization

/// A request on its way to a pool.
struct Submission: Sendable {
    /// By which the submitter can take it back.
    var number: UInt64 = 0
    var head: RequestHead
    var path: String
    var body: RequestBody
    var timeout: Duration
    var completion: Completion
}

/// What one request came to.
typealias SubmissionResult = Result<RawAnswer, APNsError>

/// Who waits for a request.
enum Completion: Sendable {
    case single(UnsafeContinuation<SubmissionResult, Never>)
    case batch(BatchBox, Int)
}
