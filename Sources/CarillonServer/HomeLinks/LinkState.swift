import CarillonCore

/// A call to a home that was not sent yet.
struct LinkCall: Sendable {
    /// Whether the home makes the call even if the link is cut. The limits do not apply to such a call.
    var isOfHome = false
    var work: @Sendable () async -> Void
}

/// The state of a link: whether it is cut, the calls that wait to be sent, the callers without an answer, and the arrived
/// sessions.
struct LinkState {
    typealias Queues = LinkQueues<LinkCall, LinkedSession>

    /// Whether a call was accepted for sending.
    enum Taken: Equatable {
        /// The link is cut, or its limits are reached.
        case refused
        /// A task already takes the calls of the queue.
        case waits
        /// A task must begin to take the calls of the queue.
        case begins(LinkQueueName)
    }

    /// A session, with the queue through which it arrived.
    struct Arrived {
        var session: LinkedSession
        var queue: LinkQueueName
    }

    private let limits: LinkedHome.Limits
    private var isCut = false
    /// The number of times that the link was cut.
    private(set) var cuts = 0
    /// The number of calls that were not sent yet, without those of the home.
    private(set) var waitingCalls = 0
    private var waitingBytes = 0
    private var queues = Queues()
    /// The arrived sessions, by the session of the connection. A session that leaves is removed.
    private var sessions: [ObjectIdentifier: Arrived] = [:]
    /// Devices without a session here whose answers were lost. The sessions that delivered the envelopes are not aware of the
    /// loss.
    private var lostAnswers: Set<DeviceSerial> = []
    /// The callers that wait for an answer.
    private var callers: [ObjectIdentifier: any FailingCaller] = [:]
    /// Callers that wait until no queue is busy.
    private var waiters: [CheckedContinuation<Void, Never>] = []

    init(limits: LinkedHome.Limits) { self.limits = limits }

    // MARK: The link

    /// Removes the calls that were not sent, except those of the home.
    ///
    /// - Returns: The callers that fail, and the sessions that end.
    mutating func cut() -> (callers: [any FailingCaller], sessions: [LinkedSession]) {
        isCut = true
        cuts += 1
        let dropped = queues.removeCalls { !$0.isOfHome }
        release(dropped.bytes, calls: dropped.count)
        defer { callers = [:] }
        return (Array(callers.values), sessions.values.map(\.session))
    }

    mutating func restore() { isCut = false }

    // MARK: Calls

    /// Accepts a call that is independent of all other calls. When the call is sent, the caller of this function must call
    /// ``release(_:calls:)``.
    ///
    /// - Returns: False if the link is cut or its limits are reached.
    mutating func take(of caller: some FailingCaller, bytes: Int) -> Bool {
        guard admit(bytes) else { return false }
        callers[ObjectIdentifier(caller)] = caller
        return true
    }

    /// Accepts a call for a queue.
    ///
    /// - Parameters:
    ///   - caller: It waits for the answer.
    ///   - session: The session that arrives with the call.
    mutating func take(
        _ call: LinkCall, to name: LinkQueueName, bytes: Int, due: ContinuousClock.Instant,
        of caller: (any FailingCaller)? = nil, as session: LinkedSession? = nil
    ) -> Taken {
        guard call.isOfHome || admit(bytes) else { return .refused }
        if let caller { callers[ObjectIdentifier(caller)] = caller }
        let begins = queues.append(call, to: name, bytes: bytes, due: due)
        if let session {
            sessions[ObjectIdentifier(session.session)] = Arrived(session: session, queue: name)
            queues.add(session, to: name)
        }
        return begins.map { .begins($0) } ?? .waits
    }

    /// Returns the next step of the task that takes the calls of a queue, and the waiters to resume.
    mutating func next(
        in queue: LinkQueueName, at now: ContinuousClock.Instant
    ) -> (step: Queues.Step, waiters: [CheckedContinuation<Void, Never>]) {
        let step = queues.next(in: queue, at: now)
        switch step {
        case .wait: break
        case .call(let call, let bytes): if !call.isOfHome { release(bytes) }
        case .done:
            guard queues.isIdle else { break }
            defer { waiters = [] }
            return (step, waiters)
        }
        return (step, [])
    }

    /// Removes a caller that has its answer, or no longer waits.
    mutating func forget(_ caller: some FailingCaller) { callers[ObjectIdentifier(caller)] = nil }

    /// Resumes a waiter when no queue is busy.
    ///
    /// - Returns: False if no queue is busy now. The caller of this function must then resume the waiter.
    mutating func add(_ waiter: CheckedContinuation<Void, Never>) -> Bool {
        guard !queues.isIdle else { return false }
        waiters.append(waiter)
        return true
    }

    private mutating func admit(_ bytes: Int) -> Bool {
        guard !isCut, waitingCalls < limits.calls, waitingBytes + bytes <= limits.callBytes else { return false }
        waitingCalls += 1
        waitingBytes += bytes
        return true
    }

    /// Subtracts calls from the counts that are limited.
    mutating func release(_ bytes: Int, calls: Int = 1) {
        waitingCalls -= calls
        waitingBytes -= bytes
    }

    // MARK: Sessions

    /// Returns the session at the home that belongs to the session of a connection. Returns nil if it did not arrive, or is
    /// leaving.
    func arrived(_ session: any LiveSession) -> Arrived? { sessions[ObjectIdentifier(session)] }

    /// The home connected a session of the device.
    ///
    /// - Returns: Whether the session can stay. It cannot if an answer of the device was lost.
    mutating func connect(_ device: DeviceSerial, to queue: LinkQueueName) -> Bool {
        queues.connect(device, to: queue)
        return lostAnswers.remove(device) == nil
    }

    /// An answer of the device was lost. If the device has no session here, its next arrival fails.
    ///
    /// - Returns: The sessions of the device. They must end, so that the envelope is delivered again.
    mutating func lostAnswer(of device: DeviceSerial) -> [LinkedSession] {
        let sessions = queues.sessions(inQueueOf: device).filter { $0.device == device }
        if sessions.isEmpty, lostAnswers.count < limits.calls { lostAnswers.insert(device) }
        return sessions
    }

    /// A session leaves. Its connection can arrive again as another session.
    mutating func leaves(_ session: LinkedSession) {
        let key = ObjectIdentifier(session.session)
        if sessions[key]?.session === session { sessions[key] = nil }
    }

    /// Removes a session that has left the home, or did not arrive.
    mutating func forget(_ session: LinkedSession, of queue: LinkQueueName) {
        leaves(session)
        queues.remove(session, from: queue)
    }
}
