package import CarillonWire
package import Logging
import Metrics
import Synchronization

/// Writes changes of the inboxes to the disk, many in one commit, by the rules of ``CommitQueue``.
///
/// A task exists while there is something to commit. It ends by itself.
package final class InboxWriter: Sendable {
    package typealias Waiter = @Sendable (InboxResult) -> Void

    private struct Flush {
        /// The value that ``CommitQueue/throughCount`` must reach.
        var target: Int
        /// Nil to wait for the changes of all devices.
        var device: DeviceSerial?
        /// The reason why a change failed.
        var fault: StoreFault?
        var continuation: CheckedContinuation<StoreFault?, Never>
    }

    private struct State {
        var queue: CommitQueue<Waiter>
        var flushes: [Flush] = []
        /// The reason why the last commit failed; nil if it succeeded.
        var fault: StoreFault?
    }

    private let store: any InboxStore
    private let sessions: LiveSessions
    private let scheduler: Scheduler
    private let now: @Sendable () -> ContinuousClock.Instant
    private let logger: Logger
    private let state: Mutex<State>
    private let changes = ServerMetric.commitChanges.recorder()
    private let duration = ServerMetric.commitDuration.timer()
    private let sparedWrites = ServerMetric.writesSpared.counter()
    private let failures = ServerMetric.commitFailures.counter()
    private let failedChanges = ServerMetric.changesFailed.counter()
    private let refusedChanges = ServerMetric.changesRefused.counter()
    private let droppedOutcomes = ServerMetric.outcomesDropped.counter()
    private let keptChanges = ServerMetric.changesKept.counter()

    package init(
        store: any InboxStore, sessions: LiveSessions, scheduler: Scheduler, logger: Logger,
        limits: CommitQueue<Waiter>.Limits = .init(),
        now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) {
        self.store = store
        self.sessions = sessions
        self.scheduler = scheduler
        self.now = now
        self.logger = logger
        state = Mutex(State(queue: CommitQueue(limits: limits)))
    }

    /// Queues a change. Returns false, without calling the waiter, if the queue has reached its limit.
    package func enqueue(
        _ operation: InboxOperation, urgency: CommitQueue<Waiter>.Urgency, then waiter: Waiter? = nil
    ) -> Bool {
        let now = now()
        switch state.withLock({ $0.queue.enqueue(operation, urgency: urgency, waiter: waiter, at: now) }) {
        case .refused:
            refusedChanges.increment()
            return false
        case .accepted(let action):
            perform(action)
            return true
        }
    }

    /// Queues a change, and waits until it is on disk.
    package func write(_ operation: InboxOperation) async throws -> InboxResult {
        let result = await withCheckedContinuation { continuation in
            if !enqueue(operation, urgency: .now, then: { continuation.resume(returning: $0) }) {
                continuation.resume(returning: .failed(StoreFault(.unavailable, "too many writes are queued")))
            }
        }
        switch result {
        case .answered: return .finished
        case .failed(let fault): throw fault
        default: return result
        }
    }

    /// Queues the removal of a message of TTL 0 that no device received.
    func dropped(_ id: MessageID) { perform(state.withLock { $0.queue.dropped(id) }, finalOutcome: nil) }

    /// Queues the result that a device reported for an envelope.
    ///
    /// - Returns: False if the result was not queued, because too many are. Then the device's session ends, so that the envelope
    ///   is delivered again.
    @discardableResult
    package func finished(_ id: MessageID, device: DeviceSerial, _ finalOutcome: FinalOutcome) -> Bool {
        let overtaken = state.withLock { $0.queue.finished(id, device: device, finalOutcome) }
        perform(overtaken, finalOutcome: finalOutcome)
        guard case .refused = overtaken else { return true }
        // Not called here, because the caller can be the session.
        scheduler.run(.zero) { [sessions] in sessions.end([device], because: .storageUnavailable) }
        return false
    }

    private func perform(_ overtaken: CommitQueue<Waiter>.Overtaken, finalOutcome: FinalOutcome?) {
        switch overtaken {
        case .write(let waiter):
            sparedWrites.increment()
            if let finalOutcome { waiter?(.answered(finalOutcome)) }
        case .queued(let action):
            perform(action)
        case .refused:
            droppedOutcomes.increment()
        }
    }

    /// Waits until everything that was queued before is on disk, or has failed.
    package func flush() async {
        let now = now()
        _ = await flushed { queue in
            guard queue.throughCount < queue.queuedCount else { return nil }
            return (queue.queuedCount, queue.wakeElapsed(.now, at: now))
        }
    }

    /// Waits until everything that was queued before for one device is on disk, or has failed.
    package func flush(_ device: DeviceSerial) async { _ = await flushed(device) { $0.flush(device) } }

    /// Waits until all changes of the device are on disk, including changes that failed before.
    ///
    /// - Throws: ``StoreFault`` if a change cannot be written. It is kept, and written later.
    package func write(allOf device: DeviceSerial) async throws {
        let fault = await flushed(device) { queue in
            let again = queue.tryUnwritten(of: device)
            guard let flush = queue.flush(device) else { return nil }
            return (flush.target, again == .none ? flush.action : again)
        }
        if let fault { throw fault }
    }

    /// Tries changes again that failed before.
    package func writeUnwritten() async {
        guard hasUnwritten else { return }
        _ = await flushed { queue in
            let action = queue.tryUnwritten()
            guard queue.throughCount < queue.queuedCount else { return nil }
            return (queue.queuedCount, action)
        }
    }

    /// - Parameter begin: Returns the value that ``CommitQueue/throughCount`` must reach, and the action for it; nil if nothing
    ///   is queued.
    private func flushed(
        _ device: DeviceSerial? = nil,
        _ begin: @Sendable (inout CommitQueue<Waiter>) -> (target: Int, action: CommitQueue<Waiter>.Action)?
    ) async -> StoreFault? {
        await withCheckedContinuation { continuation in
            let action = state.withLock { state -> CommitQueue<Waiter>.Action? in
                guard let (target, action) = begin(&state.queue) else { return nil }
                state.flushes.append(Flush(target: target, device: device, continuation: continuation))
                return action
            }
            guard let action else { return continuation.resume(returning: nil) }
            perform(action)
        }
    }

    /// Whether failed changes are kept.
    package var hasUnwritten: Bool { state.withLock { $0.queue.hasUnwritten } }

    /// Returns the reason why a change of this envelope is not written yet; nil if no such change failed.
    package func fault(of id: MessageID) -> StoreFault? {
        state.withLock { state in
            guard state.queue.isUnwritten(id) else { return nil }
            return state.fault ?? StoreFault(.unavailable, "an earlier outcome of the envelope is not written yet")
        }
    }

    /// Whether a queued change of the device is not on disk yet.
    package func hasQueued(_ device: DeviceSerial) -> Bool { state.withLock { $0.queue.hasQueued(device) } }

    private func perform(_ action: CommitQueue<Waiter>.Action) {
        switch action {
        case .none:
            break
        case .commit:
            // Ends by itself when nothing is left to commit; `flush()` waits for it.
            Task { await self.commitUntilDone() }
        case .wake(let urgency, let delay):
            scheduler.run(delay) { [weak self] in
                guard let self else { return }
                let now = self.now()
                self.perform(self.state.withLock { $0.queue.wakeElapsed(urgency, at: now) })
            }
        }
    }

    private func commitUntilDone() async {
        while true {
            let (batch, hasUnwritten) = state.withLock { ($0.queue.takeBatch(), $0.queue.hasUnwritten) }
            guard !batch.isEmpty else { return }
            let outcome: Result<[InboxResult], StoreFault>
            let began = ContinuousClock.now
            do {
                outcome = .success(try await store.commit(batch.map(\.operation)))
                duration.record(duration: .now - began)
                changes.record(batch.count)
            } catch {
                failures.increment()
                outcome = .failure(error as? StoreFault ?? StoreFault(.unavailable, "\(error)"))
            }
            for entry in batch {
                if let device = entry.operation.device { sessions.changes.note(device) }
            }
            let unwritten = answer(batch, outcome, hasUnwritten: hasUnwritten)
            note(outcome, of: batch.count)
            guard end(unwritten) == .commit else { return }
        }
    }

    /// Logs one entry when commits begin to fail, and one when they succeed again.
    private func note(_ outcome: Result<[InboxResult], StoreFault>, of count: Int) {
        switch outcome {
        case .success:
            let hasFailed = state.withLock { state in
                defer { state.fault = nil }
                return state.fault != nil
            }
            if hasFailed { logger.info("inbox commits succeed again") }
        case .failure(let fault):
            let hasFailed = state.withLock { state in
                defer { state.fault = fault }
                return state.fault != nil
            }
            guard !hasFailed else { return }
            logger.error(
                "cannot commit inbox changes; keeping acknowledgements and retrying",
                metadata: ["changes": "\(count)", "reason": "\(fault.message)"])
        }
    }

    private struct Unwritten {
        /// See ``CommitQueue/failed(_:)``.
        var changes: [(operation: InboxOperation, isVain: Bool)] = []
        var fault: StoreFault?
    }

    /// Ends a commit: schedules the next attempt, ends the sessions of dropped outcomes, and then resumes the waiting flushes.
    ///
    /// - Returns: The next action; the caller performs only `commit`.
    private func end(_ unwritten: Unwritten) -> CommitQueue<Waiter>.Action {
        var (failed, dropped): ([InboxOperation], [InboxOperation]) = ([], [])
        let now = now()
        let (next, again, through) = state.withLock { state in
            if !unwritten.changes.isEmpty {
                (failed, dropped) = state.queue.failed(unwritten.changes)
                let devices = Set(failed.compactMap(\.device))
                for place in state.flushes.indices where state.flushes[place].device.map(devices.contains) ?? false {
                    state.flushes[place].fault = unwritten.fault ?? Self.notWritten
                }
            }
            let next = state.queue.committed(at: now)
            let count = state.queue.throughCount
            let through = state.flushes.filter { $0.target <= count }
            if !through.isEmpty { state.flushes.removeAll { $0.target <= count } }
            return (next, state.queue.wakeForUnwritten(), through)
        }
        if !failed.isEmpty {
            keptChanges.increment(by: failed.count - dropped.count)
            droppedOutcomes.increment(by: dropped.count)
            sessions.end(Array(Set(dropped.compactMap(\.device))), because: .storageUnavailable)
        }
        perform(again)
        if next != .commit { perform(next) }
        for flush in through { flush.continuation.resume(returning: flush.fault) }
        return next
    }

    private static let notWritten = StoreFault(.unavailable, "an earlier change of the inbox is not written yet")

    /// Returns the changes that could not be written, and whose failure was not reported to a waiter.
    private func answer(
        _ batch: [CommitQueue<Waiter>.Entry], _ outcome: Result<[InboxResult], StoreFault>, hasUnwritten: Bool
    ) -> Unwritten {
        var unwritten = Unwritten()
        for (index, entry) in batch.enumerated() {
            let result: InboxResult
            switch outcome {
            case .success(let results):
                result = results[index]
                if !entry.isRepeated { report(result) }
            case .failure(let fault): result = .failed(fault)
            }
            guard let waiter = entry.waiter else {
                switch result {
                case .failed(let fault):
                    unwritten.fault = fault
                    unwritten.changes.append((entry.operation, false))
                case .notWaiting where hasUnwritten || unwritten.fault != nil:
                    unwritten.changes.append((entry.operation, true))
                default: withdraw(result.replaced, from: entry.operation.device)
                }
                continue
            }
            guard let replaced = result.replaced, let device = entry.operation.device else {
                waiter(result)
                continue
            }
            // The sender of the newer message is answered when the older message cannot be delivered any more.
            sessions.withdraw(.envelope(replaced.position), from: device) { waiter(result) }
        }
        return unwritten
    }

    private func withdraw(_ replaced: MessageID?, from device: DeviceSerial?) {
        guard let replaced, let device else { return }
        sessions.withdraw(.envelope(replaced.position), from: device) {}
    }

    private func report(_ result: InboxResult) {
        guard case .failed(let fault) = result else { return }
        failedChanges.increment()
        logger.error("cannot store inbox change; rejecting it", metadata: ["reason": "\(fault.message)"])
    }
}
