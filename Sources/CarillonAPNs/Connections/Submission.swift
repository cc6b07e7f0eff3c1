import Synchronization

/// The result of one request.
typealias SubmissionResult = Result<RawAnswer, APNsError>

/// A request, from its creation until its result. It is one object, which is passed on and never copied.
///
/// `@unchecked Sendable`: the submitter sets the waiter before a pool has the request, and reads the result after it was
/// resumed. Between these, the pool changes the state on its loop. Only cancellation comes from any thread.
final class Submission: @unchecked Sendable {
    /// The waiter of a request.
    enum Waiter {
        case single(UnsafeContinuation<Void, Never>)
        case batch(BatchBox)
    }

    /// The place of the request in a pool.
    enum Place {
        case queued
        case delayed
        case stream(Link, UInt32)
    }

    private enum Stage: UInt8, AtomicRepresentable {
        case new
        case submitted
        case cancelled
    }

    let head: APNsRequestHead
    let path: String
    let body: RequestBody
    let timeout: Duration
    /// Whether the policy may send the request again when its outcome is unknown.
    let isRepeatable: Bool
    /// The rule by which a response accepts the request.
    let rule: AnswerRule
    /// The index of the request in its batch.
    let index: Int
    private let stage = Atomic(Stage.new)
    private(set) var waiter: Waiter?
    /// Set once, before the waiter is resumed.
    private(set) var result = SubmissionResult.failure(ConnectionPool.cancelledError)

    // The state that a pool records, after it has accepted the request.
    var push: PushID?
    var beganAt = Moment.distantPast
    var deadline = Moment.distantPast
    var place = Place.queued
    /// Whether the request was sent on a connection at least once.
    var wasSent = false
    var answers = 0
    var returns = 0
    var resets = 0
    var lostCount = 0
    /// The rejection after which the request waits to be sent again.
    var refusal: RawAnswer?
    /// How often the request was sent again because of its provider token.
    var renewals = 0
    /// How often the request was sent again because its connection may be too old for its APNs topic or key.
    var moves = 0
    var waited = Duration.zero
    var token: ProviderToken?

    init(
        head: APNsRequestHead, path: String, body: RequestBody, timeout: Duration, waiter: Waiter? = nil,
        isRepeatable: Bool = true, rule: AnswerRule = .push, index: Int = 0
    ) {
        self.head = head
        self.path = path
        self.body = body
        self.timeout = timeout
        self.waiter = waiter
        self.isRepeatable = isRepeatable
        self.rule = rule
        self.index = index
    }

    /// The APNs topic of a push to a device.
    var topic: String? { head.fields.first { $0.name == .apnsTopic }?.value }

    /// Submits the request to a pool, and waits for the result. When the task is cancelled, the request is withdrawn if
    /// possible.
    func result(of pool: ConnectionPool) async -> SubmissionResult {
        await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                waiter = .single(continuation)
                submit(to: pool)
            }
        } onCancel: {
            if stage.exchange(.cancelled, ordering: .acquiringAndReleasing) == .submitted { pool.cancel(self) }
        }
        return result
    }

    private func submit(to pool: ConnectionPool) {
        guard stage.load(ordering: .acquiring) == .new else { return end(.failure(ConnectionPool.cancelledError)) }
        guard pool.submit(self) else { return }
        let (isKept, _) = stage.compareExchange(
            expected: .new, desired: .submitted, ordering: .acquiringAndReleasing)
        if !isKept { pool.cancel(self) }
    }

    /// Sets the result. ``wake()`` resumes the waiter.
    func finish(_ result: SubmissionResult) {
        self.result = result
        place = .queued
    }

    func wake() {
        switch waiter {
        case .single(let continuation): continuation.resume()
        case .batch(let box): box.finished([self])
        case nil: break
        }
    }

    /// Removes the reference to the batch, which now refers to the request.
    func handedOver() { waiter = nil }

    /// Finishes a request that has not reached a pool's loop.
    func end(_ result: SubmissionResult) {
        finish(result)
        wake()
    }
}
