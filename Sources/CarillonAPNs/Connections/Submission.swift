import Synchronization

/// What one request came to.
typealias SubmissionResult = Result<RawAnswer, APNsError>

/// A request from when it is made until it is answered: one object, which is handed on and never copied.
///
/// `@unchecked Sendable`: the submitter says who waits before a pool has the request, and reads the result when it was woken.
/// In between what can change is the pool's, on its loop. Cancelling alone comes from anywhere.
final class Submission: @unchecked Sendable {
    /// Who waits for a request.
    enum Waiter {
        case single(UnsafeContinuation<Void, Never>)
        case batch(BatchBox)
    }

    /// Where a pool has it.
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
    /// Whether it may be sent again, by policy, when nobody knows what became of it.
    let isRepeatable: Bool
    /// Which answers are consent.
    let rule: AnswerRule
    /// Its number in its batch.
    let index: Int
    private let stage = Atomic(Stage.new)
    private(set) var waiter: Waiter?
    /// Set once, before whoever waits is woken.
    private(set) var result = SubmissionResult.failure(ConnectionPool.cancelledError)

    // What a pool notes of it, from when it takes it on.
    var push: PushID?
    var beganAt = Moment.distantPast
    var deadline = Moment.distantPast
    var place = Place.queued
    /// Whether it was given to a connection, at least once.
    var wasSent = false
    var answers = 0
    var returns = 0
    var resets = 0
    var lostCount = 0
    /// The refusal after which it waits to be sent again.
    var refusal: RawAnswer?
    /// How often it was sent again because of its provider token.
    var renewals = 0
    /// How often it was sent again because its connection may be too old for its topic or key.
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

    /// The topic of a push to a device.
    var topic: String? { head.fields.first { $0.name == .apnsTopic }?.value }

    /// Hands the request to a pool and waits for what it comes to. When the task is cancelled it is taken back if it can be.
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

    /// Sets the result; whoever waits is woken by ``wake()``.
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

    /// Its batch has it, which is not to be held by what it holds.
    func handedOver() { waiter = nil }

    /// Answers a request that never came to a pool's loop.
    func end(_ result: SubmissionResult) {
        finish(result)
        wake()
    }
}
