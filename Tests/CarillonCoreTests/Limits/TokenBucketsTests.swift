import CarillonCore
import Testing

struct TokenBucketsTests {
    private let second: Int64 = 1_000_000_000

    @Test func `a burst is admitted, then a fixed number a second`() {
        var buckets = TokenBuckets<Int>(rate: Rate(perSecond: 2, burst: 3), capacity: 8)
        for _ in 0..<3 { #expect(buckets.take(1, at: 0) == nil) }
        #expect(buckets.take(1, at: 0) == second / 2)
        #expect(buckets.take(1, at: second / 2 - 1) == 1)
        #expect(buckets.take(1, at: second / 2) == nil)
        #expect(buckets.take(1, at: second / 2) == second / 2)
    }

    @Test func `a rest fills the bucket, and no further`() {
        var buckets = TokenBuckets<Int>(rate: Rate(perSecond: 1, burst: 2), capacity: 8)
        _ = buckets.take(1, at: 0)
        for _ in 0..<2 { #expect(buckets.take(1, at: 1000 * second) == nil) }
        #expect(buckets.take(1, at: 1000 * second) != nil)
    }

    @Test func `each key has a bucket of its own, and a refusal uses nothing of it`() {
        var buckets = TokenBuckets<Int>(rate: Rate(perSecond: 1, burst: 1), capacity: 8)
        #expect(buckets.take(1, at: 0) == nil)
        for _ in 0..<100 { #expect(buckets.take(1, at: 0) != nil) }
        #expect(buckets.take(2, at: 0) == nil)
        #expect(buckets.take(1, at: second) == nil)
    }

    @Test func `several tokens are taken at once or not at all`() {
        var buckets = TokenBuckets<Int>(rate: Rate(perSecond: 1, burst: 3), capacity: 8)
        #expect(buckets.take(1, 2, at: 0) == nil)
        #expect(buckets.take(1, 2, at: 0) == second)
        #expect(buckets.take(1, 1, at: 0) == nil)
    }

    @Test func `full buckets make room, and a key without a place is counted`() {
        var buckets = TokenBuckets<Int>(rate: Rate(perSecond: 1, burst: 10), capacity: 4)
        for key in 0..<4 { _ = buckets.take(key, at: 0) }
        #expect(buckets.take(9, at: 0) == nil)
        #expect(buckets.count == 4)
        #expect(buckets.unremembered == 1)
        #expect(buckets.take(9, at: 2 * second) == nil)
        #expect(buckets.count == 1)
    }
}
