import Testing

@testable import CarillonServer

struct StallClockTests {
    private var clock = StallClock()

    private mutating func isStalled(sent: Int, waiting: Int, at second: Int) -> Bool {
        clock.isStalled(.init(sent: sent, waiting: waiting), at: second, periodSeconds: 30)
    }

    @Test mutating func `data that is written meanwhile does not lengthen the period`() {
        clock.started(.init(sent: 0, waiting: 100_000), at: 0, periodSeconds: 30)
        clock.started(.init(sent: 10, waiting: 200_000), at: 20, periodSeconds: 30)
        #expect(clock.deadline == 30)
        #expect(isStalled(sent: 10, waiting: 200_000, at: 29) == false)
        #expect(isStalled(sent: 10, waiting: 200_000, at: 30) == true)
    }

    @Test mutating func `a hurry shortens the period, and never lengthens it`() {
        clock.hurry(to: 5)
        #expect(clock.deadline == nil)
        clock.started(.init(sent: 0, waiting: 1), at: 0, periodSeconds: 30)
        clock.hurry(to: 5)
        #expect(clock.deadline == 5)
        clock.hurry(to: 50)
        #expect(clock.deadline == 5)
    }

    @Test mutating func `if nothing waits, no time runs`() {
        clock.started(.init(sent: 5, waiting: 0), at: 0, periodSeconds: 30)
        #expect(clock.deadline == nil)
        clock.started(.init(sent: 5, waiting: 3), at: 0, periodSeconds: 30)
        #expect(isStalled(sent: 8, waiting: 0, at: 30) == false)
        #expect(clock.deadline == nil)
    }
}
