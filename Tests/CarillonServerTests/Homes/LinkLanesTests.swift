import CarillonCore
import CarillonWire
import TestSupport
import Testing

@testable import CarillonServer

/// The order and the delays of calls about devices, without a clock.
@Suite(.timeLimit(.minutes(5)))
struct LinkLanesTests {
    private typealias Lanes = LinkLanes<Int, NotingSession>

    private let start = ContinuousClock.now
    private let lane = LinkLaneName.serial(DeviceSerial(1))
    private let other = LinkLaneName.serial(DeviceSerial(2))

    private func after(_ milliseconds: Int) -> ContinuousClock.Instant { start + .milliseconds(milliseconds) }

    /// What a task does next.
    private enum Step: Equatable {
        case waits(untilMilliseconds: Int)
        case takes(Int)
        case ends
    }

    private func next(_ lanes: inout Lanes, _ name: LinkLaneName, atMilliseconds now: Int) -> Step {
        switch lanes.next(in: name, at: after(now)) {
        case .wait(let due): .waits(untilMilliseconds: Int((due - start) / .milliseconds(1)))
        case .call(let call, _): .takes(call)
        case .done: .ends
        }
    }

    @Test func `a call is taken from its moment on, and after the earlier calls of its lane`() {
        var lanes = Lanes()
        #expect(lanes.append(1, to: lane, due: after(20)) == lane)
        #expect(lanes.append(2, to: lane, due: after(5)) == nil)
        #expect(lanes.append(3, to: lane, due: after(30)) == nil)
        #expect(next(&lanes, lane, atMilliseconds: 19) == .waits(untilMilliseconds: 20))
        #expect(next(&lanes, lane, atMilliseconds: 20) == .takes(1))
        #expect(next(&lanes, lane, atMilliseconds: 20) == .takes(2))
        #expect(next(&lanes, lane, atMilliseconds: 20) == .waits(untilMilliseconds: 30))
        #expect(next(&lanes, lane, atMilliseconds: 31) == .takes(3))
        #expect(!lanes.isIdle)
        #expect(next(&lanes, lane, atMilliseconds: 31) == .ends)
        #expect(lanes.isIdle && lanes.count == 0)
    }

    @Test(arguments: RandomSeed.some(0...19))
    func `calls keep the order of their lane with any delays`(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var lanes = Lanes()
        let names = (Int64(1)...4).map { LinkLaneName.serial(DeviceSerial($0)) }
        var (busy, now, taken): (Set<LinkLaneName>, Int, [LinkLaneName: [Int]]) = ([], 0, [:])
        var added: [LinkLaneName: [Int]] = [:]
        for call in 0..<300 {
            now += Int.random(in: 0...3, using: &random)
            let name = names[Int.random(in: 0..<4, using: &random)]
            added[name, default: []].append(call)
            let begins = lanes.append(call, to: name, due: after(now + Int.random(in: 0...20, using: &random)))
            #expect(begins == (busy.contains(name) ? nil : name), "a lane has one task")
            busy.insert(name)
            for name in busy.sorted(by: { "\($0)" < "\($1)" }) where Bool.random(using: &random) {
                switch next(&lanes, name, atMilliseconds: now) {
                case .takes(let call): taken[name, default: []].append(call)
                case .ends: busy.remove(name)
                case .waits(let moment): #expect(moment > now)
                }
            }
            #expect(lanes.isIdle == busy.isEmpty)
        }
        for name in busy {
            while case .takes(let call) = next(&lanes, name, atMilliseconds: now + 20) {
                taken[name, default: []].append(call)
            }
        }
        #expect(taken == added, "seed \(seed)")
        #expect(lanes.isIdle && lanes.count == 0)
    }

    @Test func `a lane does not wait for another lane`() {
        var lanes = Lanes()
        #expect(lanes.append(1, to: lane, due: after(20)) == lane)
        #expect(lanes.append(2, to: other, due: after(0)) == other)
        #expect(next(&lanes, other, atMilliseconds: 0) == .takes(2))
        #expect(next(&lanes, other, atMilliseconds: 0) == .ends)
        #expect(!lanes.isIdle, "the first lane is busy")
        #expect(next(&lanes, lane, atMilliseconds: 0) == .waits(untilMilliseconds: 20))
    }

    @Test func `removed calls are counted, and the others keep their order and moments`() {
        var lanes = Lanes()
        for call in 1...4 { _ = lanes.append(call, to: lane, bytes: 10 * call, due: after(call)) }
        _ = lanes.append(5, to: other, bytes: 50, due: after(5))
        let removed = lanes.removeCalls { $0 % 2 == 1 }
        #expect(removed.count == 3 && removed.bytes == 90)
        #expect(next(&lanes, lane, atMilliseconds: 1) == .waits(untilMilliseconds: 2))
        guard case .call(2, bytes: 20) = lanes.next(in: lane, at: after(2)) else {
            Issue.record("another step")
            return
        }
        #expect(next(&lanes, lane, atMilliseconds: 4) == .takes(4))
        #expect(lanes.append(6, to: other, due: after(6)) == nil, "the task has not ended")
        #expect(next(&lanes, other, atMilliseconds: 6) == .takes(6))
    }

    @Test func `calls with the serial number pass by the lane of the session while the lane exists`() {
        let name = LinkLaneName.credential([1])
        let device = DeviceSerial(1)
        let session = NotingSession()
        var lanes = Lanes()
        #expect(lanes.append(1, to: name, due: after(0)) == name)
        lanes.add(session, to: name)
        lanes.connect(device, to: name)
        #expect(lanes.append(2, to: .serial(device), due: after(0)) == nil)
        #expect(lanes.sessions(inLaneOf: device).map(ObjectIdentifier.init) == [ObjectIdentifier(session)])
        #expect(lanes.sessions(inLaneOf: DeviceSerial(2)).isEmpty)
        #expect(next(&lanes, name, atMilliseconds: 0) == .takes(1))
        #expect(next(&lanes, name, atMilliseconds: 0) == .takes(2))
        #expect(next(&lanes, name, atMilliseconds: 0) == .ends)
        #expect(lanes.count == 1, "the lane has a session")
        #expect(lanes.append(3, to: .serial(device), due: after(0)) == name)
        lanes.remove(session, from: name)
        #expect(lanes.count == 1, "the lane has a call")
        #expect(next(&lanes, name, atMilliseconds: 0) == .takes(3))
        #expect(next(&lanes, name, atMilliseconds: 0) == .ends)
        #expect(lanes.count == 0)
        #expect(lanes.append(4, to: .serial(device), due: after(0)) == .serial(device))
    }

    @Test func `a device that arrived by a second lane keeps it when the first one ends`() {
        let (first, second) = (LinkLaneName.credential([1]), LinkLaneName.credential([2]))
        let device = DeviceSerial(1)
        let sessions = [NotingSession(), NotingSession()]
        var lanes = Lanes()
        for (name, session) in zip([first, second], sessions) {
            _ = lanes.append(1, to: name, due: after(0))
            lanes.add(session, to: name)
            lanes.connect(device, to: name)
            #expect(next(&lanes, name, atMilliseconds: 0) == .takes(1))
            #expect(next(&lanes, name, atMilliseconds: 0) == .ends)
        }
        lanes.remove(sessions[0], from: first)
        #expect(lanes.count == 1)
        #expect(lanes.append(2, to: .serial(device), due: after(0)) == second)
    }
}
