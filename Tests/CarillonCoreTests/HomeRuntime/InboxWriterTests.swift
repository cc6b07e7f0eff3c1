import CarillonCore
import CarillonWire
import Logging
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5)))
struct InboxWriterTests {
    private let store = ScriptedInboxStore()
    private let sessions = LiveSessions()

    private func writer(
        limits: CommitQueue<InboxWriter.Waiter>.Limits = .init(), scheduler: Scheduler = Scheduler { _, _ in }
    ) -> InboxWriter {
        InboxWriter(
            store: store, sessions: sessions, scheduler: scheduler,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, limits: limits)
    }

    private func append(_ position: Int64) -> InboxOperation { .append(Sample.envelope(position), AppendRules()) }

    @Test func `operations that arrive during a commit form the next one, in order`() async throws {
        let writer = writer()
        let commit = store.hold()
        async let first = writer.write(append(1))
        await commit.begun()
        let answered = ResultCollector()
        for position in Int64(2)...20 {
            #expect(writer.enqueue(append(position), urgency: .now) { answered.add(position, $0) })
        }
        #expect(answered.positions.isEmpty)
        commit.end()
        #expect(try await first == .stored(replaced: nil))
        await writer.flush()
        #expect(store.commits.map(\.count) == [1, 19])
        #expect(store.commits[1] == (Int64(2)...20).map(append))
        #expect(answered.positions == Array(2...20))
    }

    @Test func `a read that began before a commit ended is outdated, and a later one is not`() async throws {
        let writer = writer()
        let inbox = Inbox(
            store: store, writer: writer, sessions: sessions, positions: PositionSource(epoch: 1),
            time: TimeSource { Sample.now }, random: Sample.random)
        #expect(!inbox.isOutdated(Sample.device, readAfter: sessions.changes.now()))
        let commit = store.hold()
        async let first = writer.write(append(1))
        await commit.begun()
        let moment = sessions.changes.now()
        #expect(inbox.isOutdated(Sample.device, readAfter: moment), "it is queued")
        commit.end()
        _ = try await first
        await writer.flush(Sample.device)
        #expect(!inbox.hasQueued(Sample.device))
        #expect(inbox.isOutdated(Sample.device, readAfter: moment))
        #expect(!inbox.isOutdated(Sample.device, readAfter: sessions.changes.now()))
    }

    @Test func `when a commit fails, each change of its group gets the error, and the next commit is tried`() async throws {
        let writer = writer()
        store.answer = { _ in throw StoreFault(.full, "no space") }
        await #expect(throws: StoreFault(.full, "no space")) { try await writer.write(append(1)) }
        store.answer = nil
        #expect(try await writer.write(append(2)) == .stored(replaced: nil))
    }

    @Test func `an error that is no fault of the store is one`() async throws {
        struct Strange: Error {}
        store.answer = { _ in throw Strange() }
        await #expect { try await writer().write(append(1)) } throws: { ($0 as? StoreFault)?.kind == .unavailable }
    }

    @Test func `one change that cannot be stored fails alone`() async throws {
        let writer = writer()
        let commit = store.hold()
        async let first = writer.write(append(1))
        await commit.begun()
        store.answer = { operations in
            operations.map { $0 == append(3) ? .failed(StoreFault(.damaged, "bad row")) : .stored(replaced: nil) }
        }
        let answered = ResultCollector()
        for position in Int64(2)...4 {
            _ = writer.enqueue(append(position), urgency: .now) { answered.add(position, $0) }
        }
        commit.end()
        _ = try await first
        await writer.flush()
        #expect(answered.failed == [3])
        #expect(answered.positions == [2, 3, 4])
    }

    @Test func `beyond its limit it refuses, without a result for the waiter`() async throws {
        let writer = writer(limits: .init(entries: 4))
        let commit = store.hold()
        async let first = writer.write(append(1))
        await commit.begun()
        let answered = ResultCollector()
        let taken = (Int64(2)...9).filter { position in
            writer.enqueue(append(position), urgency: .now) { answered.add(position, $0) }
        }
        #expect(taken == [2, 3, 4, 5])
        await #expect { try await writer.write(append(10)) } throws: { ($0 as? StoreFault)?.kind == .unavailable }
        commit.end()
        _ = try await first
        await writer.flush()
        #expect(answered.positions == taken)
        #expect(try await writer.write(append(10)) == .stored(replaced: nil))
    }

    @Test func `a flush waits for the operations before it, also for those without a waiter`() async {
        let writer = writer()
        // Without a timer only the flush makes it due.
        writer.finished(Sample.id(1), device: Sample.device, FinalOutcome(.acknowledged, at: Sample.now))
        #expect(store.commits.isEmpty)
        await writer.flush()
        #expect(store.commits.map(\.count) == [1])
        await writer.flush()
        #expect(store.commits.count == 1)
    }

    @Test func `a flush of one device waits for its own changes, and hurries nobody else's`() async throws {
        let writer = writer()
        let other = DeviceSerial(2)
        writer.finished(Sample.id(1), device: Sample.device, FinalOutcome(.acknowledged, at: Sample.now))
        await writer.flush(other)
        #expect(store.commits.isEmpty)
        await writer.flush(Sample.device)
        #expect(store.commits.map(\.count) == [1])
        // A message in the commit under way is waited for, and later ones are not affected.
        let commit = store.hold()
        async let first = writer.write(append(2))
        await commit.begun()
        writer.finished(Sample.id(3), device: other, FinalOutcome(.acknowledged, at: Sample.now))
        async let flushed: Void = writer.flush(Sample.device)
        commit.end()
        _ = try await (first, flushed)
        #expect(store.commits.count == 2)
        await writer.flush(other)
        #expect(store.commits.count == 3)
    }

    @Test func `a flush ends when the commit failed`() async {
        let writer = writer()
        store.answer = { _ in throw StoreFault(.unavailable, "gone") }
        _ = writer.enqueue(append(1), urgency: .leisurely)
        await writer.flush()
        #expect(store.commits.count == 1)
    }

    @Test func `an acknowledgement that overtakes the write answers its sender at once`() async {
        let writer = writer()
        let answered = ResultCollector()
        let finalOutcome = FinalOutcome(.acknowledged, at: Sample.now)
        _ = writer.enqueue(append(1), urgency: .offered) { answered.add(1, $0) }
        writer.finished(Sample.id(1), device: Sample.device, finalOutcome)
        #expect(answered.finished == [1])
        await writer.flush()
        #expect(store.commits == [[.record(Sample.envelope(1), AppendRules(), finalOutcome)]])
        #expect(answered.positions == [1])
    }

    @Test func `a replacement is answered when the replaced message cannot be delivered any more`() async throws {
        let writer = writer()
        let session = HeldWithdrawal()
        sessions.join(session, device: Sample.device)
        store.answer = { $0.map { _ in .stored(replaced: Sample.id(1)) } }
        let answered = ResultCollector()
        _ = writer.enqueue(append(2), urgency: .now) { answered.add(2, $0) }
        await writer.flush()
        #expect(session.asked == [.envelope(1)])
        #expect(answered.positions.isEmpty)
        session.finish()
        #expect(answered.positions == [2])
    }

    // MARK: Changes that failed

    private let acknowledged = FinalOutcome(.acknowledged, at: Sample.now)

    @Test func `a device that waits for its outcomes is notified that they failed, and later that they are written`()
        async throws
    {
        let writer = writer()
        store.answer = { _ in throw StoreFault(.full, "no space") }
        writer.finished(Sample.id(1), device: Sample.device, acknowledged)
        writer.finished(Sample.id(2), device: DeviceSerial(2), acknowledged)
        for _ in 0..<2 {
            await #expect(throws: StoreFault(.full, "no space")) { try await writer.write(allOf: Sample.device) }
        }
        #expect(writer.fault(of: Sample.id(1))?.kind == .full)
        // This one was not reported.
        try await writer.write(allOf: DeviceSerial(3))
        store.answer = nil
        try await writer.write(allOf: Sample.device)
        #expect(writer.fault(of: Sample.id(1)) == nil)
        await writer.writeUnwritten()
        #expect(!writer.hasUnwritten)
        await writer.writeUnwritten()
    }

    @Test func `one outcome that cannot be written is one fault of its device`() async throws {
        let writer = writer()
        store.answer = { operations in
            operations.map { $0.device == DeviceSerial(2) ? .failed(StoreFault(.damaged, "bad row")) : .finished }
        }
        writer.finished(Sample.id(1), device: Sample.device, acknowledged)
        writer.finished(Sample.id(2), device: DeviceSerial(2), acknowledged)
        try await writer.write(allOf: Sample.device)
        await #expect(throws: StoreFault.self) { try await writer.write(allOf: DeviceSerial(2)) }
    }

    @Test func `beyond the limit the session ends, so that the envelope is delivered again`() async throws {
        let writer = writer(limits: .init(unwritten: 1))
        let sessions = [RecordingSession(), RecordingSession()]
        for (place, session) in sessions.enumerated() {
            self.sessions.join(session, device: DeviceSerial(Int64(place + 1)))
        }
        store.answer = { _ in throw StoreFault(.full, "no space") }
        writer.finished(Sample.id(1), device: DeviceSerial(1), acknowledged)
        writer.finished(Sample.id(2), device: DeviceSerial(2), acknowledged)
        await writer.flush()
        #expect(sessions.map(\.events) == [[], [.ended(.storageUnavailable)]])
    }

    @Test func `changes that failed are written again by themselves`() async throws {
        let scheduled = Mutex<[@Sendable () -> Void]>([])
        let writer = writer(
            scheduler: Scheduler { delay, work in
                if delay == .seconds(1) { scheduled.withLock { $0.append(work) } }
            })
        store.answer = { _ in throw StoreFault(.full, "no space") }
        writer.finished(Sample.id(1), device: Sample.device, acknowledged)
        await writer.flush()
        store.answer = nil
        let again = scheduled.withLock { $0 }
        #expect(again.count == 1)
        for work in again { work() }
        await writer.flush()
        #expect(store.commits.count == 2 && !writer.hasUnwritten)
    }
}

/// The results that waiters received, in order.
private final class ResultCollector: Sendable {
    private let notified = Mutex<[(Int64, InboxResult)]>([])

    func add(_ position: Int64, _ result: InboxResult) { notified.withLock { $0.append((position, result)) } }

    var positions: [Int64] { notified.withLock { $0.map(\.0) } }
    var failed: [Int64] { notified.withLock { $0.compactMap { if case .failed = $0.1 { $0.0 } else { nil } } } }
    var finished: [Int64] { notified.withLock { $0.compactMap { if case .answered = $0.1 { $0.0 } else { nil } } } }
}

/// A session that completes a withdrawal when the test allows it.
private final class HeldWithdrawal: LiveSession {
    private let waiting = Mutex<[(DeliveryMachine.Withdrawal, @Sendable () -> Void)]>([])

    var asked: [DeliveryMachine.Withdrawal] { waiting.withLock { $0.map(\.0) } }

    func finish() { for (_, done) in waiting.withLock({ $0 }) { done() } }

    func withdrew(_ withdrawal: DeliveryMachine.Withdrawal, done: @escaping @Sendable () -> Void) {
        waiting.withLock { $0.append((withdrawal, done)) }
    }

    func offer(_ envelope: Envelope) {}
    func offerVolatile(_ envelope: Envelope, answer: @escaping @Sendable (Bool) -> Void) { answer(false) }
    func storedMore() {}
    func finished(_ ids: [MessageID]) {}
    func end(because reason: SessionEnd) {}
}
