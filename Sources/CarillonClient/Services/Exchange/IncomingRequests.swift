/// The requests of other devices that are worked on, by id.
struct IncomingRequests {
    struct Work {
        var number: Int64
        var isUnwanted: Bool
        /// Whether there are too many requests, so that this one is refused.
        var isOneTooMany: Bool
        /// Whether all of the request is here.
        var hasArrived = false
        /// Whether the handler may be called only once.
        var isOnce = false
        /// Whether the storage keeps the request from being answered.
        var isKeptByStorage = false
        var handler: Task<ServiceReply, any Error>?
        /// The starts of the handler that ended with the process.
        var starts = 0
        /// Leaves the files of the reply with the server.
        var leaving: Task<ServiceFiles.Left, any Error>?
    }

    private var work: [String: Work] = [:]
    private let limit: Int

    /// - Parameter limit: The most requests that are handled at once. The others are refused.
    init(limit: Int) { self.limit = limit }

    subscript(_ id: String) -> Work? {
        get { work[id] }
        _modify { yield &work[id] }
    }

    mutating func began(_ id: String, _ stored: StoredServiceEvent) {
        work[id] = Work(
            number: stored.number, isUnwanted: stored.isUnwanted, isOneTooMany: work.count >= limit, starts: stored.starts)
    }

    /// The device has another user: handlers end, and nothing is answered.
    mutating func cancelAll() {
        for work in work.values {
            work.handler?.cancel()
            work.leaving?.cancel()
        }
        work = [:]
    }
}
