package import CarillonWire

/// Groups changes into commits. An acknowledgement can replace the write of its message before it is committed.
///
/// One commit is under way at a time. Changes that arrive during it form the next commit, so that the speed of the disk decides
/// the size of a group. The time for which a change waits for further changes depends on its waiter:
/// - A message for a disconnected device is committed at once.
/// - A message that was offered to a connected device waits up to a millisecond (``Limits/offeredDelay``), because an
///   acknowledgement makes its write unnecessary.
/// - An outcome has no waiter, and can wait longer (``Limits/leisurelyDelay``).
///
/// One wake at a time is set for offered messages. It is due when the oldest of them has waited long enough. If that message was
/// acknowledged meanwhile, the remaining messages are younger, and the wake is set again. A commit leaves young offered messages
/// for the next one, because they can still be acknowledged.
///
/// An offered message is in one of these states:
/// - *gathered*: its write is in the queue. An acknowledgement replaces the write by a record of the outcome. The sender is
///   answered then.
/// - *being written*: its write is in a commit, which cannot be stopped. An acknowledgement becomes a change of its own in the
///   next commit. The sender is answered after the first commit: before it, the message would be delivered again after a crash.
/// - *waiting*: its write was committed. An acknowledgement becomes a change of its own.
package struct CommitQueue<Waiter> {
    package enum Urgency: Sendable {
        case now
        case offered
        case leisurely
        /// For changes that failed.
        case again
    }

    package struct Entry {
        package var operation: InboxOperation
        package var waiter: Waiter?
        /// Whether the change failed before and is tried again.
        package var isRepeated = false
    }

    package enum Action: Equatable {
        case none
        /// Take a batch, and commit it.
        case commit
        /// Call ``wakeElapsed(_:at:)`` with this urgency after this time.
        case wake(Urgency, after: Duration)
    }

    package enum Enqueued: Equatable {
        case accepted(Action)
        /// The queue has reached its limit. The change was not queued.
        case refused
    }

    package struct Limits: Sendable {
        package var entries: Int
        package var bytes: Int
        package var batch: Int
        /// The longest time for which an offered message waits for its acknowledgement before it is committed.
        package var offeredDelay: Duration
        package var leisurelyDelay: Duration
        /// The largest number of failed changes that are kept.
        package var unwritten: Int
        /// The time after which failed changes are tried again.
        package var againDelay: Duration

        package init(
            entries: Int = 65_536, bytes: Int = 64 << 20, batch: Int = 2048, offeredDelay: Duration = .milliseconds(1),
            leisurelyDelay: Duration = .milliseconds(40), unwritten: Int = 65_536, againDelay: Duration = .seconds(1)
        ) {
            self.entries = entries
            self.bytes = bytes
            self.batch = batch
            self.offeredDelay = offeredDelay
            self.leisurelyDelay = leisurelyDelay
            self.unwritten = unwritten
            self.againDelay = againDelay
        }
    }

    private let limits: Limits
    private var entries: [Entry] = []
    private var bytes = 0
    /// The write of an offered message.
    private struct Gathered {
        /// The index in `entries`.
        var index: Int
        var queuedAt: ContinuousClock.Instant
    }

    /// The writes of offered messages, by position.
    private var gathered: [Int64: Gathered] = [:]
    private var isCommitting = false
    /// Whether a commit is due without a wake.
    private var isDue = false
    /// The largest number of `entries` in the next commit, if only offered messages are due.
    private var offeredCount: Int?
    private var isOfferedWakeSet = false
    /// The time at which a wake for offered messages first found all of them young, since the last commit.
    private var youngSince: ContinuousClock.Instant?
    private var isLeisurelyWakeSet = false
    private var unwritten: UnwrittenChanges
    /// The number of repeated changes in `entries`.
    private var repeatedCount = 0
    private var isCommitRepeated = false
    /// The positions of the envelopes that the repeated changes of the commit change.
    private var repeatedInCommit: Set<Int64> = []
    private var hasCommitFailed = false
    private var isAgainWakeSet = false

    package init(limits: Limits = Limits()) {
        self.limits = limits
        unwritten = UnwrittenChanges(limit: limits.unwritten)
    }

    /// The number of changes that were ever queued, and the number of them that are done. A change is done when `throughCount`
    /// has reached the value that `queuedCount` had after the change was queued.
    package private(set) var queuedCount = 0
    package private(set) var throughCount = 0
    private var inCommit = 0
    /// The last change of a device, as a value of ``queuedCount``.
    private var lastChanges: [DeviceSerial: Int] = [:]
    /// The number of devices with an entry in `lastChanges`.
    package var rememberedDevices: Int { lastChanges.count }

    package mutating func enqueue(
        _ operation: InboxOperation, urgency: Urgency, waiter: Waiter?, at now: ContinuousClock.Instant
    ) -> Enqueued {
        // Outcomes are accepted beyond the limit: each frees the space of an earlier entry.
        if case .append = operation, entries.count >= limits.entries || bytes + operation.byteCount > limits.bytes {
            return .refused
        }
        if urgency == .offered, case .append(let envelope, _) = operation {
            gathered[envelope.position] = Gathered(index: entries.count, queuedAt: now)
        }
        append(Entry(operation: operation, waiter: waiter))
        return .accepted(schedule(urgency))
    }

    package enum Overtaken {
        /// The write was cancelled, and its waiter can be answered.
        case write(Waiter?)
        /// The write is under way or done. The outcome is written after it.
        case queued(Action)
        /// The queue is far beyond its limit. An envelope without an outcome is delivered again.
        case refused
    }

    /// Queues the result of a device for an envelope whose write may not be done yet.
    package mutating func finished(_ id: MessageID, device: DeviceSerial, _ finalOutcome: FinalOutcome) -> Overtaken {
        if let index = gathered[id.position]?.index, case .append(let envelope, let rules) = entries[index].operation,
            envelope.id == id, envelope.device == device
        {
            gathered[id.position] = nil
            change(index, to: .record(envelope, rules, finalOutcome))
            let waiter = entries[index].waiter
            entries[index].waiter = nil
            return .write(waiter)
        }
        return follow(.finish(id, device: device, finalOutcome))
    }

    /// Queues the removal of a message of TTL 0 that no device received. Its sender is notified, so that nothing of the message
    /// is kept.
    package mutating func dropped(_ id: MessageID) -> Overtaken {
        if let index = gathered[id.position]?.index, case .append(let envelope, let rules) = entries[index].operation {
            gathered[id.position] = nil
            change(index, to: .replace(envelope, rules))
            return .queued(.none)
        }
        return follow(.forget(id))
    }

    private mutating func change(_ index: Int, to operation: InboxOperation) {
        bytes += operation.byteCount - entries[index].operation.byteCount
        entries[index].operation = operation
    }

    private mutating func follow(_ operation: InboxOperation) -> Overtaken {
        // An envelope without an outcome is delivered again. This is better than unlimited growth by invented identifiers.
        guard entries.count < 4 * limits.entries else { return .refused }
        append(Entry(operation: operation, waiter: nil))
        return .queued(schedule(.leisurely))
    }

    package mutating func wakeElapsed(_ urgency: Urgency, at now: ContinuousClock.Instant) -> Action {
        switch urgency {
        case .now:
            break
        case .offered:
            isOfferedWakeSet = false
            // Every offered message was acknowledged. Only outcomes are left, and they can wait.
            guard let oldest = gathered.values.map(\.queuedAt).min() else {
                return entries.isEmpty ? .none : schedule(.leisurely)
            }
            let since = youngSince ?? now
            youngSince = since
            // Offered messages that are always young must not delay outcomes for long.
            guard now - since < limits.leisurelyDelay else { break }
            let rest = limits.offeredDelay - (now - oldest)
            if rest > .zero { return wakeForOffered(after: rest) }
            return commitOffered(at: now)
        case .leisurely:
            isLeisurelyWakeSet = false
        case .again:
            isAgainWakeSet = false
            return tryUnwritten(atLeast: limits.batch)
        }
        return schedule(.now)
    }

    /// Commits the offered messages that have waited for at least three quarters of ``Limits/offeredDelay``, so that they form
    /// groups, with everything that was queued before them.
    private mutating func commitOffered(at now: ContinuousClock.Instant) -> Action {
        let old = gathered.values.filter { now - $0.queuedAt >= limits.offeredDelay * 3 / 4 }
        let count = (old.map(\.index).max() ?? -1) + 1
        let isOthersDue = isDue && offeredCount == nil
        let action = schedule(.now)
        if !isOthersDue { offeredCount = count }
        return action
    }

    /// Returns the next group, in order. It is empty while a commit is under way, and if there is nothing to commit.
    package mutating func takeBatch() -> [Entry] {
        guard !isCommitting, !entries.isEmpty else { return [] }
        isCommitting = true
        let count = nextBatchCount
        // The rest of a group that was cut off by its size is due too.
        isDue = count < min(entries.count, offeredCount ?? .max)
        offeredCount = nil
        youngSince = nil
        let batch: [Entry]
        isCommitRepeated = entries[0].isRepeated
        if count == entries.count {
            batch = entries
            entries.removeAll(keepingCapacity: true)
            bytes = 0
            gathered.removeAll(keepingCapacity: true)
        } else {
            batch = Array(entries.prefix(count))
            removeFirst(count)
        }
        if isCommitRepeated {
            repeatedCount -= count
            repeatedInCommit = Set(batch.compactMap { $0.operation.id?.position })
        }
        inCommit = batch.count
        return batch
    }

    /// The size of the next group. Repeated changes have commits of their own: if one of them cannot be written, no other change
    /// fails with it.
    private var nextBatchCount: Int {
        let most = min(entries.count, limits.batch, offeredCount ?? .max)
        guard repeatedCount > 0 else { return most }
        let isRepeated = entries[0].isRepeated
        return entries[..<most].firstIndex { $0.isRepeated != isRepeated } ?? most
    }

    private mutating func removeFirst(_ count: Int) {
        for entry in entries.prefix(count) { bytes -= entry.operation.byteCount }
        entries.removeFirst(count)
        if let offeredCount { self.offeredCount = max(0, offeredCount - count) }
        gathered = gathered.filter { $0.value.index >= count }
            .mapValues { Gathered(index: $0.index - count, queuedAt: $0.queuedAt) }
    }

    // MARK: Changes that failed

    /// Whether failed changes are kept.
    package var hasUnwritten: Bool { !unwritten.isEmpty }

    /// Whether a change of this envelope failed and is not written yet.
    package func isUnwritten(_ id: MessageID) -> Bool {
        unwritten.contains(id) || repeatedInCommit.contains(id.position)
            || repeatedCount > 0 && entries.contains { $0.isRepeated && $0.operation.id == id }
    }

    /// Keeps changes of the commit that could not be written, and whose failure is not reported to a waiter. Call this method
    /// before ``committed(at:)``.
    ///
    /// - Parameter changes: The changes in their order. `isVain`: the change found no envelope. It is kept only if the change
    ///   that appends the envelope is kept.
    /// - Returns: All changes that failed, with the changes after them that were not tried; and the failed changes that are not
    ///   kept, because too many are.
    package mutating func failed(
        _ changes: [(operation: InboxOperation, isVain: Bool)]
    ) -> (failed: [InboxOperation], dropped: [InboxOperation]) {
        var (failed, dropped): ([InboxOperation], [InboxOperation]) = ([], [])
        for (operation, isVain) in changes {
            if isVain, !(operation.id.map { unwritten.appends($0, of: operation.device) } ?? false) { continue }
            failed.append(operation)
            if !unwritten.add(operation) { dropped.append(operation) }
        }
        hasCommitFailed = failed.count == inCommit
        guard hasCommitFailed, isCommitRepeated else { return (failed, dropped) }
        for entry in takeRepeated() {
            failed.append(entry.operation)
            if !unwritten.add(entry.operation) { dropped.append(entry.operation) }
        }
        return (failed, dropped)
    }

    /// Removes the repeated changes that come next. They are not tried, because the store writes nothing.
    private mutating func takeRepeated() -> [Entry] {
        let repeated = Array(entries.prefix { $0.isRepeated })
        guard !repeated.isEmpty else { return [] }
        removeFirst(repeated.count)
        repeatedCount -= repeated.count
        throughCount += repeated.count
        if entries.isEmpty { isDue = false }
        return repeated
    }

    /// Returns the wake after which failed changes are tried again. Call this method after ``committed(at:)``.
    package mutating func wakeForUnwritten() -> Action {
        guard !unwritten.isEmpty, !isAgainWakeSet else { return .none }
        isAgainWakeSet = true
        return .wake(.again, after: limits.againDelay)
    }

    /// Tries changes again that failed before.
    package mutating func tryUnwritten(atLeast count: Int = .max) -> Action { tryAgain(unwritten.take(atLeast: count)) }

    /// Tries changes of the device again that failed before.
    package mutating func tryUnwritten(of device: DeviceSerial) -> Action { tryAgain(unwritten.take(of: device)) }

    private mutating func tryAgain(_ operations: [InboxOperation]) -> Action {
        guard !operations.isEmpty else { return .none }
        for operation in operations { append(Entry(operation: operation, waiter: nil, isRepeated: true)) }
        repeatedCount += operations.count
        return schedule(.now)
    }

    // MARK: Flushing

    /// Returns the value of ``throughCount`` at which all queued changes of the device are done, and the action for it; nil if
    /// they are done. A device without queued changes does not start a commit of other changes.
    package mutating func flush(_ device: DeviceSerial) -> (target: Int, action: Action)? {
        guard hasQueued(device), let target = lastChanges[device] else { return nil }
        return (target, target > throughCount + inCommit ? schedule(.now) : .none)
    }

    package func hasQueued(_ device: DeviceSerial) -> Bool { (lastChanges[device] ?? 0) > throughCount }

    /// Notes the end of the commit, with or without a fault.
    package mutating func committed(at now: ContinuousClock.Instant) -> Action {
        isCommitting = false
        throughCount += inCommit
        inCommit = 0
        forgetChangesThatAreThrough()
        // The store writes changes again.
        if isCommitRepeated, !hasCommitFailed { _ = tryUnwritten(atLeast: limits.batch) }
        if isCommitRepeated { repeatedInCommit = [] }
        (isCommitRepeated, hasCommitFailed) = (false, false)
        guard !entries.isEmpty else { return .none }
        if isDue { return .commit }
        guard let oldest = gathered.values.map(\.queuedAt).min() else { return schedule(.leisurely) }
        return wakeForOffered(after: max(.zero, limits.offeredDelay - (now - oldest)))
    }

    private mutating func append(_ entry: Entry) {
        entries.append(entry)
        bytes += entry.operation.byteCount
        queuedCount += 1
        if let device = entry.operation.device { lastChanges[device] = queuedCount }
    }

    private mutating func forgetChangesThatAreThrough() {
        if throughCount == queuedCount {
            lastChanges.removeAll(keepingCapacity: true)
        } else if lastChanges.count > 2 * limits.entries {
            lastChanges = lastChanges.filter { $0.value > throughCount }
        }
    }

    private mutating func wakeForOffered(after delay: Duration) -> Action {
        guard !isOfferedWakeSet, !isDue else { return .none }
        isOfferedWakeSet = true
        return .wake(.offered, after: delay)
    }

    private mutating func schedule(_ urgency: Urgency) -> Action {
        switch urgency {
        case .now, .again:
            guard !entries.isEmpty else { return .none }
            isDue = true
            offeredCount = nil
            return isCommitting ? .none : .commit
        case .offered:
            return wakeForOffered(after: limits.offeredDelay)
        case .leisurely:
            guard !isLeisurelyWakeSet, !isOfferedWakeSet, !isDue else { return .none }
            isLeisurelyWakeSet = true
            return .wake(.leisurely, after: limits.leisurelyDelay)
        }
    }
}

extension CommitQueue.Overtaken: Equatable where Waiter: Equatable {}
