import CarillonWire
import Metrics
import Synchronization

/// Limits expensive requests: one at a time for each app, and a few for all apps, so that no app delays the others.
package final class RequestLimiter: Sendable {
    package typealias Limits = TurnQueue<AppSerial>.Limits

    /// The kind of the requests.
    package enum Kind: String, CaseIterable, Sendable {
        /// An audience is evaluated for an app's devices.
        case preview
        /// A list of devices, of completions or of the audit is read, or a subscription is explained.
        case listing
    }

    private struct State {
        var queue: TurnQueue<AppSerial>
        var waiting: [Int: CheckedContinuation<Bool, Never>] = [:]
    }

    private let kind: Kind
    private let wait: Duration
    private let scheduler: Scheduler
    private let state: Mutex<State>
    private let refused: Counter

    package init(of kind: Kind, limits: Limits = Limits(), scheduler: Scheduler) {
        self.kind = kind
        wait = limits.wait
        self.scheduler = scheduler
        state = Mutex(State(queue: TurnQueue(limits: limits)))
        refused = ServerMetric.rateRefusals.counter(kind.rawValue)
    }

    /// Performs a request of an app when it is the request's turn.
    ///
    /// - Throws: ``ErrorCode/rateLimited`` if other requests take too long. The request was not begun then.
    package func take<Value: Sendable>(
        of app: AppSerial, _ work: @Sendable () async throws -> Value
    ) async throws -> Value {
        guard await begin(app) else {
            refused.increment()
            throw Refusal(.rateLimited, kind.refusal, retryAfterSeconds: max(1, Int(wait.components.seconds)))
        }
        defer { end(app) }
        return try await work()
    }

    /// Returns whether the request may begin.
    private func begin(_ app: AppSerial) async -> Bool {
        await withCheckedContinuation { continuation in
            let admission = state.withLock { state in
                let admission = state.queue.request(app)
                if case .waits(let number) = admission { state.waiting[number] = continuation }
                return admission
            }
            switch admission {
            case .granted: continuation.resume(returning: true)
            case .refused: continuation.resume(returning: false)
            case .waits(let number): scheduler.run(wait) { [weak self] in self?.giveUp(number) }
            }
        }
    }

    private func giveUp(_ number: Int) {
        let continuation = state.withLock { state in
            state.queue.giveUp(number) ? state.waiting.removeValue(forKey: number) : nil
        }
        continuation?.resume(returning: false)
    }

    private func end(_ app: AppSerial) {
        let granted = state.withLock { state in
            state.queue.end(app).compactMap { state.waiting.removeValue(forKey: $0) }
        }
        for continuation in granted { continuation.resume(returning: true) }
    }
}

extension RequestLimiter.Kind {
    fileprivate var refusal: String {
        switch self {
        case .preview:
            "The server evaluates one audience at a time for an app, and two at a time for all apps. Retry later."
        case .listing:
            "The server reads one page of this kind at a time for an app, and two at a time for all apps. Retry later."
        }
    }
}
