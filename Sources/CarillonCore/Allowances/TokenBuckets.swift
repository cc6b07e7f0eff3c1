/// One token bucket for each key, all of one rate. Times are nanoseconds of a clock that is never set back.
///
/// Of a bucket only the moment is kept at which it will be full again; one that is full is not kept at all. When there are
/// more buckets than may be, those that filled up meanwhile are let go; a key that still finds no place has its way, and is
/// counted.
package struct TokenBuckets<Key: Hashable & Sendable>: Sendable {
    private let interval: Int64
    private let depth: Int64
    private let capacity: Int
    private var fullAt: [Key: Int64] = [:]
    private var nextCleaning: Int64 = .min
    /// How many token transfers were let through because no place was left to remember them.
    package private(set) var unremembered = 0

    private static var cleaningPause: Int64 { 1_000_000_000 }

    package init(rate: Rate, capacity: Int) {
        interval = max(1, 1_000_000_000 / Int64(rate.perSecond))
        depth = interval * Int64(rate.burst)
        self.capacity = capacity
    }

    package var count: Int { fullAt.count }

    /// Takes tokens out of the key's bucket. Nil when they were there; else after how many nanoseconds they will be.
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
