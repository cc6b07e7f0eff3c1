import CarillonCore
import Testing

struct ServedClockTests {
    private static let second: Int64 = 1_000_000_000
    private let start = Timestamp(milliseconds: 1_700_000_000_000)

    /// The clocks of a server that runs for some seconds while its wall clock is off.
    private func read(_ clock: inout ServedClock, after seconds: Int64, wallMoved moved: Int64 = 0) -> Int64? {
        clock.read(start.adding(seconds: seconds + moved), 77 + seconds * Self.second)
    }

    private func ticks(_ seconds: Int64) -> Int64 { 77 + seconds * Self.second }

    @Test func `the counter continues from the end of the last run`() {
        let clock = ServedClock(earlierSeconds: 1000, startedAt: ticks(0))
        #expect(clock.served(at: ticks(0)) == 1000)
        #expect(clock.served(at: ticks(59) + Self.second / 2) == 1059)
    }

    @Test func `nothing irreversible is decided in the first hour of a run`() {
        let clock = ServedClock(earlierSeconds: 1_000_000, startedAt: ticks(0))
        #expect(!clock.isSettled(at: ticks(3599)))
        #expect(clock.isSettled(at: ticks(3600)))
    }

    @Test(arguments: [300 * 86_400, -300 * 86_400, 3600, -3600, 121, -121] as [Int64])
    func `nothing irreversible is decided for an hour after the wall clock was set`(step: Int64) {
        var clock = ServedClock(earlierSeconds: 0, startedAt: ticks(0))
        #expect(read(&clock, after: 0) == nil)
        #expect(read(&clock, after: 5000) == nil)
        #expect(clock.isSettled(at: ticks(5000)))
        #expect(read(&clock, after: 6000, wallMoved: step) == step)
        #expect(!clock.isSettled(at: ticks(9599)))
        #expect(read(&clock, after: 9599, wallMoved: step) == nil, "once")
        #expect(clock.isSettled(at: ticks(9600)))
        #expect(read(&clock, after: 9601) == -step, "it is set right")
        #expect(!clock.isSettled(at: ticks(13_200)))
        #expect(clock.isSettled(at: ticks(13_201)))
        #expect(clock.served(at: ticks(13_201)) == 13_201, "the wall clock has no effect")
    }

    @Test func `small corrections count when they add up`() {
        var clock = ServedClock(earlierSeconds: 0, startedAt: ticks(0))
        #expect(read(&clock, after: 0) == nil)
        #expect(read(&clock, after: 4000, wallMoved: 120) == nil)
        #expect(clock.isSettled(at: ticks(4000)))
        #expect(read(&clock, after: 4001, wallMoved: 180) == 180)
        #expect(!clock.isSettled(at: ticks(4001)))
        #expect(read(&clock, after: 4002, wallMoved: 120) == nil, "from the last step on")
    }

    @Test func `a clock at the end of time is a step, and no fault`() {
        var clock = ServedClock(earlierSeconds: 0, startedAt: ticks(0))
        #expect(clock.read(.never, ticks(0)) == nil)
        #expect(clock.read(start, ticks(4000)) != nil)
        #expect(clock.read(Timestamp(milliseconds: .min), ticks(4001)) != nil)
        #expect(!clock.isSettled(at: ticks(4001)))
    }

    @Test func `a limit is reached by both clocks, and allows for a counter that is written once a minute`() {
        let cutoff = RetentionTime(now: start, served: 10_000).cutoff(afterSeconds: 1000)
        #expect(cutoff.wall == start.adding(seconds: -1000))
        #expect(cutoff.served == 9000 - RetentionTime.lagSeconds)
        #expect(RetentionTime.lagSeconds > 60)
    }
}
