import CarillonCore
import CarillonWire
import TestSupport
import Testing

@testable import CarillonServer

/// The order and the delays of calls about devices, without a clock.
@Suite(.timeLimit(.minutes(5)))
struct LinkQueuesTests {
    private typealias Queues = LinkQueues<Int, NotingSession>

    private let start = ContinuousClock.now
    private let queue = LinkQueueName.serial(DeviceSerial(1))
    private let other = LinkQueueName.serial(DeviceSerial(2))

    private func after(_ milliseconds: Int) -> ContinuousClock.Instant { start + .milliseconds(milliseconds) }

    /// The next action of a task.
    private enum Step: Equatable {
        case waits(untilMilliseconds: Int)
        case takes(Int)
        case ends
    }

    private func next(_ queues: inout Queues, _ name: LinkQueueName, atMilliseconds now: Int) -> Step {
        switch queues.next(in: name, at: after(now)) {
        case .wait(let due): .waits(untilMilliseconds: Int((due - start) / .milliseconds(1)))
        case .call(let call, _): .takes(call)
        case .done: .ends
        }
    }

    @Test func `a call is taken from its moment on, and after the earlier calls of its queue`() {
        var queues = Queues()
        #expect(queues.append(1, to: queue, due: after(20)) == queue)
        #expect(queues.append(2, to: queue, due: after(5)) == nil)
        #expect(queues.append(3, to: queue, due: after(30)) == nil)
        #expect(next(&queues, queue, atMilliseconds: 19) == .waits(untilMilliseconds: 20))
        #expect(next(&queues, queue, atMilliseconds: 20) == .takes(1))
        #expect(next(&queues, queue, atMilliseconds: 20) == .takes(2))
        #expect(next(&queues, queue, atMilliseconds: 20) == .waits(untilMilliseconds: 30))
        #expect(next(&queues, queue, atMilliseconds: 31) == .takes(3))
        #expect(!queues.isIdle)
        #expect(next(&queues, queue, atMilliseconds: 31) == .ends)
        #expect(queues.isIdle && queues.count == 0)
    }

    @Test(arguments: RandomSeed.some(0...19))
    func `calls keep the order of their queue with any delays`(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var queues = Queues()
        let names = (Int64(1)...4).map { LinkQueueName.serial(DeviceSerial($0)) }
        var (busy, now, taken): (Set<LinkQueueName>, Int, [LinkQueueName: [Int]]) = ([], 0, [:])
        var added: [LinkQueueName: [Int]] = [:]
        for call in 0..<300 {
            now += Int.random(in: 0...3, using: &random)
            let name = names[Int.random(in: 0..<4, using: &random)]
            added[name, default: []].append(call)
            let begins = queues.append(call, to: name, due: after(now + Int.random(in: 0...20, using: &random)))
            #expect(begins == (busy.contains(name) ? nil : name), "a queue has one task")
            busy.insert(name)
            for name in busy.sorted(by: { "\($0)" < "\($1)" }) where Bool.random(using: &random) {
                switch next(&queues, name, atMilliseconds: now) {
                case .takes(let call): taken[name, default: []].append(call)
                case .ends: busy.remove(name)
                case .waits(let moment): #expect(moment > now)
                }
            }
            #expect(queues.isIdle == busy.isEmpty)
        }
        for name in busy {
            while case .takes(let call) = next(&queues, name, atMilliseconds: now + 20) {
                taken[name, default: []].append(call)
            }
        }
        #expect(taken == added, "seed \(seed)")
        #expect(queues.isIdle && queues.count == 0)
    }

    @Test func `a queue does not wait for another queue`() {
        var queues = Queues()
        #expect(queues.append(1, to: queue, due: after(20)) == queue)
        #expect(queues.append(2, to: other, due: after(0)) == other)
        #expect(next(&queues, other, atMilliseconds: 0) == .takes(2))
        #expect(next(&queues, other, atMilliseconds: 0) == .ends)
        #expect(!queues.isIdle, "the first queue is busy")
        #expect(next(&queues, queue, atMilliseconds: 0) == .waits(untilMilliseconds: 20))
    }

    @Test func `removed calls are counted, and the others keep their order and moments`() {
        var queues = Queues()
        for call in 1...4 { _ = queues.append(call, to: queue, bytes: 10 * call, due: after(call)) }
        _ = queues.append(5, to: other, bytes: 50, due: after(5))
        let removed = queues.removeCalls { $0 % 2 == 1 }
        #expect(removed.count == 3 && removed.bytes == 90)
        #expect(next(&queues, queue, atMilliseconds: 1) == .waits(untilMilliseconds: 2))
        guard case .call(2, bytes: 20) = queues.next(in: queue, at: after(2)) else {
            Issue.record("another step")
            return
        }
        #expect(next(&queues, queue, atMilliseconds: 4) == .takes(4))
        #expect(queues.append(6, to: other, due: after(6)) == nil, "the task has not ended")
        #expect(next(&queues, other, atMilliseconds: 6) == .takes(6))
    }

    @Test func `calls with the serial number pass by the queue of the session while the queue exists`() {
        let name = LinkQueueName.credential([1])
        let device = DeviceSerial(1)
        let session = NotingSession()
        var queues = Queues()
        #expect(queues.append(1, to: name, due: after(0)) == name)
        queues.add(session, to: name)
        queues.connect(device, to: name)
        #expect(queues.append(2, to: .serial(device), due: after(0)) == nil)
        #expect(queues.sessions(inQueueOf: device).map(ObjectIdentifier.init) == [ObjectIdentifier(session)])
        #expect(queues.sessions(inQueueOf: DeviceSerial(2)).isEmpty)
        #expect(next(&queues, name, atMilliseconds: 0) == .takes(1))
        #expect(next(&queues, name, atMilliseconds: 0) == .takes(2))
        #expect(next(&queues, name, atMilliseconds: 0) == .ends)
        #expect(queues.count == 1, "the queue has a session")
        #expect(queues.append(3, to: .serial(device), due: after(0)) == name)
        queues.remove(session, from: name)
        #expect(queues.count == 1, "the queue has a call")
        #expect(next(&queues, name, atMilliseconds: 0) == .takes(3))
        #expect(next(&queues, name, atMilliseconds: 0) == .ends)
        #expect(queues.count == 0)
        #expect(queues.append(4, to: .serial(device), due: after(0)) == .serial(device))
    }

    @Test func `a device that arrived by a second queue keeps it when the first one ends`() {
        let (first, second) = (LinkQueueName.credential([1]), LinkQueueName.credential([2]))
        let device = DeviceSerial(1)
        let sessions = [NotingSession(), NotingSession()]
        var queues = Queues()
        for (name, session) in zip([first, second], sessions) {
            _ = queues.append(1, to: name, due: after(0))
            queues.add(session, to: name)
            queues.connect(device, to: name)
            #expect(next(&queues, name, atMilliseconds: 0) == .takes(1))
            #expect(next(&queues, name, atMilliseconds: 0) == .ends)
        }
        queues.remove(sessions[0], from: first)
        #expect(queues.count == 1)
        #expect(queues.append(2, to: .serial(device), due: after(0)) == second)
    }
}
