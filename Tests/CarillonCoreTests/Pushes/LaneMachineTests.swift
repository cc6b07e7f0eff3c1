import CarillonCore
import CarillonWire
import Testing

struct LaneMachineTests {
    private let start = Timestamp(milliseconds: 1_700_000_000_000)

    private let push = Bytes16(high: 0, low: 1)

    private func after(_ seconds: Int64) -> Timestamp { start.adding(seconds: seconds) }

    @Test func `as many may be under way as the window is wide`() {
        var lane = LaneMachine()
        #expect(lane.room(at: start) == LaneMachine.widest)
        lane.began(LaneMachine.widest - 1)
        #expect(lane.room(at: start) == 1)
        lane.began(1)
        #expect(lane.room(at: start) == 0)
        lane.ended(.well, of: push, at: start)
        #expect(lane.room(at: start) == 1)
    }

    @Test func `silence narrows the window to one, and answers widen it again`() {
        var lane = LaneMachine()
        lane.began(100)
        for _ in 0..<20 { lane.ended(.silent, of: push, at: start) }
        #expect(lane.window == 1)
        #expect(lane.room(at: start) == 0, "eighty are under way")
        for _ in 0..<80 { lane.ended(.well, of: push, at: start) }
        #expect(lane.window == LaneMachine.widest)
    }

    @Test func `credentials that are refused pause the lane for a minute, then one push sees whether they are now taken`() {
        var lane = LaneMachine()
        lane.began(3)
        let turn1 = lane.ended(.credentialsRefused(reason: "InvalidProviderToken"), of: push, at: start)
        #expect(turn1)
        #expect(lane.fault?.reason == "InvalidProviderToken" && lane.fault?.areCredentialsRefused == true)
        #expect(lane.fault?.since == start)
        // What was under way with it is told once.
        let turn2 = lane.ended(.credentialsRefused(reason: "InvalidProviderToken"), of: push, at: start)
        #expect(!turn2)
        let turn3 = lane.ended(.nothing, of: push, at: start)
        #expect(!turn3)
        #expect(lane.room(at: after(59)) == 0)
        #expect(lane.room(at: after(60)) == 1)
        lane.began(1)
        #expect(lane.room(at: after(61)) == 0, "one at a time")
        let turn4 = lane.ended(.credentialsRefused(reason: "InvalidProviderToken"), of: push, at: after(61))
        #expect(!turn4)
        #expect(lane.fault?.since == start)
        #expect(lane.room(at: after(120)) == 0)
        #expect(lane.room(at: after(121)) == 1)
        lane.began(1)
        let turn5 = lane.ended(.well, of: push, at: after(121))
        #expect(turn5, "it is open again")
        #expect(lane.fault == nil)
        #expect(lane.room(at: after(121)) == LaneMachine.widest)
    }

    @Test func `a service that cannot be reached is tried after 1, 2, 4 seconds, up to a minute`() {
        var lane = LaneMachine()
        var now = start
        var pauses: [Int64] = []
        for _ in 0..<9 {
            lane.began(1)
            lane.ended(.unreachable(reason: "connectionFailed"), of: push, at: now)
            let next = (1...100).first { lane.room(at: now.adding(seconds: $0)) == 1 } ?? 0
            pauses.append(next)
            now = now.adding(seconds: next)
        }
        #expect(pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60])
        lane.began(1)
        lane.ended(.well, of: push, at: now)
        lane.began(1)
        lane.ended(.unreachable(reason: "connectionFailed"), of: push, at: now)
        #expect(lane.room(at: now.adding(seconds: 1)) == 1, "it begins again with a second")
    }

    @Test func `what was under way when it was paused makes the pause no longer`() {
        var lane = LaneMachine()
        lane.began(10)
        for second in Int64(0)..<5 { lane.ended(.credentialsRefused(reason: "Forbidden"), of: push, at: after(second)) }
        for _ in 0..<5 { lane.ended(.nothing, of: push, at: after(5)) }
        #expect(lane.room(at: after(60)) == 1)
        var other = LaneMachine()
        other.began(10)
        for _ in 0..<10 { other.ended(.unreachable(reason: "down"), of: push, at: start) }
        #expect(other.room(at: after(1)) == 1)
    }

    @Test func `new credentials open it at once`() {
        var lane = LaneMachine()
        lane.began(1)
        lane.ended(.credentialsRefused(reason: "Forbidden"), of: push, at: start)
        lane.renewed()
        #expect(lane.fault == nil)
        #expect(lane.room(at: start) == LaneMachine.widest)
    }

    @Test func `a clock that was set back holds a lane up for no longer than a pause`() {
        var lane = LaneMachine()
        lane.began(1)
        lane.ended(.credentialsRefused(reason: "Forbidden"), of: push, at: start)
        #expect(lane.room(at: after(-3600)) == 1)
    }

    private func answerAsStranger(_ pushes: ClosedRange<UInt64>, _ lane: inout LaneMachine, at now: Timestamp) -> Bool {
        var hasTurned = false
        for number in pushes {
            lane.began(1)
            let push = Bytes16(high: 0, low: number)
            hasTurned = lane.ended(.unknown(description: "404: no"), of: push, at: now) || hasTurned
        }
        return hasTurned
    }

    @Test func `ten pushes in a row with an answer of a stranger pause the lane as an unreachable service does`() {
        var lane = LaneMachine()
        let isPausedByNine = answerAsStranger(1...9, &lane, at: start)
        #expect(!isPausedByNine)
        #expect(lane.fault == nil && lane.room(at: start) == LaneMachine.widest)
        let isPausedByTen = answerAsStranger(10...10, &lane, at: start)
        #expect(isPausedByTen)
        #expect(lane.fault?.reason == "404: no" && lane.fault?.areCredentialsRefused == false)
        #expect(lane.room(at: start) == 0)
        #expect(lane.room(at: after(1)) == 1)
        // The probe is one push, and its answer pauses the lane for longer.
        _ = answerAsStranger(11...11, &lane, at: after(1))
        #expect(lane.room(at: after(2)) == 0)
        #expect(lane.room(at: after(3)) == 1)
        lane.began(1)
        let isOpened = lane.ended(.well, of: push, at: after(3))
        #expect(isOpened)
        #expect(lane == LaneMachine())
    }

    @Test func `an answer of the service ends the row of strangers, and silence does not`() {
        var lane = LaneMachine()
        _ = answerAsStranger(1...9, &lane, at: start)
        lane.began(1)
        lane.ended(.well, of: push, at: start)
        let isPaused = answerAsStranger(10...18, &lane, at: start)
        #expect(!isPaused)
        lane.began(1)
        lane.ended(.silent, of: push, at: start)
        let isPausedByTenth = answerAsStranger(19...19, &lane, at: start)
        #expect(isPausedByTenth)
    }

    @Test func `one push that always has an answer of a stranger pauses nothing`() {
        var lane = LaneMachine()
        for _ in 0..<100 {
            let isPaused = answerAsStranger(7...7, &lane, at: start)
            #expect(!isPaused)
        }
        #expect(lane.room(at: start) == LaneMachine.widest)
    }

    @Test func `new credentials forget the row of strangers`() {
        var lane = LaneMachine()
        _ = answerAsStranger(1...9, &lane, at: start)
        lane.renewed()
        let isPaused = answerAsStranger(10...18, &lane, at: start)
        #expect(!isPaused)
    }
}
