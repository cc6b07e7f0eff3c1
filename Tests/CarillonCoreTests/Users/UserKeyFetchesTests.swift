import CarillonCore
import Testing

struct UserKeyFetchesTests {
    private static let second: Int64 = 1_000_000_000
    /// By the monotonic clock.
    private let start = 5000 * second
    private let keys = UserKeySet([UserKey(secret: [1])])

    private enum Seen: Equatable {
        case fetch
        case use
        case unavailable(Int)
    }

    private func seen(_ fetches: UserKeyFetches, after seconds: Int64) -> Seen {
        switch fetches.step(at: start + seconds * Self.second) {
        case .fetch: .fetch
        case .use: .use
        case .unavailable(let seconds): .unavailable(seconds)
        }
    }

    @Test func `keys are fetched at first, and again when five minutes have passed`() {
        var fetches = UserKeyFetches()
        #expect(seen(fetches, after: 0) == .fetch)
        fetches.began(at: start)
        fetches.succeeded(keys, at: start)
        #expect(seen(fetches, after: 0) == .use)
        #expect(seen(fetches, after: 299) == .use)
        #expect(seen(fetches, after: 300) == .fetch)
    }

    @Test func `an address that does not answer is called every five minutes, and nobody waits for it meanwhile`() {
        var fetches = UserKeyFetches()
        fetches.began(at: start)
        #expect(seen(fetches, after: 0) == .unavailable(300))
        #expect(seen(fetches, after: 299) == .unavailable(1))
        #expect(seen(fetches, after: 300) == .fetch)
    }

    @Test(
        arguments: [(nil, 300), (.zero, 300), (.seconds(290), 300), (.seconds(291), 301), (.seconds(3600), 3610)]
            as [(Duration?, Int64)])
    func `a refusal can set a longer wait, which counts from the answer`(_ wait: Duration?, _ seconds: Int64) {
        var fetches = UserKeyFetches()
        fetches.succeeded(keys, at: start)
        fetches.began(at: start)
        // The answer arrived ten seconds later.
        fetches.failed(wait: wait, at: start + 10 * Self.second)
        #expect(seen(fetches, after: seconds - 1) == .use)
        #expect(fetches.secondsUntilNext(at: start + (seconds - 20) * Self.second) == 20)
        #expect(seen(fetches, after: seconds) == .fetch)
        fetches.began(at: start + seconds * Self.second)
        #expect(seen(fetches, after: seconds + 299) == .use)
        #expect(seen(fetches, after: seconds + 300) == .fetch, "the wait counts once")
    }

    @Test func `keys that cannot be fetched anew are valid for a day`() {
        var fetches = UserKeyFetches()
        fetches.began(at: start)
        fetches.succeeded(keys, at: start)
        fetches.began(at: start + 86_390 * Self.second)
        #expect(seen(fetches, after: 86_399) == .use)
        #expect(seen(fetches, after: 86_400) == .unavailable(290))
    }
}
