import CarillonCore
import CarillonWire
import Testing

struct EndpointHealthTests {
    private let now = Sample.now
    private let failed = CallResult.failed(.noAnswerInTime, detail: "")

    /// How long a peer rests after each of some calls with these durations.
    private func rests(_ results: [CallResult], taking milliseconds: Int64) -> [Int64] {
        var health = EndpointHealth()
        return results.map { result in
            health.called(result, begunAt: now.adding(milliseconds: -milliseconds), at: now).milliseconds
                - now.milliseconds
        }
    }

    @Test func `a host that was never called is on trial, and any fast answer ends the trial`() {
        for status in [200, 410, 500] {
            var health = EndpointHealth()
            #expect(health.isOnTrial)
            _ = health.called(.answered(status: status), begunAt: now.adding(milliseconds: -3000), at: now)
            #expect(!health.isOnTrial)
        }
    }

    @Test func `a slow answer is no proof, and no reason to rest`() {
        var health = EndpointHealth(isOnTrial: false, failures: 7)
        let rests = health.called(.answered(status: 200), begunAt: now.adding(milliseconds: -3001), at: now)
        #expect(health == EndpointHealth(isOnTrial: true, failures: 0))
        #expect(rests == now)
    }

    @Test(arguments: PingFailure.allCases.filter { $0 != .tokenLost })
    func `a failure puts it on trial`(failure: PingFailure) {
        var health = EndpointHealth(isOnTrial: false)
        _ = health.called(.failed(failure, detail: ""), begunAt: now, at: now)
        #expect(health == EndpointHealth(isOnTrial: true, failures: 1))
    }

    @Test func `a failure of this server does not count against the host`() {
        for result in [CallResult.notMade(reason: ""), .impossible(reason: "")] {
            var health = EndpointHealth(isOnTrial: false, failures: 3)
            #expect(health.called(result, begunAt: now.adding(seconds: -10), at: now) == now)
            #expect(health == EndpointHealth(isOnTrial: false, failures: 3))
        }
    }

    @Test func `a peer that keeps hanging rests ever longer, up to a minute`() {
        #expect(
            rests(Array(repeating: failed, count: 8), taking: 5000) == [
                0, 0, 10_000, 20_000, 40_000, 60_000, 60_000, 60_000,
            ])
        #expect(rests(Array(repeating: failed, count: 2000), taking: 1_000_000).max() == 60_000)
    }

    @Test func `a peer that refuses at once rests for a tenth of a second`() {
        #expect(rests(Array(repeating: failed, count: 6), taking: 1) == [0, 0, 100, 100, 100, 100])
    }

    @Test func `an answer makes up for all failures`() {
        let results = [failed, failed, failed, .answered(status: 500), failed, failed, failed]
        #expect(rests(results, taking: 1000) == [0, 0, 2000, 0, 0, 0, 2000])
    }

    @Test func `a clock that went back meanwhile measures nothing`() {
        #expect(rests([failed, failed, failed], taking: -1_000_000) == [0, 0, 100])
    }
}
