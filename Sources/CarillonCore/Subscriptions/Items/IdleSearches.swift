import Synchronization

/// The times of the last searches for idle items of each app. A search reads all items of the app.
final class IdleSearches: Sendable {
    private let last = Mutex<[AppSerial: Timestamp]>([:])

    /// Returns whether a search of an app is due, and notes it as begun in this case.
    ///
    /// - Parameter seconds: The shortest `idleSeconds` of the app's rules.
    func begin(_ app: AppSerial, shortestIdle seconds: Int, at now: Timestamp) -> Bool {
        last.withLock { last in
            let interval = min(max(Self.shortestSeconds, Int64(seconds) / 10), Self.longestSeconds)
            // If the clock was set back, a search is due.
            if let earlier = last[app], now >= earlier, now < earlier.adding(seconds: interval) { return false }
            if last.count >= Self.capacity { last = [:] }
            last[app] = now
            return true
        }
    }

    private static let shortestSeconds: Int64 = 30
    private static let longestSeconds: Int64 = 3600
    private static let capacity = 10_000
}
