import CarillonCore
import CarillonWire
import Synchronization

/// A session that a home calls over a link.
///
/// The calls reach the session in their order, each after a delay. While the home makes a call, the call is only added to a
/// queue, so that the session cannot call the home during it. If the link is lost, the session ends with ``SessionEnd/linkLost``.
/// An unanswered offer then counts as not delivered. A withdrawal and the beginning of a move are completed when the session has
/// ended.
final class LinkedSession: LiveSession {
    private enum Step {
        case wait(until: ContinuousClock.Instant)
        case pass(SessionCall)
        /// The session ends. The values are the answers that are still expected from it.
        case end([@Sendable (Bool) -> Void])
        /// A call that arrives after the end.
        case late(SessionCall)
        case done
    }

    private struct State {
        var queue = DelayedQueue<SessionCall>()
        /// The task that passes the calls on; nil if no call waits.
        var task: Task<Void, Never>?
        var isLost = false
        /// Whether the session ended because the link was lost.
        var hasEnded = false
        /// Whether the home ended the session. In this case it does not arrive at another home.
        var isEnded = false
        var device: DeviceSerial?
        /// The expected answers to offers of TTL 0.
        var answers: [Int: @Sendable (Bool) -> Void] = [:]
        var lastAnswer = 0

        mutating func next() -> Step {
            if isLost {
                if !hasEnded {
                    hasEnded = true
                    defer { answers = [:] }
                    return .end(Array(answers.values))
                }
                if let (call, _) = queue.popFirst() { return .late(call) }
            } else if let due = queue.due {
                if due > .now { return .wait(until: due) }
                if let (call, _) = queue.popFirst() { return .pass(call) }
            }
            task = nil
            return .done
        }
    }

    /// The session of the connection.
    let session: any LiveSession
    private let delay: LinkDelay
    private let limits: LinkedHome.Limits
    private let onLost: @Sendable (LinkedSession) -> Void
    private let onMoved: @Sendable (LinkedSession) -> (@Sendable () async -> ArrivedAgain)?
    private let state = Mutex(State())

    /// - Parameters:
    ///   - onLost: Called when the session has ended because the link was lost or the limits were exceeded.
    ///   - onMoved: Called when the home has passed the device of the session to another home. Returns a function with which the
    ///     session arrives at the new home.
    init(
        _ session: any LiveSession, delay: LinkDelay, limits: LinkedHome.Limits,
        onLost: @escaping @Sendable (LinkedSession) -> Void,
        onMoved: @escaping @Sendable (LinkedSession) -> (@Sendable () async -> ArrivedAgain)? = { _ in nil }
    ) {
        self.session = session
        self.delay = delay
        self.limits = limits
        self.onLost = onLost
        self.onMoved = onMoved
    }

    /// The device that the home connected; nil before the connection.
    var device: DeviceSerial? { state.withLock { $0.device } }

    func connected(_ device: DeviceSerial) { state.withLock { $0.device = device } }

    /// The link was lost. The session ends soon.
    func lose() {
        let sleeping = state.withLock { state in
            state.isLost = true
            defer { begin(&state) }
            return state.task
        }
        // The task must not wait for the time of the next call.
        sleeping?.cancel()
    }

    // MARK: The queue

    private func add(_ call: SessionCall) {
        let due = delay.due()
        state.withLock { state in
            guard !state.isLost || call.isAnswered else { return }
            state.queue.append(call, bytes: call.byteCount, due: due)
            if state.queue.count > limits.sessionCalls || state.queue.bytes > limits.sessionBytes { state.isLost = true }
            begin(&state)
        }
    }

    private func begin(_ state: inout State) {
        guard state.task == nil else { return }
        // The task ends when no call waits.
        state.task = Task { await self.pass() }
    }

    private func pass() async {
        while true {
            switch state.withLock({ $0.next() }) {
            case .wait(let due): try? await Task.sleep(until: due, clock: .continuous)
            case .pass(let call): pass(call)
            case .end(let answers):
                session.end(because: .linkLost)
                for answer in answers { answer(false) }
                onLost(self)
            case .late(.offerVolatile(_, let answer)): answer(false)
            case .late(.withdrew(let withdrawal, let done)): session.withdrew(withdrawal, done: done)
            case .late(.moving(let done)): session.moving(done: done)
            case .late: break
            case .done: return
            }
        }
    }

    private func pass(_ call: SessionCall) {
        switch call {
        case .offerVolatile(let envelope, let answer):
            let number = state.withLock { state in
                state.lastAnswer += 1
                state.answers[state.lastAnswer] = answer
                return state.lastAnswer
            }
            session.offerVolatile(envelope) { self.answered(number, wasAccepted: $0) }
        case .withdrew(let withdrawal, let done):
            session.withdrew(withdrawal) { [delay] in
                // The task ends after the delay.
                Task {
                    await delay.pass()
                    done()
                }
            }
        case .end(let reason):
            state.withLock { $0.isEnded = true }
            session.end(because: reason)
        case .moving(let done):
            session.moving { [delay] in
                // The task ends after the delay.
                Task {
                    await delay.pass()
                    done()
                }
            }
        case .moved(.gone):
            let again = onMoved(self)
            session.moved(state.withLock { $0.isEnded } ? .gone : again.map { .arrives($0) } ?? .gone)
        case .offer, .storedMore, .finished, .providersChanged, .moved: call.make(to: session)
        }
    }

    private func answered(_ number: Int, wasAccepted: Bool) {
        // The task ends after the delay.
        Task {
            await delay.pass()
            let answer = state.withLock { $0.answers.removeValue(forKey: number) }
            answer?(wasAccepted)
        }
    }

    // MARK: Calls of the home

    func offer(_ envelope: Envelope) { add(.offer(envelope)) }

    func offerVolatile(_ envelope: Envelope, answer: @escaping @Sendable (Bool) -> Void) {
        add(.offerVolatile(envelope, answer: answer))
    }

    func storedMore() { add(.storedMore) }

    func withdrew(_ withdrawal: DeliveryMachine.Withdrawal, done: @escaping @Sendable () -> Void) {
        add(.withdrew(withdrawal, done: done))
    }

    func finished(_ ids: [MessageID]) { add(.finished(ids)) }

    func providersChanged() { add(.providersChanged) }

    func end(because reason: SessionEnd) { add(.end(reason)) }

    func moving(done: @escaping @Sendable () -> Void) { add(.moving(done: done)) }

    func moved(_ end: MoveEnd) { add(.moved(end)) }

    var executor: (any TaskExecutor)? { session.executor }
}

extension SessionCall {
    /// Whether the home waits for an answer.
    fileprivate var isAnswered: Bool {
        switch self {
        case .offerVolatile, .withdrew, .moving: true
        case .offer, .storedMore, .finished, .providersChanged, .end, .moved: false
        }
    }

    fileprivate var byteCount: Int {
        switch self {
        case .offer(let envelope), .offerVolatile(let envelope, _): envelope.byteCount
        case .finished(let ids): Self.bytes * (1 + ids.count)
        case .storedMore, .withdrew, .providersChanged, .end, .moving, .moved: Self.bytes
        }
    }

    private static let bytes = 32
}
