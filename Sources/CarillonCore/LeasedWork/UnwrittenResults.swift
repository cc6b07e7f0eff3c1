/// A result of leased work.
protocol LeaseResult: Sendable {
    /// After this time the work can be leased again, and the store then refuses the result.
    var leaseEnd: Timestamp { get }
}

/// Results of leased work that are not written yet, the oldest first. Their number is bounded.
struct UnwrittenResults<Result: LeaseResult>: Sendable {
    private(set) var results: [Result] = []
    private let limit: Int

    /// - Parameter limit: The number of results that are kept after a failed write. Beyond it, the oldest are dropped: their
    ///   leases end, and the work is done again.
    init(limit: Int) { self.limit = limit }

    /// Adds a result that no write has failed for.
    mutating func add(_ result: Result) { results.append(result) }

    /// Removes the oldest results and returns them. The caller writes them, and keeps those that it could not write.
    mutating func take(atMost count: Int) -> [Result] {
        let first = Array(results.prefix(count))
        results.removeFirst(first.count)
        return first
    }

    /// Puts results back that could not be written. Returns the number of results that were dropped.
    ///
    /// - Parameter isNext: Whether they are written before the others.
    mutating func keep(_ failed: [Result], isNext: Bool) -> Int {
        results = isNext ? failed + results : results + failed
        let surplus = max(0, results.count - limit)
        results.removeFirst(surplus)
        return surplus
    }

    /// Drops results whose lease has ended. Returns their number.
    mutating func dropEnded(at now: Timestamp) -> Int {
        let before = results.count
        results.removeAll { $0.leaseEnd <= now }
        return before - results.count
    }
}
