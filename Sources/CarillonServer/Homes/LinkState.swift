import CarillonCore

/// A call on its way to a home.
struct LinkCall: Sendable {
    /// Whether the home does it also if the link is cut. Such a call needs no room.
    var isOfHome = false
    var work: @Sendable () async -> Void
}

/// The state of a link: whether it is cut, what waits to be sent, which calls have no answer, and which sessions arrived.
struct LinkState {
    typealias Queues = LinkQueues<LinkCall, LinkedSession>

    /// Whether a call was taken to be sent.
    enum Taken: Equatable {
        /// The link is cut, or there is no room.
        case refused
        /// A task takes the calls of the queue already.
        case waits
        /// A task must begin to take the calls of the queue.
        case begins(LinkQueueName)
    }

    /// A session, with the queue by which it arrived.
    struct Arrived {
        var session: LinkedSession
        var queue: LinkQueueName
    }

    private let limits: LinkedHome.Limits
    private var isCut = false
    /// The number of times that the link was cut.
    private(set) var cuts = 0
    /// The number of calls that were not sent yet, except those of the home.
    private(set) var waitingCalls = 0
    private var waitingBytes = 0
    private var queues = Queues()
    /// By the session of the connection. A session that leaves is not in it any more.
    private var sessions: [ObjectIdentifier: Arrived] = [:]
    /// Devices without a session here whose answers were lost. The sessions that gave the envelopes do not know that.
    private var lostAnswers: Set<DeviceSerial> = []
    /// The callers that have no answer.
    private var callers: [ObjectIdentifier: any FailingCaller] = [:]
    /// They wait until no queue is busy.
    private var waiters: [CheckedContinuation<Void, Never>] = []

    init(limits: LinkedHome.Limits) { self.limits = limits }

    // MARK: The link

    /// Drops the calls that were not sent, except those of the home.
    ///
    /// - Returns: The callers that fail, and the sessions that end.
    mutating func cut() -> (callers: [any FailingCaller], sessions: [LinkedSession]) {
        isCut = true
        cuts += 1
        let dropped = queues.removeCalls { !$0.isOfHome }
        giveBack(dropped.bytes, calls: dropped.count)
        defer { callers = [:] }
        return (Array(callers.values), sessions.values.map(\.session))
    }

    mutating func restore() { isCut = false }

    // MARK: Calls

    /// Takes a call that waits for no other call. When it is sent, the caller of this function calls ``giveBack(_:calls:)``.
    ///
    /// - Returns: False if the link is cut, or there is no room.
    mutating func take(of caller: some FailingCaller, bytes: Int) -> Bool {
        guard admit(bytes) else { return false }
        callers[ObjectIdentifier(caller)] = caller
        return true
    }

    /// Takes a call that passes by a queue.
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
        case .call(let call, let bytes): if !call.isOfHome { giveBack(bytes) }
        case .done:
            guard queues.isIdle else { break }
            defer { waiters = [] }
            return (step, waiters)
        }
        return (step, [])
    }

    /// The caller has its answer, or waits no longer.
    mutating func forget(_ caller: some FailingCaller) { callers[ObjectIdentifier(caller)] = nil }

    /// Resumes a waiter when no queue is busy.
    ///
    /// - Returns: False if no queue is busy now. The caller of this function resumes the waiter then.
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

    /// Gives the room of calls back.
    mutating func giveBack(_ bytes: Int, calls: Int = 1) {
        waitingCalls -= calls
        waitingBytes -= bytes
    }

    // MARK: Sessions

    /// Returns the session at the home that belongs to a session of a connection. Nil if it did not arrive, or leaves.
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
    /// - Returns: The sessions of the device. They must end, so that the envelope comes again.
    mutating func lostAnswer(of device: DeviceSerial) -> [LinkedSession] {
        let sessions = queues.sessions(inQueueOf: device).filter { $0.device == device }
        if sessions.isEmpty, lostAnswers.count < limits.calls { lostAnswers.insert(device) }
        return sessions
    }

    /// A session leaves. Its connection can arrive again, as another session.
    mutating func leaves(_ session: LinkedSession) {
        let key = ObjectIdentifier(session.session)
        if sessions[key]?.session === session { sessions[key] = nil }
    }

    /// A session is not at the home any more, or did not arrive.
    mutating func forget(_ session: LinkedSession, of queue: LinkQueueName) {
        leaves(session)
        queues.remove(session, from: queue)
    }
}
