package import CarillonWire
package import Logging
import Metrics
import Synchronization

/// Brings changes of the inboxes to the disk, many in one commit, by the rules of ``CommitQueue``.
///
/// A task exists while there is something to commit, and ends by itself.
package final class InboxWriter: Sendable {
    package enum Written: Sendable {
        /// On disk, or refused by the store's rules.
        case result(InboxResult)
        /// The device spoke before the write was done.
        case settled(Settlement)
        /// The store could not; nothing was changed.
        case failed(StoreFault)
    }

    package typealias Waiter = @Sendable (Written) -> Void

    private struct State {
        var queue: CommitQueue<Waiter>
        var flushes: [(target: Int, continuation: CheckedContinuation<Void, Never>)] = []
        /// Whether the last commit failed.
        var isFailing = false
    }

    private let store: any InboxStore
    private let sessions: LiveSessions
    private let scheduler: Scheduler
    private let logger: Logger
    private let state: Mutex<State>
    private let changes = ServerMetric.commitChanges.recorder()
    private let duration = ServerMetric.commitDuration.timer()
    private let sparedWrites = ServerMetric.writesSpared.counter()
    private let failures = ServerMetric.commitFailures.counter()
    private let failedChanges = ServerMetric.changesFailed.counter()
    private let refusedChanges = ServerMetric.changesRefused.counter()
    private let droppedOutcomes = ServerMetric.outcomesDropped.counter()

    package init(
        store: any InboxStore, sessions: LiveSessions, scheduler: Scheduler, logger: Logger,
        limits: CommitQueue<Waiter>.Limits = .init()
    ) {
        self.store = store
        self.sessions = sessions
        self.scheduler = scheduler
        self.logger = logger
        state = Mutex(State(queue: CommitQueue(limits: limits)))
    }

    /// Queues a change. Answers false, without calling the waiter, when the queue is at its bound.
    package func enqueue(
        _ operation: InboxOperation, urgency: CommitQueue<Waiter>.Urgency, then waiter: Waiter? = nil
    ) -> Bool {
        switch state.withLock({ $0.queue.enqueue(operation, urgency: urgency, waiter: waiter) }) {
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
        let written = await withCheckedContinuation { continuation in
            if !enqueue(operation, urgency: .now, then: { continuation.resume(returning: $0) }) {
                continuation.resume(returning: .failed(StoreFault(.unavailable, "too many writes are queued")))
            }
        }
        switch written {
        case .result(let result): return result
        case .settled: return .settled
        case .failed(let fault): throw fault
        }
    }

    /// A message of TTL 0 was given to nobody: nothing of it stays.
    func dropped(_ id: MessageID) { perform(state.withLock { $0.queue.dropped(id) }, settlement: nil) }

    /// The device said what became of an envelope.
    package func settled(_ id: MessageID, device: DeviceSerial, _ settlement: Settlement) {
        perform(state.withLock { $0.queue.settled(id, device: device, settlement) }, settlement: settlement)
    }

    private func perform(_ overtaken: CommitQueue<Waiter>.Overtaken, settlement: Settlement?) {
        switch overtaken {
        case .write(let waiter):
            sparedWrites.increment()
            if let settlement { waiter?(.settled(settlement)) }
        case .queued(let action):
            perform(action)
        case .refused:
            droppedOutcomes.increment()
        }
    }

    /// Waits until everything that was queued before is on disk, or has failed.
    package func flush() async {
        await withCheckedContinuation { continuation in
            let action = state.withLock { state -> CommitQueue<Waiter>.Action? in
                guard state.queue.throughCount < state.queue.queuedCount else { return nil }
                state.flushes.append((state.queue.queuedCount, continuation))
                return state.queue.wakeElapsed(.now)
            }
            guard let action else { return continuation.resume() }
            perform(action)
        }
    }

    /// The same, of what was queued of one device.
    package func flush(_ device: DeviceSerial) async {
        await withCheckedContinuation { continuation in
            let action = state.withLock { state -> CommitQueue<Waiter>.Action? in
                guard let flush = state.queue.flush(device) else { return nil }
                state.flushes.append((flush.target, continuation))
                return flush.action
            }
            guard let action else { return continuation.resume() }
            perform(action)
        }
    }

    /// Whether something that was queued of the device is not on disk yet.
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
                self.perform(self.state.withLock { $0.queue.wakeElapsed(urgency) })
            }
        }
    }

    private func commitUntilDone() async {
        while true {
            let batch = state.withLock { $0.queue.takeBatch() }
            guard !batch.isEmpty else { return }
            let outcome: Result<[InboxResult], StoreFault>
            let began = ContinuousClock.now
            do {
                outcome = .success(try await store.commit(batch.map(\.operation)))
                duration.record(duration: .now - began)
                changes.record(batch.count)
            } catch {
                let fault = error as? StoreFault ?? StoreFault(.unavailable, "\(error)")
                failures.increment()
                logger.error(
                    "inbox commit failed", metadata: ["changes": "\(batch.count)", "reason": "\(fault.message)"])
                outcome = .failure(fault)
            }
            answer(batch, outcome)
            let isWritten = if case .success = outcome { true } else { false }
            let (next, hasRecovered) = state.withLock { state in
                defer { state.isFailing = !isWritten }
                return (state.queue.committed(), isWritten && state.isFailing)
            }
            if hasRecovered { logger.notice("inbox commits succeed again") }
            resumeFlushes()
            guard next == .commit else { return }
        }
    }

    private func answer(_ batch: [CommitQueue<Waiter>.Entry], _ outcome: Result<[InboxResult], StoreFault>) {
        for (index, entry) in batch.enumerated() {
            let written: Written
            switch outcome {
            case .success(let results): written = self.written(results[index])
            case .failure(let fault): written = .failed(fault)
            }
            guard case .result(let result) = written, let replaced = result.replaced, let device = entry.operation.device
            else {
                entry.waiter?(written)
                continue
            }
            // Whoever sent the newer message is answered when the older one cannot be given any more.
            sessions.withdraw(.envelope(replaced.position), from: device) { [waiter = entry.waiter] in waiter?(written) }
        }
    }

    private func written(_ result: InboxResult) -> Written {
        guard case .failed(let fault) = result else { return .result(result) }
        failedChanges.increment()
        logger.error("a change of an inbox cannot be stored", metadata: ["reason": "\(fault.message)"])
        return .failed(fault)
    }

    private func resumeFlushes() {
        let through = state.withLock { state in
            let count = state.queue.throughCount
            let through = state.flushes.filter { $0.target <= count }
            state.flushes.removeAll { $0.target <= count }
            return through
        }
        for flush in through { flush.continuation.resume() }
    }
}
