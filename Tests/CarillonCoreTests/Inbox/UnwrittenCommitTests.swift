import CarillonCore
import CarillonWire
import Testing

/// The handling of changes in a commit queue that failed and have no waiter.
struct UnwrittenCommitTests {
    private typealias Queue = CommitQueue<Int>

    private static let start = ContinuousClock.now

    private let acknowledged = FinalOutcome(.acknowledged, at: Sample.now)

    private func append(_ position: Int64) -> InboxOperation { .append(Sample.envelope(position), AppendRules()) }

    private func finish(_ position: Int64, _ device: DeviceSerial = Sample.device) -> InboxOperation {
        .finish(Sample.id(position), device: device, acknowledged)
    }

    /// Takes a batch whose operations all fail.
    private func fail(_ queue: inout Queue) -> (failed: [InboxOperation], dropped: [InboxOperation]) {
        let batch = queue.takeBatch()
        let failed = queue.failed(batch.filter { $0.waiter == nil }.map { ($0.operation, false) })
        _ = queue.committed(at: Self.start)
        return failed
    }

    private func queue(_ positions: ClosedRange<Int64>, limits: Queue.Limits = .init()) -> Queue {
        var queue = Queue(limits: limits)
        for position in positions { _ = queue.finished(Sample.id(position), device: Sample.device, acknowledged) }
        _ = queue.wakeElapsed(.leisurely, at: Self.start)
        return queue
    }

    @Test func `an outcome that failed is tried again after a while, until it is written`() {
        var queue = queue(1...2)
        #expect(fail(&queue).failed == [finish(1), finish(2)])
        #expect(queue.hasUnwritten && queue.isUnwritten(Sample.id(1)) && !queue.isUnwritten(Sample.id(3)))
        #expect(queue.wakeForUnwritten() == .wake(.again, after: .seconds(1)))
        #expect(queue.wakeForUnwritten() == .none)
        for _ in 0..<3 {
            #expect(queue.wakeElapsed(.again, at: Self.start) == .commit)
            #expect(fail(&queue).failed.count == 2)
            #expect(queue.wakeForUnwritten() == .wake(.again, after: .seconds(1)))
        }
        #expect(queue.wakeElapsed(.again, at: Self.start) == .commit)
        #expect(Set(queue.takeBatch().compactMap { $0.operation.device }) == [Sample.device])
        #expect(queue.isUnwritten(Sample.id(1)))
        #expect(queue.committed(at: Self.start) == .none)
        #expect(!queue.hasUnwritten && !queue.isUnwritten(Sample.id(1)) && queue.wakeForUnwritten() == .none)
    }

    @Test func `a repeated operation has a commit of its own, between the earlier and the later ones`() {
        var queue = queue(1...2)
        _ = fail(&queue)
        _ = queue.enqueue(append(10), urgency: .now, waiter: 10, at: Self.start)
        #expect(queue.tryUnwritten(of: Sample.device) == .commit)
        _ = queue.enqueue(append(11), urgency: .now, waiter: 11, at: Self.start)
        #expect(queue.takeBatch().map(\.waiter) == [10])
        #expect(queue.committed(at: Self.start) == .commit)
        #expect(queue.takeBatch().count == 2)
        #expect(queue.committed(at: Self.start) == .commit)
        #expect(queue.takeBatch().map(\.waiter) == [11])
        #expect(queue.committed(at: Self.start) == .none)
        #expect(queue.throughCount == queue.queuedCount)
    }

    @Test func `without a success, the other changes are not tried; after one, they follow at once`() {
        var queue = queue(1...6, limits: .init(batch: 2))
        for _ in 0..<3 { _ = fail(&queue) }
        _ = queue.tryUnwritten()
        #expect(fail(&queue).failed.count == 6)
        #expect(queue.takeBatch().isEmpty && queue.throughCount == queue.queuedCount)
        #expect(queue.wakeElapsed(.again, at: Self.start) == .commit)
        var written = 0
        var next = Queue.Action.commit
        while next == .commit {
            written += queue.takeBatch().count
            next = queue.committed(at: Self.start)
        }
        #expect(written == 6 && !queue.hasUnwritten)
    }

    @Test func `an outcome that always fails does not prevent the writes of others`() {
        var queue = queue(1...3)
        _ = fail(&queue)
        #expect(queue.wakeElapsed(.again, at: Self.start) == .commit)
        _ = queue.takeBatch()
        _ = queue.failed([(finish(2), false)])
        #expect(queue.committed(at: Self.start) == .commit)
        #expect(queue.takeBatch().map(\.operation) == [finish(2)])
        _ = queue.failed([(finish(2), false)])
        // It alone is no reason to continue at once.
        #expect(queue.committed(at: Self.start) == .none)
        #expect(queue.isUnwritten(Sample.id(2)) && !queue.isUnwritten(Sample.id(1)))
    }

    @Test func `beyond the limit the newest are dropped, and a repeated outcome counts once`() {
        var queue = queue(1...5, limits: .init(unwritten: 3))
        let (failed, dropped) = fail(&queue)
        #expect(failed.count == 5 && dropped == [finish(4), finish(5)])
        for _ in 0..<2 {
            _ = queue.finished(Sample.id(1), device: Sample.device, acknowledged)
            _ = queue.wakeElapsed(.leisurely, at: Self.start)
            #expect(fail(&queue).dropped.isEmpty)
        }
        #expect(queue.tryUnwritten() == .commit)
        #expect(queue.takeBatch().count == 3)
    }

    @Test func `an outcome follows its message of TTL 0, which is not written yet`() {
        var queue = Queue()
        let trace = Sample.envelope(1, ttl: 0).trace
        _ = queue.enqueue(.append(trace, AppendRules()), urgency: .now, waiter: nil, at: Self.start)
        _ = fail(&queue)
        _ = queue.finished(Sample.id(1), device: Sample.device, acknowledged)
        _ = queue.finished(Sample.id(2), device: Sample.device, acknowledged)
        _ = queue.wakeElapsed(.leisurely, at: Self.start)
        // The store finds neither.
        let vain = queue.takeBatch().map { (operation: $0.operation, isVain: true) }
        #expect(queue.failed(vain).failed == [finish(1)])
        _ = queue.committed(at: Self.start)
        _ = queue.tryUnwritten()
        #expect(queue.takeBatch().map(\.operation) == [.append(trace, AppendRules()), finish(1)])
    }

    @Test func `a record is kept without its body`() {
        var queue = Queue()
        _ = queue.enqueue(append(1), urgency: .offered, waiter: 1, at: Self.start)
        _ = queue.finished(Sample.id(1), device: Sample.device, acknowledged)
        _ = queue.wakeElapsed(.now, at: Self.start)
        _ = fail(&queue)
        _ = queue.tryUnwritten()
        let kept = queue.takeBatch().map(\.operation)
        #expect(kept == [.record(Sample.envelope(1).trace, AppendRules(), acknowledged)])
    }

    @Test func `a message that waits to be acknowledged stays where it is in the queue`() {
        var queue = Queue()
        _ = queue.finished(Sample.id(9), device: Sample.device, acknowledged)
        _ = queue.wakeElapsed(.leisurely, at: Self.start)
        _ = fail(&queue)
        _ = queue.tryUnwritten()
        _ = queue.enqueue(append(1), urgency: .offered, waiter: 1, at: Self.start)
        #expect(queue.takeBatch().map(\.operation) == [finish(9)])
        #expect(queue.finished(Sample.id(1), device: Sample.device, acknowledged) == .write(1))
    }
}
