import CarillonCore
import Synchronization
import Testing

@testable import CarillonServer

struct HandOverAgeTests {
    private let ticks = HandTicks()
    private let age: HandOverAge

    init() { age = HandOverAge(ticks: ticks.source) }

    @Test func `a hand-over waits from the reading that found it first`() {
        #expect(age.seconds(ofFirst: nil) == 0)
        ticks.pass(seconds: 60)
        #expect(age.seconds(ofFirst: 4) == 0)
        for seconds in 1...3 {
            ticks.pass(seconds: 15)
            #expect(age.seconds(ofFirst: 4) == Double(seconds * 15))
        }
    }

    @Test func `when the oldest is applied, the next one is known to wait from then on`() {
        _ = age.seconds(ofFirst: 4)
        ticks.pass(seconds: 15)
        #expect(age.seconds(ofFirst: 6) == 0)
        ticks.pass(seconds: 5)
        #expect(age.seconds(ofFirst: 6) == 5)
    }

    @Test func `when all are applied, nothing of them is remembered`() {
        _ = age.seconds(ofFirst: 4)
        ticks.pass(seconds: 15)
        #expect(age.seconds(ofFirst: nil) == 0)
        #expect(age.seconds(ofFirst: 4) == 0)
    }

    @Test func `an older hand-over of an acquired shard waits as long as the oldest so far`() {
        _ = age.seconds(ofFirst: 4)
        ticks.pass(seconds: 15)
        #expect(age.seconds(ofFirst: 2) == 15)
        ticks.pass(seconds: 5)
        // The older one is applied.
        #expect(age.seconds(ofFirst: 4) == 20)
    }
}

/// A clock that a test sets.
final class HandTicks: Sendable {
    private let now = Mutex<Int64>(7)
    var source: TickSource { TickSource { self.now.withLock { $0 } } }
    func pass(seconds: Int64) { now.withLock { $0 += seconds * 1_000_000_000 } }
}
