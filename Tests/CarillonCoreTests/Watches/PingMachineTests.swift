import CarillonCore
import CarillonWire
import TestSupport
import Testing

struct PingMachineTests {
    private let now = Sample.now

    private func failed(_ failure: PingFailure) -> CallResult { .failed(failure, detail: "") }

    /// The events of a run of results, one for each.
    private func change(_ results: CallResult...) -> [PingMachine.Change?] {
        var machine = PingMachine()
        return results.map { machine.pinged($0, every: 60, at: now, chance: 0).change }
    }

    @Test(arguments: [
        (200, PingVerdict.well), (204, .well), (299, .well),
        (410, .failed(.tokenLost, detail: "the backend answered 410: it does not know the token")),
    ])
    func `2xx is well, and 410 means that the token is lost`(status: Int, verdict: PingVerdict) {
        #expect(PingVerdict(.answered(status: status)) == verdict)
    }

    @Test(arguments: [101, 199, 300, 301, 302, 307, 308, 400, 401, 404, 409, 411, 418, 429, 500, 502, 503])
    func `every other status is an invalid answer`(status: Int) {
        guard case .failed(.invalidAnswer, let detail) = PingVerdict(.answered(status: status)) else {
            Issue.record("\(status) is not reported as an invalid answer")
            return
        }
        #expect(detail.contains("\(status)"))
    }

    @Test func `a channel whose backend answers receives nothing`() {
        #expect(change(.answered(status: 200), .answered(status: 204), .answered(status: 200)) == [nil, nil, nil])
    }

    @Test(arguments: PingFailure.allCases)
    func `a failure is reported once, and so is its end`(failure: PingFailure) {
        #expect(
            change(failed(failure), failed(failure), failed(failure), .answered(status: 200), .answered(status: 200)) == [
                .pingFailed(failure), nil, nil, .recovered, nil,
            ])
    }

    @Test func `another failure is something new`() {
        #expect(
            change(failed(.noConnection), failed(.noAnswerInTime), failed(.noConnection), .answered(status: 410)) == [
                .pingFailed(.noConnection), .pingFailed(.noAnswerInTime), .pingFailed(.noConnection),
                .pingFailed(.tokenLost),
            ])
    }

    @Test func `a call that could not be made does not concern the backend, and is repeated soon`() {
        var machine = PingMachine()
        _ = machine.pinged(failed(.noConnection), every: 3600, at: now, chance: 0)
        let before = machine
        let step = machine.pinged(.notMade(reason: ""), every: 3600, at: now, chance: 77)
        #expect(step.change == nil)
        #expect(machine == before)
        #expect(step.dueAt <= now.adding(seconds: 11))
        #expect(step.dueAt > now)
    }

    @Test func `a call that nobody can make any more is a lost token, reported once, and checked once an hour`() {
        var machine = PingMachine()
        let first = machine.pinged(.impossible(reason: "lost"), every: 60, at: now, chance: 0)
        #expect(first.change == .pingFailed(.tokenLost))
        #expect(first.dueAt == now.adding(seconds: 3240))
        let second = machine.pinged(.impossible(reason: "lost"), every: 60, at: now, chance: 0)
        #expect(second.change == nil)
        #expect(second.dueAt == now.adding(seconds: 3240))
        #expect(PingVerdict(.impossible(reason: "lost")) == .failed(.tokenLost, detail: "lost"))
        #expect(machine.pinged(.answered(status: 200), every: 60, at: now, chance: 0).change == .recovered)
    }

    @Test(arguments: [15, 60, 3600, 86_400])
    func `a ping follows after its interval, plus or minus a tenth`(interval: Int) {
        for chance in [0, 1, 12_345, UInt64.max / 3, .max] {
            var machine = PingMachine()
            let due = machine.pinged(.answered(status: 200), every: interval, at: now, chance: chance).dueAt
            let delay = due.milliseconds - now.milliseconds
            #expect((Int64(interval) * 900...Int64(interval) * 1100).contains(delay))
        }
    }

    @Test func `an unreachable backend is pinged ever less, to once an hour, and as before when it answers`() {
        var machine = PingMachine()
        let delays = (0..<10).map { _ in
            machine.pinged(failed(.noConnection), every: 60, at: now, chance: 0).dueAt.seconds - now.seconds
        }
        #expect(delays == [54, 54, 108, 216, 432, 864, 1728, 3240, 3240, 3240])
        #expect(machine.pinged(.answered(status: 200), every: 60, at: now, chance: 0).dueAt == now.adding(seconds: 54))
        #expect(machine.failures == 0)
    }

    @Test(arguments: [(120, 120), (86_400, 3600), (1, 54)] as [(Int, Int64)])
    func `a backend that refuses can set a longer wait, up to an hour`(seconds: Int, wait: Int64) {
        var machine = PingMachine()
        let refusal = CallResult.answered(status: 429, retryAfter: .seconds(seconds))
        #expect(machine.pinged(refusal, every: 60, at: now, chance: 0).dueAt == now.adding(seconds: wait))
        let success = CallResult.answered(status: 200, retryAfter: .seconds(seconds))
        #expect(machine.pinged(success, every: 60, at: now, chance: 0).dueAt == now.adding(seconds: 54))
    }

    @Test func `an interval above an hour is not shortened by failing, and never overflows`() {
        var machine = PingMachine()
        for _ in 0..<2000 {
            let due = machine.pinged(failed(.noConnection), every: 86_400, at: now, chance: 0).dueAt
            #expect(due == now.adding(seconds: 77_760))
        }
    }

    @Test func `a backend that lost the token is reachable, and is not pinged less`() {
        var machine = PingMachine()
        for _ in 0..<9 {
            #expect(machine.pinged(.answered(status: 410), every: 60, at: now, chance: 0).dueAt == now.adding(seconds: 54))
        }
    }

    @Test func `first pings are spread over the interval, and come within five minutes`() {
        var random = SeededRandom.forTest()
        for interval in [15, 300, 86_400] {
            let span = Int64(min(interval, 300)) * 1000
            var buckets = [Int](repeating: 0, count: 10)
            for _ in 0..<10_000 {
                let due = PingMachine.firstDue(every: interval, at: now, chance: random.next())
                let delay = due.milliseconds - now.milliseconds
                #expect((0..<span).contains(delay))
                buckets[Int(delay * 10 / span)] += 1
            }
            #expect(buckets.allSatisfy { (800...1200).contains($0) }, "\(buckets)")
        }
    }
}
