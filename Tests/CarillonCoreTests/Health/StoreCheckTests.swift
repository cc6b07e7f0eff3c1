import CarillonCore
import Testing

struct StoreCheckTests {
    private typealias Check = StoreCheck<Int>

    private func isUnusable(_ asked: Check.Decision) -> Bool {
        if case .unusable(let fault) = asked { fault.kind == .unavailable } else { false }
    }

    @Test func `a change may wait for the disk for 5 seconds, and no longer`() {
        var check = Check()
        #expect(isUnusable(check.requested(1, oldestChange: .seconds(5) + .nanoseconds(1))))
        #expect(check.requested(2, oldestChange: .seconds(5)) == .begin(1))
        // The check continues, and later callers need not wait for it.
        #expect(isUnusable(check.requested(3, oldestChange: .seconds(6))))
        #expect(check.answered() == [2])
        #expect(check.requested(4, oldestChange: .zero) == .begin(2))
    }

    @Test func `concurrent requests use one check`() {
        var check = Check()
        #expect(check.requested(1, oldestChange: .zero) == .begin(1))
        #expect(check.requested(2, oldestChange: .zero) == .wait)
        #expect(check.answered() == [1, 2])
        #expect(check.requested(3, oldestChange: .zero) == .begin(2))
    }

    @Test func `a store that does not answer cannot be used until it does`() {
        var check = Check()
        _ = check.requested(1, oldestChange: .zero)
        _ = check.requested(2, oldestChange: .zero)
        #expect(check.limitElapsed(1) == [1, 2])
        #expect(isUnusable(check.requested(3, oldestChange: .zero)))
        #expect(check.answered().isEmpty)
        #expect(check.requested(4, oldestChange: .zero) == .begin(2))
    }

    @Test func `the limit of an earlier check does not end a later one`() {
        var check = Check()
        _ = check.requested(1, oldestChange: .zero)
        _ = check.answered()
        #expect(check.limitElapsed(1).isEmpty)
        _ = check.requested(2, oldestChange: .zero)
        #expect(check.limitElapsed(1).isEmpty)
        #expect(check.answered() == [2])
    }
}
