/// One token bucket for each key, all with one rate. Times are nanoseconds of a monotonic clock.
///
/// A bucket is stored as the time at which it is full again. Full buckets are not stored. If the table is full, buckets that are
/// full by then are removed. If the table is still full, requests with a new key are allowed and counted in `unremembered`.
package struct TokenBuckets<Key: Hashable & Sendable>: Sendable {
    private let interval: Int64
    private let depth: Int64
    private let capacity: Int
    private var fullAt: [Key: Int64] = [:]
    private var nextCleaning: Int64 = .min
    /// The number of requests that were allowed because the table had no room for their key.
    package private(set) var unremembered = 0

    private static var cleaningPause: Int64 { 1_000_000_000 }

    package init(rate: Rate, capacity: Int) {
        interval = max(1, 1_000_000_000 / Int64(rate.perSecond))
        depth = interval * Int64(rate.burst)
        self.capacity = capacity
    }

    package var count: Int { fullAt.count }

    /// Takes tokens from the key's bucket. Returns nil if there were enough tokens; otherwise the nanoseconds until there are
    /// enough, and takes none.
    package mutating func take(_ key: Key, _ tokens: Int = 1, at now: Int64) -> Int64? {
        let place = fullAt.index(forKey: key)
        let filled = max(place.map { fullAt.values[$0] } ?? now, now) + interval * Int64(tokens)
        if filled - now > depth { return filled - now - depth }
        if let place {
            fullAt.values[place] = filled
        } else if fullAt.count < capacity || makeRoom(at: now) {
            fullAt[key] = filled
        } else {
            unremembered += 1
        }
        return nil
    }

    private mutating func makeRoom(at now: Int64) -> Bool {
        guard now >= nextCleaning else { return false }
        nextCleaning = now + Self.cleaningPause
        fullAt = fullAt.filter { $0.value > now }
        return fullAt.count < capacity
    }
}
