import CarillonCore
import CarillonWire
import Testing

/// Which envelopes a wake is for.
struct WakingSearchTests {
    private let now = WakeSample.now

    private func envelope(_ wake: WakeMode?, ttl: Int64 = 100) -> WaitingEnvelope {
        WaitingEnvelope(wake: wake, expiresAt: now.adding(seconds: ttl))
    }

    @Test func `a device is woken for each message without its own alert, until it expires`() {
        #expect(envelope(.background).wakes(at: now))
        #expect(!envelope(.alert).wakes(at: now))
        #expect(!envelope(WakeMode.none).wakes(at: now))
        #expect(!envelope(nil).wakes(at: now))
        #expect(envelope(.background, ttl: 1).wakes(at: now))
        #expect(!envelope(.background, ttl: 0).wakes(at: now))
    }

    @Test func `the search for the first message continues behind the checked ones`() {
        var search = FirstWaking(from: 5, at: now)
        #expect(search.beyond == 4)
        let quiet = search.saw(envelope(.alert), at: 5)
        let missing = search.saw(nil, at: 7)
        #expect(!quiet && !missing && search.found == nil)
        #expect(search.beyond == 7)
        let isOver = search.saw(envelope(.background, ttl: 9), at: 8)
        #expect(isOver)
        #expect(search.found == PushSpan(first: 8, last: 8, expiresAt: now.adding(seconds: 9)))
    }

    private let first = PushSpan(first: 10, last: 10, expiresAt: WakeSample.now.adding(seconds: 10))

    @Test func `the last is the newest that wakes`() {
        var search = LastWaking(after: first, at: now)
        #expect(search.span == first)
        for (position, wake) in [(30, WakeMode.alert), (20, .background)] as [(Int64, WakeMode)] {
            let isWanted = search.reached(position)
            let isOver = search.saw(envelope(wake), at: position)
            #expect(isWanted)
            #expect(isOver == (wake == .background))
        }
        #expect(search.span == PushSpan(first: 10, last: 20, expiresAt: now.adding(seconds: 100)))
    }

    @Test func `a wake concerns all messages before the newest, if none of them wakes`() {
        var search = LastWaking(after: first, at: now)
        for position in [Int64(30), 29] {
            let isWanted = search.reached(position)
            let isOver = search.saw(envelope(WakeMode.none), at: position)
            #expect(isWanted && !isOver)
        }
        #expect(search.span == PushSpan(first: 10, last: 28, expiresAt: first.expiresAt))
        let isWanted = search.reached(10)
        #expect(!isWanted, "the first was checked")
        #expect(search.span == first)
    }
}
