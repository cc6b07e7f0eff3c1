import CarillonCore
import CarillonWire
import Testing

struct GatewayBreakerTests {
    private let start = Timestamp(milliseconds: 1_700_000_000_000)

    private let push = Bytes16(high: 0, low: 1)

    private func after(_ seconds: Int64) -> Timestamp { start.adding(seconds: seconds) }

    @Test func `the number of pending pushes is up to the width of the window`() {
        var queue = GatewayBreaker()
        #expect(queue.room(at: start) == GatewayBreaker.widest)
        queue.began(GatewayBreaker.widest - 1)
        #expect(queue.room(at: start) == 1)
        queue.began(1)
        #expect(queue.room(at: start) == 0)
        queue.ended(.taken, of: push, at: start)
        #expect(queue.room(at: start) == 1)
    }

    @Test func `timeouts narrow the window to one, and answers widen it again`() {
        var queue = GatewayBreaker()
        queue.began(100)
        for _ in 0..<20 { queue.ended(.unanswered(reason: "timedOut"), of: push, at: start) }
        #expect(queue.window == 1)
        #expect(queue.room(at: start) == 0, "eighty are under way")
        for _ in 0..<80 { queue.ended(.taken, of: push, at: start) }
        #expect(queue.window == GatewayBreaker.widest)
    }

    @Test
    func `credentials that are refused pause the push queue for a minute, then one push sees whether they are now taken`() {
        var queue = GatewayBreaker()
        queue.began(3)
        let turn1 = queue.ended(.credentialsRefused(reason: "InvalidProviderToken"), of: push, at: start)
        #expect(turn1)
        #expect(queue.fault?.reason == "InvalidProviderToken" && queue.fault?.areCredentialsRefused == true)
        #expect(queue.fault?.since == start)
        // Further pushes that were under way report the same fault and change nothing.
        let turn2 = queue.ended(.credentialsRefused(reason: "InvalidProviderToken"), of: push, at: start)
        #expect(!turn2)
        let turn3 = queue.ended(.notSent, of: push, at: start)
        #expect(!turn3)
        #expect(queue.room(at: after(59)) == 0)
        #expect(queue.room(at: after(60)) == 1)
        queue.began(1)
        #expect(queue.room(at: after(61)) == 0, "one at a time")
        let turn4 = queue.ended(.credentialsRefused(reason: "InvalidProviderToken"), of: push, at: after(61))
        #expect(!turn4)
        #expect(queue.fault?.since == start)
        #expect(queue.room(at: after(120)) == 0)
        #expect(queue.room(at: after(121)) == 1)
        queue.began(1)
        let turn5 = queue.ended(.taken, of: push, at: after(121))
        #expect(turn5, "it is open again")
        #expect(queue.fault == nil)
        #expect(queue.room(at: after(121)) == GatewayBreaker.widest)
    }

    @Test func `a service that cannot be reached is tried after 1, 2, 4 seconds, up to a minute`() {
        var queue = GatewayBreaker()
        var now = start
        var pauses: [Int64] = []
        for _ in 0..<9 {
            queue.began(1)
            queue.ended(.unreachable(reason: "connectionFailed"), of: push, at: now)
            let next = (1...100).first { queue.room(at: now.adding(seconds: $0)) == 1 } ?? 0
            pauses.append(next)
            now = now.adding(seconds: next)
        }
        #expect(pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60])
        queue.began(1)
        queue.ended(.taken, of: push, at: now)
        queue.began(1)
        queue.ended(.unreachable(reason: "connectionFailed"), of: push, at: now)
        #expect(queue.room(at: now.adding(seconds: 1)) == 1, "it begins again with a second")
    }

    @Test func `pushes that were pending at a pause do not prolong the pause`() {
        var queue = GatewayBreaker()
        queue.began(10)
        for second in Int64(0)..<5 { queue.ended(.credentialsRefused(reason: "Forbidden"), of: push, at: after(second)) }
        for _ in 0..<5 { queue.ended(.notSent, of: push, at: after(5)) }
        #expect(queue.room(at: after(60)) == 1)
        var other = GatewayBreaker()
        other.began(10)
        for _ in 0..<10 { other.ended(.unreachable(reason: "down"), of: push, at: start) }
        #expect(other.room(at: after(1)) == 1)
    }

    @Test func `new credentials open it at once`() {
        var queue = GatewayBreaker()
        queue.began(1)
        queue.ended(.credentialsRefused(reason: "Forbidden"), of: push, at: start)
        queue.renewed()
        #expect(queue.fault == nil)
        #expect(queue.room(at: start) == GatewayBreaker.widest)
    }

    @Test func `a clock that was set back delays a push queue by no more than a pause`() {
        var queue = GatewayBreaker()
        queue.began(1)
        queue.ended(.credentialsRefused(reason: "Forbidden"), of: push, at: start)
        #expect(queue.room(at: after(-3600)) == 1)
    }

    private func answerAsStranger(_ pushes: ClosedRange<UInt64>, _ queue: inout GatewayBreaker, at now: Timestamp) -> Bool {
        var hasTurned = false
        for number in pushes {
            queue.began(1)
            let push = Bytes16(high: 0, low: number)
            hasTurned = queue.ended(.unknown(reason: "404", description: "404: no"), of: push, at: now) || hasTurned
        }
        return hasTurned
    }

    @Test
    func `ten consecutive pushes with an answer from another program pause the push queue like an unreachable service`() {
        var queue = GatewayBreaker()
        let isPausedByNine = answerAsStranger(1...9, &queue, at: start)
        #expect(!isPausedByNine)
        #expect(queue.fault == nil && queue.room(at: start) == GatewayBreaker.widest)
        let isPausedByTen = answerAsStranger(10...10, &queue, at: start)
        #expect(isPausedByTen)
        #expect(queue.fault?.reason == "404: no" && queue.fault?.areCredentialsRefused == false)
        #expect(queue.room(at: start) == 0)
        #expect(queue.room(at: after(1)) == 1)
        // One push is sent as a probe. Its answer doubles the pause.
        _ = answerAsStranger(11...11, &queue, at: after(1))
        #expect(queue.room(at: after(2)) == 0)
        #expect(queue.room(at: after(3)) == 1)
        queue.began(1)
        let isOpened = queue.ended(.taken, of: push, at: after(3))
        #expect(isOpened)
        #expect(queue == GatewayBreaker())
    }

    @Test func `an answer of the service ends the row of foreign answers, and a timeout does not`() {
        var queue = GatewayBreaker()
        _ = answerAsStranger(1...9, &queue, at: start)
        queue.began(1)
        queue.ended(.taken, of: push, at: start)
        let isPaused = answerAsStranger(10...18, &queue, at: start)
        #expect(!isPaused)
        queue.began(1)
        queue.ended(.unanswered(reason: "timedOut"), of: push, at: start)
        let isPausedByTenth = answerAsStranger(19...19, &queue, at: start)
        #expect(isPausedByTenth)
    }

    @Test func `one push with repeated foreign answers pauses nothing`() {
        var queue = GatewayBreaker()
        for _ in 0..<100 {
            let isPaused = answerAsStranger(7...7, &queue, at: start)
            #expect(!isPaused)
        }
        #expect(queue.room(at: start) == GatewayBreaker.widest)
    }

    @Test func `new credentials reset the row of foreign answers`() {
        var queue = GatewayBreaker()
        _ = answerAsStranger(1...9, &queue, at: start)
        queue.renewed()
        let isPaused = answerAsStranger(10...18, &queue, at: start)
        #expect(!isPaused)
    }

    // MARK: Answers

    static let answersOfTheService: [PushAnswer] = [
        .taken, .tokenDead(reason: "Unregistered", since: nil), .tokenUnknownHere(reason: "BadDeviceToken"),
        .tokenOfAnotherApp(reason: "DeviceTokenNotForTopic"), .wrong(reason: "BadTopic"),
        .later(reason: "TooManyRequests", seconds: 1),
    ]

    @Test(arguments: answersOfTheService)
    func `each answer of the service opens a paused push queue, and widens the window`(_ answer: PushAnswer) {
        var queue = GatewayBreaker()
        queue.began(4)
        queue.ended(.unanswered(reason: "timedOut"), of: push, at: start)
        queue.ended(.unanswered(reason: "timedOut"), of: push, at: start)
        let isPaused = queue.ended(.unreachable(reason: "down"), of: push, at: start)
        #expect(isPaused)
        let window = queue.window
        let isOpened = queue.ended(answer, of: push, at: after(1))
        #expect(isOpened && queue.fault == nil && queue.window == window + window / 8)
    }

    @Test(arguments: [nil, .notSent] as [PushAnswer?])
    func `a push without evidence changes only the number under way`(_ answer: PushAnswer?) {
        for pauses in [false, true] {
            var queue = GatewayBreaker()
            queue.began(1)
            if pauses { queue.ended(.unreachable(reason: "down"), of: push, at: start) }
            let before = queue
            queue.began(1)
            let hasTurned = queue.ended(answer, of: push, at: after(1))
            #expect(!hasTurned && queue == before)
        }
    }

    @Test func `a missing answer does not open a paused push queue`() {
        var queue = GatewayBreaker()
        queue.began(2)
        queue.ended(.unreachable(reason: "down"), of: push, at: start)
        let hasTurned = queue.ended(.unanswered(reason: "timedOut"), of: push, at: after(1))
        #expect(!hasTurned && queue.fault?.reason == "down" && queue.window == GatewayBreaker.widest / 2)
    }

    @Test func `an answer pauses the push queue with its reason`() {
        let faults: [(answer: PushAnswer, reason: String, areCredentialsRefused: Bool)] = [
            (.unreachable(reason: "down"), "down", false),
            (.credentialsRefused(reason: "Forbidden"), "Forbidden", true),
        ]
        for (answer, reason, areCredentialsRefused) in faults {
            var queue = GatewayBreaker()
            queue.began(1)
            let isPaused = queue.ended(answer, of: push, at: start)
            #expect(isPaused && queue.fault?.reason == reason && queue.fault?.since == start)
            #expect(queue.fault?.areCredentialsRefused == areCredentialsRefused && queue.window == GatewayBreaker.widest)
        }
    }
}
