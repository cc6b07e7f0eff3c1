import CarillonCore
import CarillonWire
import Testing

struct PushRulesTests {
    private let now = Timestamp(milliseconds: 1_700_000_000_000)

    private func verdict(
        _ answer: PushAnswer, attempt: Int = 1, isElsewhere: Bool = false, hasOther: Bool = true, spread: UInt64 = 0
    ) -> PushEnd.Verdict {
        PushRules.verdict(
            on: answer, attempt: attempt, isElsewhere: isElsewhere, hasOther: hasOther, spread: spread, at: now)
    }

    @Test func `an accepted push is handed over, and a wrong one is parked`() {
        #expect(verdict(.taken) == .handed)
        #expect(verdict(.wrong(reason: "BadTopic")) == .parked(reason: "BadTopic"))
        #expect(
            verdict(.tokenOfAnotherApp(reason: "DeviceTokenNotForTopic"))
                == .parked(reason: "DeviceTokenNotForTopic", isOfAddress: true))
    }

    @Test func `a token that is unknown here is tried in the other environment, once, if there is one`() {
        let answer = PushAnswer.tokenUnknownHere(reason: "BadDeviceToken")
        #expect(verdict(answer) == .elsewhere)
        #expect(verdict(answer, isElsewhere: true) == .tokenDead(reason: "BadDeviceToken", since: nil))
        #expect(verdict(answer, hasOther: false) == .tokenDead(reason: "BadDeviceToken", since: nil))
    }

    @Test func `a dead token is dead since the time that the service reports`() {
        let since = now.adding(seconds: -60)
        #expect(
            verdict(.tokenDead(reason: "Unregistered", since: since)) == .tokenDead(reason: "Unregistered", since: since))
    }

    @Test func `a fault of the credentials, the service or a stop costs no attempt`() {
        #expect(
            verdict(.credentialsRefused(reason: "Forbidden")) == .again(at: now, isSpent: false, reason: "Forbidden"))
        #expect(verdict(.unreachable(reason: "down")) == .again(at: now, isSpent: false, reason: "down"))
        #expect(verdict(.notSent) == .again(at: now, isSpent: false, reason: "not sent"))
    }

    @Test func `a push that the service delays is repeated at its time, and not at once`() {
        #expect(
            verdict(.later(reason: "ServiceUnavailable", seconds: 900))
                == .again(at: now.adding(seconds: 900), isSpent: true, reason: "ServiceUnavailable"))
        #expect(verdict(.later(reason: "x", seconds: 0)) == .again(at: now.adding(seconds: 1), isSpent: true, reason: "x"))
    }

    @Test func `an unanswered push is repeated after 30 seconds, doubled up to 16 minutes`() {
        let waits = [1, 2, 3, 6, 7, 1000].map { attempt in
            if case .again(let at, true, _) = verdict(.unanswered(reason: "timedOut"), attempt: attempt) {
                (at.milliseconds - now.milliseconds) / 1000
            } else {
                Int64(0)
            }
        }
        #expect(waits == [30, 60, 120, 960, 960, 960])
    }

    @Test
    func `a push with a foreign answer is repeated after 30 seconds, doubled up to 15 minutes, for ever`() {
        let waits = [1, 2, 3, 5, 6, 7, 1000].map { attempt in
            let answer = PushAnswer.unknown(reason: "410", description: "410: gone")
            if case .again(let at, true, "410") = verdict(answer, attempt: attempt) {
                return (at.milliseconds - now.milliseconds) / 1000
            }
            return Int64(0)
        }
        #expect(waits == [30, 60, 120, 480, 900, 900, 900])
    }

    @Test func `pushes that failed together are not repeated together, nor too early, nor more than a quarter late`() {
        for answer in [PushAnswer.later(reason: "x", seconds: 900), .unanswered(reason: "x")] {
            let least: Int64 = answer == .unanswered(reason: "x") ? 30_000 : 900_000
            let waits = (UInt64(0)..<2000).map { number in
                if case .again(let at, _, _) = verdict(answer, spread: number) {
                    at.milliseconds - now.milliseconds
                } else {
                    Int64(0)
                }
            }
            #expect(waits.allSatisfy { least...(least * 5 / 4) ~= $0 })
            #expect(Set(waits).count > 900)
            #expect((waits.max() ?? 0) > least * 6 / 5)
        }
    }

    @Test func `results of pushes have the names that metrics show`() {
        let states: [PushState] = [.handed, .rejected, .parked, .scheduled, .cancelled, .expired]
        #expect(states.map(\.result) == ["handed", "rejected", "parked", "retried", "cancelled", "expired"])
    }

    @Test(arguments: PushEnvironment.allCases)
    func `the number of a push queue identifies it`(_ environment: PushEnvironment) {
        let queue = PushQueue(app: AppSerial(77), environment: environment)
        #expect(PushQueue(number: queue.number) == queue)
        #expect(PushQueue(number: 3) == nil)
        #expect(queue.other?.other == (environment == .test ? nil : queue))
    }
}
