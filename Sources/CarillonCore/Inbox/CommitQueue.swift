package import CarillonWire

/// Gathers changes into commits, and lets an acknowledgement overtake its message's write.
///
/// One commit is under way at a time; what comes meanwhile forms the next, so that the disk's own pace sets the size
/// of a group. How long a change may wait for company depends on who waits for it: a message for an absent device is
/// committed at once; one that was offered to a live device gives the device a millisecond to acknowledge, as
/// an acknowledgement spares the write; an outcome, for which nobody waits, may take longer. One wake is set at a time for
/// offered messages: it comes when the oldest of them has waited long enough, or when the one did that was the oldest before.
/// Offered messages that are young then are left for another commit, as they may still be acknowledged.
///
/// An offered message is in one of these places:
/// - *gathered*: its write is in the queue. An acknowledgement turns the write into a mere record of the outcome,
///   and its sender is answered then.
/// - *being written*: it was taken into a commit, which nothing stops. An acknowledgement becomes a change of its own
///   in the next commit; the sender is answered by the first, as until then a crash would bring the message again.
/// - *waiting*: it was committed. An acknowledgement becomes a change of its own.
package struct CommitQueue<Waiter> {
    package enum Urgency: Sendable {
        case now
        case offered
        case leisurely
        /// Of changes that failed.
        case again
    }

    package struct Entry {
        package var operation: InboxOperation
        package var waiter: Waiter?
        /// Whether the change failed before, and is tried again.
        package var isRepeated = false
    }

    package enum Action: Equatable {
        case none
        /// Take a batch, and commit it.
        case commit
        /// Say ``wakeElapsed(_:at:)`` with this urgency after this time.
        case wake(Urgency, after: Duration)
    }

    package enum Enqueued: Equatable {
        case accepted(Action)
        /// The queue is at its bound; nothing was taken.
        case refused
    }

    package struct Limits: Sendable {
        package var entries: Int
        package var bytes: Int
        package var batch: Int
        /// How long an offered message waits for its acknowledgement at most, until it is committed.
        package var offeredDelay: Duration
        package var leisurelyDelay: Duration
        /// The most changes that failed and are kept.
        package var unwritten: Int
        /// The time until changes that failed are tried again.
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
        /// Its place in `entries`.
        var index: Int
        var queuedAt: ContinuousClock.Instant
    }

    /// The writes of offered messages, by position.
    private var gathered: [Int64: Gathered] = [:]
    private var isCommitting = false
    /// Whether something is due that no wake will bring about.
    private var isDue = false
    /// How many of `entries` the next commit takes at most, where nothing is due but offered messages.
    private var offeredCount: Int?
    private var isOfferedWakeSet = false
    /// When a wake for offered messages first found all of them young, since the last commit.
    private var youngSince: ContinuousClock.Instant?
    private var isLeisurelyWakeSet = false
    private var unwritten: UnwrittenChanges
    /// How many of `entries` are repeated.
    private var repeatedCount = 0
    private var isCommitRepeated = false
    /// The positions that repeated changes of the commit are about.
    private var repeatedInCommit: Set<Int64> = []
    private var hasCommitFailed = false
    private var isAgainWakeSet = false

    package init(limits: Limits = Limits()) {
        self.limits = limits
        unwritten = UnwrittenChanges(limit: limits.unwritten)
    }

    /// How many changes were ever queued, and how many of them are through: a change is through when the second
    /// number has reached what the first was after it was queued.
    package private(set) var queuedCount = 0
    package private(set) var throughCount = 0
    private var inCommit = 0
    /// Which was the last change of a device, as ``queuedCount`` counts.
    private var lastChanges: [DeviceSerial: Int] = [:]
    /// Of how many devices that is known.
    package var rememberedDevices: Int { lastChanges.count }

    package mutating func enqueue(
        _ operation: InboxOperation, urgency: Urgency, waiter: Waiter?, at now: ContinuousClock.Instant
    ) -> Enqueued {
        // Outcomes are let in beyond the bound: each frees what an earlier entry took.
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
        /// The write was cancelled, and its waiter may be answered.
        case write(Waiter?)
        /// The write is under way or done; the outcome follows it.
        case queued(Action)
        /// The queue is far beyond its bound: what is not settled comes again.
        case refused
    }

    /// The device spoke about an envelope that may still be on its way to the disk.
    package mutating func settled(_ id: MessageID, device: DeviceSerial, _ settlement: Settlement) -> Overtaken {
        if let index = gathered[id.position]?.index, case .append(let envelope, let rules) = entries[index].operation,
            envelope.id == id, envelope.device == device
        {
            gathered[id.position] = nil
            change(index, to: .record(envelope, rules, settlement))
            let waiter = entries[index].waiter
            entries[index].waiter = nil
            return .write(waiter)
        }
        return follow(.settle(id, device: device, settlement))
    }

    /// A message of TTL 0 was given to nobody, and its sender is told: nothing of it need be kept.
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
        // What is not settled comes again: better than to grow without a bound under invented identifiers.
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
            // Every offered message was acknowledged: only outcomes are left, and they can wait.
            guard let oldest = gathered.values.map(\.queuedAt).min() else {
                return entries.isEmpty ? .none : schedule(.leisurely)
            }
            let since = youngSince ?? now
            youngSince = since
            // Outcomes are not held up for long by messages that are always young.
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

    /// Commits the offered messages that have waited for almost as long as they may, so that they form groups, with all that
    /// was queued before them.
    private mutating func commitOffered(at now: ContinuousClock.Instant) -> Action {
        let old = gathered.values.filter { now - $0.queuedAt >= limits.offeredDelay * 3 / 4 }
        let count = (old.map(\.index).max() ?? -1) + 1
        let isOthersDue = isDue && offeredCount == nil
        let action = schedule(.now)
        if !isOthersDue { offeredCount = count }
        return action
    }

    /// The next group, in order. There is none while a commit is under way, or nothing to commit.
    package mutating func takeBatch() -> [Entry] {
        guard !isCommitting, !entries.isEmpty else { return [] }
        isCommitting = true
        let count = nextBatchCount
        // What is left of a group that was cut off by its size is due as well.
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

    /// Changes that are repeated have commits of their own: where one of them cannot be written, no others fail with it.
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

    /// Whether changes that failed are kept.
    package var hasUnwritten: Bool { !unwritten.isEmpty }

    /// Whether a change of this envelope failed, and is not written yet.
    package func isUnwritten(_ id: MessageID) -> Bool {
        unwritten.contains(id) || repeatedInCommit.contains(id.position)
            || repeatedCount > 0 && entries.contains { $0.isRepeated && $0.operation.id == id }
    }

    /// Changes of the commit that could not be written, and whose failure nobody hears of. To be called before ``committed(at:)``.
    ///
    /// - Parameter changes: In their order. `isVain` of a change that found no envelope: it is kept only if the change that appends
    ///   the envelope is.
    /// - Returns: All changes that failed, with those behind them that were not tried; and of these the changes that are not kept,
    ///   as too many are.
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

    /// The store takes nothing: the repeated changes that come next are not tried.
    private mutating func takeRepeated() -> [Entry] {
        let repeated = Array(entries.prefix { $0.isRepeated })
        guard !repeated.isEmpty else { return [] }
        removeFirst(repeated.count)
        repeatedCount -= repeated.count
        throughCount += repeated.count
        if entries.isEmpty { isDue = false }
        return repeated
    }

    /// The time to try changes again that failed; to be asked after ``committed(at:)``.
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

    // MARK: What is through

    /// What ``throughCount`` must reach for all that was queued of the device to be through, and what to do for it; nil when
    /// it is. What others wait for is not hurried by a device of which nothing is queued.
    package mutating func flush(_ device: DeviceSerial) -> (target: Int, action: Action)? {
        guard hasQueued(device), let target = lastChanges[device] else { return nil }
        return (target, target > throughCount + inCommit ? schedule(.now) : .none)
    }

    package func hasQueued(_ device: DeviceSerial) -> Bool { (lastChanges[device] ?? 0) > throughCount }

    /// The commit ended, one way or the other.
    package mutating func committed(at now: ContinuousClock.Instant) -> Action {
        isCommitting = false
        throughCount += inCommit
        inCommit = 0
        forgetChangesThatAreThrough()
        // The store takes changes again.
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
