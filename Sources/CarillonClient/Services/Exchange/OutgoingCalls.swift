/// The requests of this device that have no result yet, by id, with their pending work.
struct OutgoingCalls {
    /// The tasks that wait for a result.
    var pending: [String: PendingResult<ServiceReply>] = [:]
    /// The requests that are being sent to the server.
    var underWay: [String: CallUnderWay] = [:]
    /// The requests that are being withdrawn from the server.
    var withdrawals: [String: Task<Void, Never>] = [:]
    /// The calls that wait for the storage, or whose reply waits for it.
    var waitingForStorage: Set<String> = []
    /// The deadlines of requests that were sent to apps on this machine.
    private(set) var timers: [String: Task<Void, any Error>] = [:]

    func hasTimer(_ id: String) -> Bool { timers[id] != nil }

    mutating func setTimer(of id: String, _ timer: Task<Void, any Error>) { timers[id] = timer }

    /// Removes the timer of a request after it has fired.
    mutating func timerEnded(_ id: String) { timers[id] = nil }

    mutating func cancelTimer(of id: String) { timers.removeValue(forKey: id)?.cancel() }

    mutating func cancelTimers() {
        for timer in timers.values { timer.cancel() }
        timers = [:]
    }

    /// Ends the sending of a request that has its result: the server has received the request.
    func endSending(_ id: String) {
        guard let sending = underWay[id] else { return }
        sending.outcome.resume(.success(()))
        sending.work.cancel()
    }

    /// Passes a result to the waiting task, also if the server has not confirmed the receipt of the request yet.
    ///
    /// - Returns: Whether a task received the result.
    mutating func deliver(_ result: Result<ServiceReply, ServiceError>, of id: String) -> Bool {
        guard let waiting = pending.removeValue(forKey: id) else { return false }
        underWay[id]?.outcome.resume(.success(()))
        return waiting.resume(result.mapError { $0 })
    }

    /// Ends the wait for the result of a cancelled request.
    mutating func cancelled(_ id: String) { pending.removeValue(forKey: id)?.resume(.failure(ServiceEngine.wasCancelled)) }

    /// Ends all waits for results, because the device has another user.
    mutating func endPending(with error: ServiceError) {
        for waiting in pending.values { waiting.resume(.failure(error)) }
        pending = [:]
    }
}
