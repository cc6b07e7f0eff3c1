import CarillonCore
import CarillonWire
import Testing

struct CommitQueueTests {
    private typealias Queue = CommitQueue<Int>

    private let acknowledged = Settlement(.acknowledged, code: 100, at: Sample.now)

    private func append(_ position: Int64) -> InboxOperation { .append(Sample.envelope(position), AppendRules()) }

    @Test func `a message for an absent device is committed at once`() {
        var queue = Queue()
        #expect(queue.enqueue(append(1), urgency: .now, waiter: 10) == .accepted(.commit))
        #expect(queue.takeBatch().map(\.waiter) == [10])
        #expect(queue.committed() == .none)
    }

    @Test func `what comes during a commit forms the next one`() {
        var queue = Queue()
        _ = queue.enqueue(append(1), urgency: .now, waiter: 1)
        _ = queue.takeBatch()
        #expect(queue.enqueue(append(2), urgency: .now, waiter: 2) == .accepted(.none))
        #expect(queue.enqueue(append(3), urgency: .now, waiter: 3) == .accepted(.none))
        #expect(queue.takeBatch().isEmpty)
        #expect(queue.committed() == .commit)
        #expect(queue.takeBatch().map(\.waiter) == [2, 3])
    }

    @Test func `an acknowledgement before the commit cancels the write and answers the sender`() {
        var queue = Queue()
        let first = queue.enqueue(append(1), urgency: .offered, waiter: 10)
        guard case .accepted(.wake(.offered, after: _)) = first else {
            Issue.record("an offered message waits for company")
            return
        }
        #expect(queue.settled(Sample.id(1), device: Sample.device, acknowledged) == .write(10))
        #expect(queue.wakeElapsed(.offered) == .wake(.leisurely, after: Queue.Limits().leisurelyDelay))
        #expect(queue.wakeElapsed(.leisurely) == .commit)
        let batch = queue.takeBatch()
        #expect(batch.map(\.operation) == [.record(Sample.envelope(1), AppendRules(), acknowledged)])
        #expect(batch.map(\.waiter) == [nil])
    }

    @Test func `messages that are always young do not hold up outcomes for longer than these may wait`() {
        var queue = Queue()
        _ = queue.enqueue(append(1), urgency: .offered, waiter: 1)
        var wakes = 0
        var action = Queue.Action.none
        while action != .commit, wakes < 100 {
            let position = Int64(wakes + 2)
            _ = queue.enqueue(append(position), urgency: .offered, waiter: Int(position))
            _ = queue.settled(Sample.id(position - 1), device: Sample.device, acknowledged)
            action = queue.wakeElapsed(.offered)
            wakes += 1
        }
        #expect((10...20).contains(wakes))
    }

    @Test func `an acknowledgement during the commit follows it, and does not answer the sender`() {
        var queue = Queue()
        _ = queue.enqueue(append(1), urgency: .offered, waiter: 10)
        #expect(queue.wakeElapsed(.offered) == .wake(.offered, after: Queue.Limits().offeredDelay))
        #expect(queue.wakeElapsed(.offered) == .commit)
        #expect(queue.takeBatch().map(\.waiter) == [10])
        guard case .queued = queue.settled(Sample.id(1), device: Sample.device, acknowledged) else {
            Issue.record("the write is under way and nothing stops it")
            return
        }
        _ = queue.committed()
        #expect(queue.wakeElapsed(.leisurely) == .commit)
        #expect(queue.takeBatch().map(\.operation) == [.settle(Sample.id(1), device: Sample.device, acknowledged)])
    }

    @Test func `another device's word does not cancel a write`() {
        var queue = Queue()
        _ = queue.enqueue(append(1), urgency: .offered, waiter: 10)
        guard case .queued = queue.settled(Sample.id(1), device: DeviceSerial(2), acknowledged) else {
            Issue.record("it must be left to the store, which refuses it")
            return
        }
        let forged = MessageID(position: 1, secret: Bytes16(high: 0, low: 0))
        guard case .queued = queue.settled(forged, device: Sample.device, acknowledged) else {
            Issue.record("the identifier is not the message's")
            return
        }
        #expect(queue.wakeElapsed(.offered) == .wake(.offered, after: Queue.Limits().offeredDelay))
        #expect(queue.wakeElapsed(.offered) == .commit)
        #expect(queue.takeBatch().first?.operation == append(1))
    }

    @Test func `the bound refuses messages and lets outcomes in`() {
        var queue = Queue(limits: .init(entries: 2))
        _ = queue.enqueue(append(1), urgency: .now, waiter: nil)
        _ = queue.enqueue(append(2), urgency: .now, waiter: nil)
        #expect(queue.enqueue(append(3), urgency: .now, waiter: nil) == .refused)
        guard case .queued = queue.settled(Sample.id(9), device: Sample.device, acknowledged) else {
            Issue.record("an outcome frees what a message took")
            return
        }
    }

    @Test func `a batch is bounded, and the rest follows in order`() {
        var queue = Queue(limits: .init(batch: 2))
        for position in 1...5 { _ = queue.enqueue(append(Int64(position)), urgency: .now, waiter: position) }
        var taken: [[Int?]] = []
        repeat { taken.append(queue.takeBatch().map(\.waiter)) } while queue.committed() == .commit
        #expect(taken == [[1, 2], [3, 4], [5]])
        #expect(queue.throughCount == queue.queuedCount)
    }

    @Test func `a write is still found by its acknowledgement after an earlier batch was taken`() {
        var queue = Queue(limits: .init(batch: 2))
        for position in 1...4 { _ = queue.enqueue(append(Int64(position)), urgency: .offered, waiter: position) }
        #expect(queue.wakeElapsed(.offered) == .wake(.offered, after: Queue.Limits().offeredDelay))
        #expect(queue.wakeElapsed(.offered) == .commit)
        #expect(queue.takeBatch().map(\.waiter) == [1, 2])
        #expect(queue.settled(Sample.id(4), device: Sample.device, acknowledged) == .write(4))
        #expect(queue.committed() == .commit)
        #expect(queue.takeBatch().map(\.waiter) == [3, nil])
    }

    @Test func `bytes bound the queue too, and what was taken makes room`() {
        let one = append(1).byteCount
        var queue = Queue(limits: .init(bytes: 2 * one, batch: 1))
        #expect(queue.enqueue(append(1), urgency: .now, waiter: nil) != .refused)
        #expect(queue.enqueue(append(2), urgency: .now, waiter: nil) != .refused)
        #expect(queue.enqueue(append(3), urgency: .now, waiter: nil) == .refused)
        #expect(queue.takeBatch().count == 1)
        #expect(queue.enqueue(append(3), urgency: .now, waiter: nil) != .refused)
        #expect(queue.enqueue(append(4), urgency: .now, waiter: nil) == .refused)
    }

    @Test func `a body that is not written any more takes no room`() {
        let large = InboxOperation.append(Sample.envelope(1, bytes: 8000), AppendRules())
        var queue = Queue(limits: .init(bytes: large.byteCount + 600))
        _ = queue.enqueue(large, urgency: .offered, waiter: nil)
        #expect(queue.enqueue(large, urgency: .now, waiter: nil) == .refused)
        _ = queue.settled(Sample.id(1), device: Sample.device, acknowledged)
        #expect(queue.enqueue(large, urgency: .now, waiter: nil) != .refused)
        _ = queue.takeBatch()
        #expect(queue.enqueue(large, urgency: .now, waiter: nil) != .refused)
    }

    @Test func `outcomes under invented identifiers are dropped in the end`() {
        var queue = Queue(limits: .init(entries: 10))
        var accepted = 0
        for position in 1...1000 {
            guard case .queued = queue.settled(Sample.id(Int64(position)), device: Sample.device, acknowledged) else {
                continue
            }
            accepted += 1
        }
        #expect(accepted == 40)
        #expect(queue.settled(Sample.id(1), device: Sample.device, acknowledged) == .refused)
        #expect(queue.dropped(Sample.id(1)) == .refused)
    }

    @Test func `a message of TTL 0 that nobody was given is not written, only what it replaces`() {
        var queue = Queue()
        let rules = AppendRules(topic: "a")
        let envelope = Sample.envelope(1, ttl: 0)
        _ = queue.enqueue(.append(envelope, rules), urgency: .offered, waiter: nil)
        #expect(queue.dropped(envelope.id) == .queued(.none))
        _ = queue.enqueue(append(2), urgency: .now, waiter: nil)
        #expect(queue.takeBatch().map(\.operation) == [.replace(envelope, rules), append(2)])
    }

    @Test func `one that is being written is removed after it`() {
        var queue = Queue()
        _ = queue.enqueue(.append(Sample.envelope(1, ttl: 0), AppendRules()), urgency: .now, waiter: nil)
        _ = queue.takeBatch()
        _ = queue.dropped(Sample.id(1))
        _ = queue.committed()
        #expect(queue.wakeElapsed(.leisurely) == .commit)
        #expect(queue.takeBatch().map(\.operation) == [.forget(Sample.id(1))])
    }

    @Test func `what was queued of a device is through when its commit is, and no flush waits for it then`() {
        var queue = CommitQueue<Int>()
        let other = DeviceSerial(2)
        _ = queue.enqueue(append(1), urgency: .offered, waiter: 1)
        #expect(queue.flush(other)?.target == nil)
        let first = queue.flush(Sample.device)
        #expect(first?.target == 1)
        #expect(first?.action == .commit)
        _ = queue.takeBatch()
        // It is under way: there is nothing to hurry.
        #expect(queue.flush(Sample.device)?.action == CommitQueue<Int>.Action.none)
        // Another's change keeps the queue from being empty.
        _ = queue.settled(Sample.id(9), device: other, Settlement(.acknowledged, at: Sample.now))
        _ = queue.committed()
        #expect(queue.flush(Sample.device)?.target == nil)
        #expect(queue.flush(other)?.target == 2)
    }

    @Test func `a queue that is never empty does not remember every device that ever was in it`() {
        var queue = CommitQueue<Int>(limits: .init(entries: 8))
        for round in Int64(0)..<100 {
            for number in Int64(1)...4 {
                let position = 4 * round + number
                let envelope = Sample.envelope(position, device: DeviceSerial(position))
                _ = queue.enqueue(.append(envelope, AppendRules()), urgency: .now, waiter: nil)
                if number == 2 { _ = queue.takeBatch() }
            }
            // Two came while the commit was under way.
            _ = queue.committed()
            #expect(queue.rememberedDevices <= 2 * 8 + 4)
        }
    }
}
