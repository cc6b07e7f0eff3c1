import CarillonCore
import CarillonWire
import TestSupport
import Testing

struct CallbackMachineTests {
    private let endedAt = Sample.now

    @Test(arguments: [200, 202, 204, 410])
    func `an answer of 2xx, or 410, ends it`(status: Int) {
        var machine = CallbackMachine(attempts: 3)
        #expect(machine.called(.answered(status: status), endedAt: endedAt, at: endedAt, chance: 5) == .done)
    }

    @Test func `a callback is retried at times that double, up to an hour, and for a day`() {
        var machine = CallbackMachine()
        var now = endedAt
        var delays: [Int64] = []
        while case .retry(let next) = machine.called(.answered(status: 500), endedAt: endedAt, at: now, chance: 0) {
            delays.append(next.milliseconds - now.milliseconds)
            now = next
        }
        #expect(delays.prefix(4) == [3750, 7500, 15_000, 30_000])
        #expect(delays.max() == 2_700_000)
        #expect(delays.count > 30)
        #expect(now < endedAt.adding(seconds: 86_400))
        #expect(now > endedAt.adding(seconds: 80_000))
    }

    @Test func `the times have a jitter of a quarter`() {
        var random = SeededRandom.forTest()
        var delays: Set<Int64> = []
        for _ in 0..<500 {
            var machine = CallbackMachine(attempts: 4)
            guard
                case .retry(let next) = machine.called(
                    .failed(.noConnection, detail: ""), endedAt: endedAt, at: endedAt, chance: random.next())
            else {
                Issue.record("it was not tried again")
                return
            }
            let delay = next.milliseconds - endedAt.milliseconds
            #expect((60_000...100_000).contains(delay))
            delays.insert(delay)
        }
        #expect(delays.count > 100)
    }

    @Test func `a callback that this server could not make costs no attempt`() {
        var machine = CallbackMachine(attempts: 2)
        let late = endedAt.adding(seconds: 1_000_000)
        guard case .retry(let next) = machine.called(.notMade(reason: ""), endedAt: endedAt, at: late, chance: 9) else {
            Issue.record("it was dropped")
            return
        }
        #expect(next <= late.adding(seconds: 7))
        #expect(machine.attempts == 2)
    }

    @Test func `a callback that nobody can make any more is lost`() {
        var machine = CallbackMachine(attempts: 2)
        #expect(machine.called(.impossible(reason: ""), endedAt: endedAt, at: endedAt, chance: 9) == .lost)
        #expect(machine.attempts == 2)
    }

    @Test(arguments: [3600, 86_400, 300 * 86_400] as [Int64])
    func `an unreachable server or a clock that is ahead ends no callback with few attempts`(later: Int64) {
        var machine = CallbackMachine(attempts: 1)
        var attempts = 1
        var now = endedAt.adding(seconds: later)
        while case .retry(let next) = machine.called(.answered(status: 503), endedAt: endedAt, at: now, chance: 0) {
            attempts += 1
            now = next
        }
        #expect(attempts + 1 >= CallbackMachine.leastAttempts)
        #expect(machine.attempts >= CallbackMachine.leastAttempts)
    }

    @Test(arguments: [(60, 60_000), (3600, 3_600_000), (86_400, 3_600_000), (1, 3750), (0, 3750)] as [(Int, Int64)])
    func `a refusal can set a longer wait, up to an hour`(seconds: Int, milliseconds: Int64) {
        var machine = CallbackMachine()
        let result = CallResult.answered(status: 503, retryAfter: .seconds(seconds))
        let step = machine.called(result, endedAt: endedAt, at: endedAt, chance: 0)
        #expect(step == .retry(at: endedAt.adding(milliseconds: milliseconds)))
    }
}
