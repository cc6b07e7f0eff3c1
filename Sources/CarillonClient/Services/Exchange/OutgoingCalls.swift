/// The requests of this device that have no result yet, by id: what each of them waits for.
struct OutgoingCalls {
    /// Those who wait for a result.
    var pending: [String: PendingResult<ServiceReply>] = [:]
    /// The requests that are on their way to the server.
    var underWay: [String: CallUnderWay] = [:]
    /// The requests that are being withdrawn from the server.
    var takingBack: [String: Task<Void, Never>] = [:]
    /// The calls that wait for the storage, or whose reply does.
    var keptByStorage: Set<String> = []
    /// The deadlines of requests that went to apps of this machine.
    private(set) var timers: [String: Task<Void, any Error>] = [:]

    func hasTimer(_ id: String) -> Bool { timers[id] != nil }

    mutating func setTimer(of id: String, _ timer: Task<Void, any Error>) { timers[id] = timer }

    /// The timer of a request has fired.
    mutating func timerEnded(_ id: String) { timers[id] = nil }

    mutating func cancelTimer(of id: String) { timers.removeValue(forKey: id)?.cancel() }

    mutating func cancelTimers() {
        for timer in timers.values { timer.cancel() }
        timers = [:]
    }

    /// The request has its result, so that the server had the request: it is not posted again.
    func endSending(_ id: String) {
        guard let sending = underWay[id] else { return }
        sending.outcome.resume(.success(()))
        sending.work.cancel()
    }

    /// Passes a result to the task that waits, also while the server has not answered that it has the request.
    ///
    /// - Returns: Whether a task has the result.
    mutating func deliver(_ result: Result<ServiceReply, ServiceError>, of id: String) -> Bool {
        guard let waiting = pending.removeValue(forKey: id) else { return false }
        underWay[id]?.outcome.resume(.success(()))
        return waiting.resume(result.mapError { $0 })
    }

    /// The request was cancelled.
    mutating func cancelled(_ id: String) { pending.removeValue(forKey: id)?.resume(.failure(ServiceEngine.wasCancelled)) }

    /// The device has another user: nobody waits for a result any more.
    mutating func endPending(with error: ServiceError) {
        for waiting in pending.values { waiting.resume(.failure(error)) }
        pending = [:]
    }
}
