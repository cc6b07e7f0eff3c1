/// The requests of other devices that are being handled, by id.
struct IncomingRequests {
    struct Work {
        var number: Int64
        var isUnwanted: Bool
        /// Whether the limit of requests is exceeded, so that this one is rejected.
        var exceedsLimit: Bool
        /// Whether the whole request was received.
        var hasArrived = false
        /// Whether the handler may be called only once.
        var isOnce = false
        /// Whether the reply waits for the storage.
        var isWaitingForStorage = false
        var handler: Task<ServiceReply, any Error>?
        /// The starts of the handler that ended with the process.
        var starts = 0
        /// The task that uploads the files of the reply.
        var uploading: Task<ServiceFiles.Uploaded, any Error>?
    }

    private var work: [String: Work] = [:]
    private let limit: Int

    /// - Parameter limit: The most requests that are handled at once. Others are rejected.
    init(limit: Int) { self.limit = limit }

    subscript(_ id: String) -> Work? {
        get { work[id] }
        _modify { yield &work[id] }
    }

    mutating func began(_ id: String, _ stored: StoredServiceEvent) {
        work[id] = Work(
            number: stored.number, isUnwanted: stored.isUnwanted, exceedsLimit: work.count >= limit, starts: stored.starts)
    }

    /// Cancels all handlers, without a reply, because the device has another user.
    mutating func cancelAll() {
        for work in work.values {
            work.handler?.cancel()
            work.uploading?.cancel()
        }
        work = [:]
    }
}
