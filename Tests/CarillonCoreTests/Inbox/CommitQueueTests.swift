import CarillonCore
import CarillonWire
import TestSupport
import Testing

struct CommitQueueTests {
    private typealias Queue = CommitQueue<Int>

    private static let start = ContinuousClock.now

    private let acknowledged = FinalOutcome(.acknowledged, code: 100, at: Sample.now)

    private func append(_ position: Int64) -> InboxOperation { .append(Sample.envelope(position), AppendRules()) }

    @Test func `a message for an absent device is committed at once`() {
        var queue = Queue()
        #expect(queue.enqueue(append(1), urgency: .now, waiter: 10, at: Self.start) == .accepted(.commit))
        #expect(queue.takeBatch().map(\.waiter) == [10])
        #expect(queue.committed(at: Self.start) == .none)
    }

    @Test func `operations that arrive during a commit form the next one`() {
        var queue = Queue()
        _ = queue.enqueue(append(1), urgency: .now, waiter: 1, at: Self.start)
        _ = queue.takeBatch()
        #expect(queue.enqueue(append(2), urgency: .now, waiter: 2, at: Self.start) == .accepted(.none))
        #expect(queue.enqueue(append(3), urgency: .now, waiter: 3, at: Self.start) == .accepted(.none))
        #expect(queue.takeBatch().isEmpty)
        #expect(queue.committed(at: Self.start) == .commit)
        #expect(queue.takeBatch().map(\.waiter) == [2, 3])
    }

    @Test func `an acknowledgement before the commit cancels the write and answers the sender`() {
        var queue = Queue()
        let first = queue.enqueue(append(1), urgency: .offered, waiter: 10, at: Self.start)
        guard case .accepted(.wake(.offered, after: _)) = first else {
            Issue.record("an offered message waits for company")
            return
        }
        #expect(queue.finished(Sample.id(1), device: Sample.device, acknowledged) == .write(10))
        #expect(queue.wakeElapsed(.offered, at: Self.start) == .wake(.leisurely, after: Queue.Limits().leisurelyDelay))
        #expect(queue.wakeElapsed(.leisurely, at: Self.start) == .commit)
        let batch = queue.takeBatch()
        #expect(batch.map(\.operation) == [.record(Sample.envelope(1), AppendRules(), acknowledged)])
        #expect(batch.map(\.waiter) == [nil])
    }

    @Test func `a message that is not acknowledged is committed one millisecond after it was queued`() {
        var queue = Queue()
        #expect(
            queue.enqueue(append(1), urgency: .offered, waiter: 1, at: Self.start)
                == .accepted(.wake(.offered, after: .milliseconds(1))))
        // A wake is set already, and fires before the second has waited that long.
        #expect(
            queue.enqueue(append(2), urgency: .offered, waiter: 2, at: Self.start + .microseconds(700)) == .accepted(.none))
        #expect(queue.finished(Sample.id(1), device: Sample.device, acknowledged) == .write(1))
        #expect(
            queue.wakeElapsed(.offered, at: Self.start + .milliseconds(1)) == .wake(.offered, after: .microseconds(700)))
        #expect(queue.wakeElapsed(.offered, at: Self.start + .microseconds(1700)) == .commit)
        #expect(queue.takeBatch().map(\.waiter) == [nil, 2])
    }

    @Test func `offered messages that are young are left for another commit`() {
        var queue = Queue()
        for (waiter, microseconds) in [(1, 0), (2, 200), (3, 400)] {
            _ = queue.enqueue(
                append(Int64(waiter)), urgency: .offered, waiter: waiter, at: Self.start + .microseconds(microseconds))
        }
        #expect(queue.wakeElapsed(.offered, at: Self.start + .milliseconds(1)) == .commit)
        // 1 and 2 have waited for three quarters of the time.
        #expect(queue.takeBatch().map(\.waiter) == [1, 2])
        #expect(queue.finished(Sample.id(3), device: Sample.device, acknowledged) == .write(3))
        #expect(
            queue.committed(at: Self.start + .microseconds(1200))
                == .wake(.leisurely, after: Queue.Limits().leisurelyDelay))
    }

    @Test func `the operations that a commit omitted are committed one millisecond after they were queued`() {
        var queue = Queue()
        _ = queue.enqueue(append(1), urgency: .offered, waiter: 1, at: Self.start)
        _ = queue.enqueue(append(2), urgency: .offered, waiter: 2, at: Self.start + .microseconds(400))
        #expect(queue.wakeElapsed(.offered, at: Self.start + .milliseconds(1)) == .commit)
        #expect(queue.takeBatch().map(\.waiter) == [1])
        #expect(queue.committed(at: Self.start + .microseconds(1100)) == .wake(.offered, after: .microseconds(300)))
        #expect(queue.wakeElapsed(.offered, at: Self.start + .microseconds(1400)) == .commit)
        #expect(queue.takeBatch().map(\.waiter) == [2])
    }

    @Test func `a commit that is due at once includes young offered messages`() {
        var queue = Queue()
        _ = queue.enqueue(append(1), urgency: .offered, waiter: 1, at: Self.start)
        _ = queue.enqueue(append(2), urgency: .offered, waiter: 2, at: Self.start + .microseconds(900))
        #expect(queue.wakeElapsed(.offered, at: Self.start + .milliseconds(1)) == .commit)
        _ = queue.enqueue(append(3), urgency: .now, waiter: 3, at: Self.start + .milliseconds(1))
        #expect(queue.takeBatch().map(\.waiter) == [1, 2, 3])
        // The reverse order: a wake for offered messages does not delay operations that were due before it.
        _ = queue.enqueue(append(4), urgency: .now, waiter: 4, at: Self.start + .milliseconds(2))
        _ = queue.enqueue(append(5), urgency: .offered, waiter: 5, at: Self.start + .milliseconds(2))
        _ = queue.enqueue(append(6), urgency: .now, waiter: 6, at: Self.start + .milliseconds(2))
        _ = queue.wakeElapsed(.offered, at: Self.start + .milliseconds(3))
        #expect(queue.committed(at: Self.start + .milliseconds(3)) == .commit)
        #expect(queue.takeBatch().map(\.waiter) == [4, 5, 6])
    }

    @Test func `a message that is queued during a commit does not wait for another wake behind it`() {
        var queue = Queue()
        _ = queue.enqueue(append(1), urgency: .now, waiter: 1, at: Self.start)
        _ = queue.takeBatch()
        #expect(
            queue.enqueue(append(2), urgency: .offered, waiter: 2, at: Self.start)
                == .accepted(.wake(.offered, after: .milliseconds(1))))
        #expect(queue.wakeElapsed(.offered, at: Self.start + .milliseconds(1)) == .none)
        #expect(queue.committed(at: Self.start) == .commit)
        #expect(queue.takeBatch().map(\.waiter) == [2])
    }

    /// Microseconds of a random load: when messages are queued and acknowledged, and when wakes fire.
    @Test func `no message waits longer than a millisecond, despite other acknowledgements`() {
        var random = SeededRandom.forTest()
        var queue = Queue()
        var wakes: [(at: Int, urgency: Queue.Urgency)] = []
        var queuedAt: [Int: Int] = [:]
        var (position, committed, spared) = (0, 0, 0)

        func perform(_ action: Queue.Action, at now: Int) {
            switch action {
            case .none: break
            case .wake(let urgency, let delay): wakes.append((now + Int(delay / Duration.microseconds(1)), urgency))
            case .commit:
                for entry in queue.takeBatch() {
                    guard let waiter = entry.waiter, let queued = queuedAt.removeValue(forKey: waiter) else { continue }
                    committed += 1
                    #expect(now - queued <= 1000, "message \(waiter)")
                }
                perform(queue.committed(at: Self.start + .microseconds(now)), at: now)
            }
        }

        for now in 0..<200_000 {
            let instant = Self.start + .microseconds(now)
            if Int.random(in: 0..<150, using: &random) == 0 {
                position += 1
                queuedAt[position] = now
                guard
                    case .accepted(let action) = queue.enqueue(
                        append(Int64(position)), urgency: .offered, waiter: position, at: instant)
                else {
                    Issue.record("the queue is full")
                    return
                }
                perform(action, at: now)
            }
            if Int.random(in: 0..<200, using: &random) == 0,
                let waiter = queuedAt.keys.sorted().randomElement(using: &random)
            {
                switch queue.finished(Sample.id(Int64(waiter)), device: Sample.device, acknowledged) {
                case .write:
                    queuedAt[waiter] = nil
                    spared += 1
                case .queued(let action): perform(action, at: now)
                case .refused: Issue.record("the queue is full")
                }
            }
            let due = wakes.filter { $0.at <= now }
            wakes.removeAll { $0.at <= now }
            for wake in due { perform(queue.wakeElapsed(wake.urgency, at: instant), at: now) }
        }
        #expect(committed > 50 && spared > 50)
        // One of each urgency is set at most.
        #expect(wakes.count <= 2)
    }

    @Test func `messages that are always young do not delay outcomes beyond their time`() {
        var queue = Queue()
        _ = queue.enqueue(append(1), urgency: .offered, waiter: 1, at: Self.start)
        var (now, position) = (Self.start, Int64(1))
        var action = Queue.Action.none
        while action != .commit, now < Self.start + .seconds(1) {
            now += .microseconds(900)
            position += 1
            _ = queue.enqueue(append(position), urgency: .offered, waiter: Int(position), at: now)
            _ = queue.finished(Sample.id(position - 1), device: Sample.device, acknowledged)
            action = queue.wakeElapsed(.offered, at: now)
        }
        let waited = now - Self.start
        #expect(waited >= .milliseconds(39) && waited <= .milliseconds(45))
    }

    @Test func `an acknowledgement during the commit follows it, and does not answer the sender`() {
        var queue = Queue()
        _ = queue.enqueue(append(1), urgency: .offered, waiter: 10, at: Self.start)
        #expect(queue.wakeElapsed(.offered, at: Self.start) == .wake(.offered, after: .milliseconds(1)))
        #expect(queue.wakeElapsed(.offered, at: Self.start + .milliseconds(1)) == .commit)
        #expect(queue.takeBatch().map(\.waiter) == [10])
        guard case .queued = queue.finished(Sample.id(1), device: Sample.device, acknowledged) else {
            Issue.record("the write is under way and nothing stops it")
            return
        }
        _ = queue.committed(at: Self.start)
        #expect(queue.wakeElapsed(.leisurely, at: Self.start) == .commit)
        #expect(queue.takeBatch().map(\.operation) == [.finish(Sample.id(1), device: Sample.device, acknowledged)])
    }

    @Test func `an outcome of another device does not cancel a write`() {
        var queue = Queue()
        _ = queue.enqueue(append(1), urgency: .offered, waiter: 10, at: Self.start)
        guard case .queued = queue.finished(Sample.id(1), device: DeviceSerial(2), acknowledged) else {
            Issue.record("it must be left to the store, which refuses it")
            return
        }
        let forged = MessageID(position: 1, secret: Bytes16(high: 0, low: 0))
        guard case .queued = queue.finished(forged, device: Sample.device, acknowledged) else {
            Issue.record("the identifier is not the message's")
            return
        }
        #expect(queue.wakeElapsed(.offered, at: Self.start) == .wake(.offered, after: .milliseconds(1)))
        #expect(queue.wakeElapsed(.offered, at: Self.start + .milliseconds(1)) == .commit)
        #expect(queue.takeBatch().first?.operation == append(1))
    }

    @Test func `the limit refuses messages and admits outcomes`() {
        var queue = Queue(limits: .init(entries: 2))
        _ = queue.enqueue(append(1), urgency: .now, waiter: nil, at: Self.start)
        _ = queue.enqueue(append(2), urgency: .now, waiter: nil, at: Self.start)
        #expect(queue.enqueue(append(3), urgency: .now, waiter: nil, at: Self.start) == .refused)
        guard case .queued = queue.finished(Sample.id(9), device: Sample.device, acknowledged) else {
            Issue.record("an outcome frees the space of a message")
            return
        }
    }

    @Test func `a batch is bounded, and the rest follows in order`() {
        var queue = Queue(limits: .init(batch: 2))
        for position in 1...5 { _ = queue.enqueue(append(Int64(position)), urgency: .now, waiter: position, at: Self.start) }
        var taken: [[Int?]] = []
        repeat { taken.append(queue.takeBatch().map(\.waiter)) } while queue.committed(at: Self.start) == .commit
        #expect(taken == [[1, 2], [3, 4], [5]])
        #expect(queue.throughCount == queue.queuedCount)
    }

    @Test func `a write is still found by its acknowledgement after an earlier batch was taken`() {
        var queue = Queue(limits: .init(batch: 2))
        for position in 1...4 {
            _ = queue.enqueue(append(Int64(position)), urgency: .offered, waiter: position, at: Self.start)
        }
        #expect(queue.wakeElapsed(.offered, at: Self.start) == .wake(.offered, after: .milliseconds(1)))
        #expect(queue.wakeElapsed(.offered, at: Self.start + .milliseconds(1)) == .commit)
        #expect(queue.takeBatch().map(\.waiter) == [1, 2])
        #expect(queue.finished(Sample.id(4), device: Sample.device, acknowledged) == .write(4))
        #expect(queue.committed(at: Self.start) == .commit)
        #expect(queue.takeBatch().map(\.waiter) == [3, nil])
    }

    @Test func `bytes limit the queue too, and a taken batch makes space`() {
        let one = append(1).byteCount
        var queue = Queue(limits: .init(bytes: 2 * one, batch: 1))
        #expect(queue.enqueue(append(1), urgency: .now, waiter: nil, at: Self.start) != .refused)
        #expect(queue.enqueue(append(2), urgency: .now, waiter: nil, at: Self.start) != .refused)
        #expect(queue.enqueue(append(3), urgency: .now, waiter: nil, at: Self.start) == .refused)
        #expect(queue.takeBatch().count == 1)
        #expect(queue.enqueue(append(3), urgency: .now, waiter: nil, at: Self.start) != .refused)
        #expect(queue.enqueue(append(4), urgency: .now, waiter: nil, at: Self.start) == .refused)
    }

    @Test func `a body that is not written any more takes no space`() {
        let large = InboxOperation.append(Sample.envelope(1, bytes: 8000), AppendRules())
        var queue = Queue(limits: .init(bytes: large.byteCount + 600))
        _ = queue.enqueue(large, urgency: .offered, waiter: nil, at: Self.start)
        #expect(queue.enqueue(large, urgency: .now, waiter: nil, at: Self.start) == .refused)
        _ = queue.finished(Sample.id(1), device: Sample.device, acknowledged)
        #expect(queue.enqueue(large, urgency: .now, waiter: nil, at: Self.start) != .refused)
        _ = queue.takeBatch()
        #expect(queue.enqueue(large, urgency: .now, waiter: nil, at: Self.start) != .refused)
    }

    @Test func `outcomes under invented identifiers are dropped in the end`() {
        var queue = Queue(limits: .init(entries: 10))
        var accepted = 0
        for position in 1...1000 {
            guard case .queued = queue.finished(Sample.id(Int64(position)), device: Sample.device, acknowledged) else {
                continue
            }
            accepted += 1
        }
        #expect(accepted == 40)
        #expect(queue.finished(Sample.id(1), device: Sample.device, acknowledged) == .refused)
        #expect(queue.dropped(Sample.id(1)) == .refused)
    }

    @Test func `a message of TTL 0 that no device received is not written, only its replacement`() {
        var queue = Queue()
        let rules = AppendRules(topic: "a")
        let envelope = Sample.envelope(1, ttl: 0)
        _ = queue.enqueue(.append(envelope, rules), urgency: .offered, waiter: nil, at: Self.start)
        #expect(queue.dropped(envelope.id) == .queued(.none))
        _ = queue.enqueue(append(2), urgency: .now, waiter: nil, at: Self.start)
        #expect(queue.takeBatch().map(\.operation) == [.replace(envelope, rules), append(2)])
    }

    @Test func `a message that is being written is removed after its write`() {
        var queue = Queue()
        _ = queue.enqueue(.append(Sample.envelope(1, ttl: 0), AppendRules()), urgency: .now, waiter: nil, at: Self.start)
        _ = queue.takeBatch()
        _ = queue.dropped(Sample.id(1))
        _ = queue.committed(at: Self.start)
        #expect(queue.wakeElapsed(.leisurely, at: Self.start) == .commit)
        #expect(queue.takeBatch().map(\.operation) == [.forget(Sample.id(1))])
    }

    @Test func `the queued operations of a device end with their commit, and no flush waits for them then`() {
        var queue = CommitQueue<Int>()
        let other = DeviceSerial(2)
        _ = queue.enqueue(append(1), urgency: .offered, waiter: 1, at: Self.start)
        #expect(queue.flush(other)?.target == nil)
        let first = queue.flush(Sample.device)
        #expect(first?.target == 1)
        #expect(first?.action == .commit)
        _ = queue.takeBatch()
        // It is under way: there is nothing to hurry.
        #expect(queue.flush(Sample.device)?.action == CommitQueue<Int>.Action.none)
        // Another's change keeps the queue from being empty.
        _ = queue.finished(Sample.id(9), device: other, FinalOutcome(.acknowledged, at: Sample.now))
        _ = queue.committed(at: Self.start)
        #expect(queue.flush(Sample.device)?.target == nil)
        #expect(queue.flush(other)?.target == 2)
    }

    @Test func `a queue that is never empty does not remember every device that ever was in it`() {
        var queue = CommitQueue<Int>(limits: .init(entries: 8))
        for round in Int64(0)..<100 {
            for number in Int64(1)...4 {
                let position = 4 * round + number
                let envelope = Sample.envelope(position, device: DeviceSerial(position))
                _ = queue.enqueue(.append(envelope, AppendRules()), urgency: .now, waiter: nil, at: Self.start)
                if number == 2 { _ = queue.takeBatch() }
            }
            // Two were queued while the commit was under way.
            _ = queue.committed(at: Self.start)
            #expect(queue.rememberedDevices <= 2 * 8 + 4)
        }
    }
}
