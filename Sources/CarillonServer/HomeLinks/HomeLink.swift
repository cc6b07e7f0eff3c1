import CarillonCore
import Synchronization

/// The link of a ``LinkedHome``. Sends calls after a delay, and fails them if the link is cut.
///
/// A call is sent through the queue of its device (``LinkQueues``), or independently of all other calls.
final class HomeLink: Sendable {
    typealias Work<Answer> = @Sendable () async throws(HomeFault) -> Answer

    private let delay: LinkDelay
    private let state: Mutex<LinkState>

    init(delay: LinkDelay, limits: LinkedHome.Limits) {
        self.delay = delay
        state = Mutex(LinkState(limits: limits))
    }

    // MARK: The link

    /// See ``LinkedHome/cut()``.
    func cut() {
        let (callers, sessions) = state.withLock { $0.cut() }
        for caller in callers { caller.fail() }
        for session in sessions { session.lose() }
    }

    /// Restores the link, so that it accepts calls again.
    func restore() { state.withLock { $0.restore() } }

    /// The number of times that the link was cut.
    var cuts: Int { state.withLock { $0.cuts } }

    /// The number of calls that were not sent yet.
    var waitingCalls: Int { state.withLock { $0.waitingCalls } }

    /// Waits until all earlier calls in queues were made.
    func flush() async {
        await withCheckedContinuation { continuation in
            if !state.withLock({ $0.add(continuation) }) { continuation.resume() }
        }
    }

    // MARK: Calls with an answer

    /// Makes a call through a queue. The next call of the queue does not wait for the answer.
    ///
    /// - Parameter session: The session that arrives.
    func call<Answer: Sendable>(
        by queue: LinkQueueName, bytes: Int, as session: LinkedSession? = nil, _ work: @escaping Work<Answer>
    ) async throws(HomeFault) -> Answer {
        let caller = LinkedCaller<Answer>()
        let outcome: LinkedCaller<Answer>.Outcome = await withCheckedContinuation { continuation in
            let call = LinkCall { [delay] in
                guard caller.send() else { return }
                let outcome = await Self.outcome(of: work)
                // The task ends after the delay.
                Task {
                    await delay.pass()
                    caller.end(outcome)
                }
            }
            let isTaken = caller.waits(continuation) && take(call, to: queue, bytes: bytes, of: caller, as: session)
            if !isTaken { caller.fail() }
        }
        forget(caller)
        return try outcome.get()
    }

    /// Makes a call independently of all other calls. If the caller is cancelled, so is the call at the home.
    ///
    /// - Parameter endsWithLink: Whether the call is cancelled at the home if the link is cut.
    func pass<Answer: Sendable>(
        bytes: Int, endsWithLink: Bool = false, _ work: @escaping Work<Answer>
    ) async throws(HomeFault) -> Answer {
        let caller = LinkedCaller<Answer>(endsWithLink: endsWithLink)
        let outcome: LinkedCaller<Answer>.Outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                guard caller.waits(continuation), state.withLock({ $0.take(of: caller, bytes: bytes) }) else {
                    return caller.fail()
                }
                // The task ends with the answer of the home.
                let task = Task {
                    await delay.pass()
                    state.withLock { $0.release(bytes) }
                    guard caller.send() else { return }
                    let outcome = await Self.outcome(of: work)
                    await delay.pass()
                    caller.end(outcome)
                }
                caller.runs(task)
            }
        } onCancel: {
            caller.cancel()
        }
        forget(caller)
        return try outcome.get()
    }

    private func forget<Answer>(_ caller: LinkedCaller<Answer>) { state.withLock { $0.forget(caller) } }

    private static func outcome<Answer>(of work: Work<Answer>) async -> Result<Answer, HomeFault> {
        do throws(HomeFault) {
            return .success(try await work())
        } catch {
            return .failure(error)
        }
    }

    // MARK: Calls without an answer

    /// Makes a call through a queue.
    ///
    /// - Returns: False if the link is cut or its limits are reached. In this case the call is not made.
    func send(by queue: LinkQueueName, bytes: Int, _ work: @escaping @Sendable () async -> Void) -> Bool {
        take(LinkCall(work: work), to: queue, bytes: bytes)
    }

    /// A session leaves. The call is made through its queue, even if the link is cut.
    func leave(_ session: LinkedSession, by queue: LinkQueueName, _ work: @escaping @Sendable () async -> Void) {
        let due = delay.due()
        let taken = state.withLock { state in
            state.leaves(session)
            return state.take(LinkCall(isOfHome: true, work: work), to: queue, bytes: 0, due: due)
        }
        begin(taken)
    }

    // MARK: Sessions

    /// Returns the session at the home that belongs to the session of a connection. Returns nil if it did not arrive, or is
    /// leaving.
    func arrived(_ session: any LiveSession) -> LinkState.Arrived? { state.withLock { $0.arrived(session) } }

    /// The home connected a session that arrived through a queue.
    ///
    /// - Returns: Whether the session can stay. It cannot if an answer of the device was lost.
    func connect(_ session: LinkedSession, to device: DeviceSerial, _ queue: LinkQueueName) -> Bool {
        session.connected(device)
        return state.withLock { $0.connect(device, to: queue) }
    }

    /// An answer of the device exceeds the limits. The sessions of the device end. If it has none, its next arrival fails.
    func loseAnswer(of device: DeviceSerial) {
        for session in state.withLock({ $0.lostAnswer(of: device) }) { session.lose() }
    }

    /// A session has left the home, or did not arrive.
    func forget(_ session: LinkedSession, of queue: LinkQueueName) { state.withLock { $0.forget(session, of: queue) } }

    // MARK: Queues

    private func take(
        _ call: LinkCall, to queue: LinkQueueName, bytes: Int, of caller: (any FailingCaller)? = nil,
        as session: LinkedSession? = nil
    ) -> Bool {
        let due = delay.due()
        let taken = state.withLock { $0.take(call, to: queue, bytes: bytes, due: due, of: caller, as: session) }
        begin(taken)
        return taken != .refused
    }

    private func begin(_ taken: LinkState.Taken) {
        guard case .begins(let queue) = taken else { return }
        // The task ends when the queue is empty.
        Task { await takeCalls(of: queue) }
    }

    private func takeCalls(of queue: LinkQueueName) async {
        while true {
            let (step, waiters) = state.withLock { $0.next(in: queue, at: .now) }
            for waiter in waiters { waiter.resume() }
            switch step {
            case .wait(let due): try? await Task.sleep(until: due, clock: .continuous)
            case .call(let call, _): await call.work()
            case .done: return
            }
        }
    }
}
