import CarillonCore
import GRDB
import Metrics
import Synchronization

/// Combines the writes of many callers in few commits. While one commit is written to the disk, the next group is collected.
///
/// If the work of one caller fails, all work of the group is run again, each in its own savepoint, so that one failure does not
/// affect the others. So work may run more than once, and its earlier changes are rolled back before. If the commit itself fails,
/// nothing was changed, and each work of the group is tried again in its own commit, so that work that cannot be stored fails
/// alone. After a few failures in a row, the store itself is at fault, and the remaining work fails without an attempt.
final class TransactionGroup: Sendable {
    private struct Job: Sendable {
        /// Whether the work certainly changes a page, so that its commit shows that the disk accepts writes.
        var isProbe = false
        var queuedAt = ContinuousClock.now
        var work: @Sendable (Database) throws -> Void
        var finish: @Sendable (StoreFault?) -> Void
    }

    private struct Queue {
        var jobs: [Job] = []
        /// The time at which the oldest work of the group that is being written was queued.
        var writingSince: ContinuousClock.Instant?
        /// The time at which the present commit began.
        var commitBegan: ContinuousClock.Instant?
        var isDraining = false
    }

    private let writer: any DatabaseWriter
    private let gate: StoreGate
    private let health: StoreHealth
    private let incarnations: ActiveIncarnations
    private let fencedWrites: Counter
    private let queue = Mutex(Queue())
    private let onRollback: @Sendable (Database) -> Void
    /// Called after each commit, before its callers receive their results.
    let onCommit = Mutex<(@Sendable () -> Void)?>(nil)
    private static let groupLimit = 512
    private static let failuresInARow = 4

    /// - Parameters:
    ///   - incarnations: The homes whose writes are accepted.
    ///   - fencedWrites: Counts the writes that are refused because the incarnation of their home was removed.
    ///   - onRollback: Called after work was rolled back.
    init(
        writer: any DatabaseWriter, gate: StoreGate = StoreGate(), health: StoreHealth,
        incarnations: ActiveIncarnations = ActiveIncarnations(), fencedWrites: Counter = ServerMetric.fencedWrites.counter(),
        onRollback: @escaping @Sendable (Database) -> Void
    ) {
        self.writer = writer
        self.gate = gate
        self.health = health
        self.incarnations = incarnations
        self.fencedWrites = fencedWrites
        self.onRollback = onRollback
    }

    /// Runs the work in a group, and returns when the group is on disk.
    ///
    /// - Parameters:
    ///   - isProbe: Whether the work certainly changes a page. SQLite writes nothing for a change that changes no value.
    ///   - fence: The home of the work. If the home's incarnation was removed, the work is not run.
    func run<Value: Sendable>(
        isProbe: Bool = false, by fence: HomeFence? = nil, _ work: @escaping @Sendable (Database) throws -> Value
    ) async throws -> Value {
        do {
            return try await inGroup(isProbe, fence, work)
        } catch {
            health.met(error)
            if (error as? StoreFault)?.kind == .fenced { fencedWrites.increment() }
            throw error
        }
    }

    private func inGroup<Value: Sendable>(
        _ isProbe: Bool, _ fence: HomeFence?, _ work: @escaping @Sendable (Database) throws -> Value
    ) async throws -> Value {
        try gate.enter()
        return try await withCheckedThrowingContinuation { continuation in
            let result = Mutex<Result<Value, any Error>?>(nil)
            enqueue(
                Job(
                    isProbe: isProbe,
                    work: { [incarnations] db in
                        do {
                            if let fence, try !incarnations.contains(fence, in: db) {
                                // This is not an error of the group: the other work is not run again.
                                result.withLock { $0 = .failure(Self.refusal(of: fence)) }
                                return
                            }
                            let value = try WritingHome.$node.withValue(fence?.node ?? WritingHome.none) { try work(db) }
                            result.withLock { $0 = .success(value) }
                        } catch {
                            result.withLock { $0 = .failure(error) }
                            throw error
                        }
                    },
                    finish: { [gate] fault in
                        defer { gate.leave() }
                        let outcome = result.withLock { $0 }
                        switch (outcome, fault) {
                        // If the commit failed, the removal of the incarnation may not be stored either.
                        case (.failure(let refusal as StoreFault), .some(let fault)) where refusal.kind == .fenced:
                            continuation.resume(throwing: fault)
                        case (.failure(let error), _): continuation.resume(throwing: StoreFault(error))
                        case (_, .some(let fault)): continuation.resume(throwing: fault)
                        case (.success(let value), nil): continuation.resume(returning: value)
                        case (nil, nil):
                            continuation.resume(throwing: StoreFault(.unavailable, "the change was not executed"))
                        }
                    }))
        }
    }

    private static func refusal(of fence: HomeFence) -> StoreFault {
        StoreFault(.fenced, "incarnation \(fence.incarnation) of node \(fence.node.rawValue) was removed")
    }

    /// How long the oldest work that is not on disk has waited; zero if all work is on disk.
    var oldestWait: Duration {
        let oldest = queue.withLock { $0.writingSince ?? $0.jobs.first?.queuedAt }
        return oldest.map { ContinuousClock.now - $0 } ?? .zero
    }

    /// How long the present commit has taken. Without a commit, how long the oldest work has waited for one; zero without work.
    var commitTime: Duration {
        let began = queue.withLock { $0.commitBegan ?? $0.jobs.first?.queuedAt }
        return began.map { ContinuousClock.now - $0 } ?? .zero
    }

    private func enqueue(_ job: Job) {
        let startsDraining = queue.withLock { queue in
            queue.jobs.append(job)
            defer { queue.isDraining = true }
            return !queue.isDraining
        }
        guard startsDraining else { return }
        drain()
    }

    private func drain() {
        writer.asyncWriteWithoutTransaction { db in
            while true {
                let jobs = self.queue.withLock { queue -> [Job] in
                    let jobs = Array(queue.jobs.prefix(Self.groupLimit))
                    queue.jobs.removeFirst(jobs.count)
                    queue.writingSince = jobs.first?.queuedAt
                    if jobs.isEmpty {
                        queue.commitBegan = nil
                        queue.isDraining = false
                    }
                    return jobs
                }
                if jobs.isEmpty { return }
                self.commitAll(jobs, in: db)
            }
        }
    }

    private func commitAll(_ jobs: [Job], in db: Database) {
        var attempt = commit(jobs, in: db)
        if case .workFailed = attempt, jobs.count > 1 { attempt = commit(jobs, in: db, eachInSavepoint: true) }
        switch attempt {
        case .committed:
            for job in jobs { job.finish(nil) }
        case .workFailed(let fault) where jobs.count == 1, .commitFailed(let fault) where jobs.count == 1:
            jobs[0].finish(fault)
        case .workFailed, .commitFailed:
            commitEach(jobs, in: db)
        }
    }

    private func commitEach(_ jobs: [Job], in db: Database) {
        var failures = 0
        var last: StoreFault?
        for job in jobs {
            if failures < Self.failuresInARow {
                let attempt = commit([job], in: db)
                last = attempt.fault
                // Work that fails does not show a fault of the store.
                if case .commitFailed = attempt { failures += 1 } else { failures = 0 }
            }
            job.finish(last)
        }
    }

    private enum Attempt {
        case committed
        /// Some work threw an error, which its caller receives.
        case workFailed(StoreFault)
        case commitFailed(StoreFault)

        var fault: StoreFault? {
            switch self {
            case .committed: nil
            case .workFailed(let fault), .commitFailed(let fault): fault
            }
        }
    }

    private func commit(_ jobs: [Job], in db: Database, eachInSavepoint: Bool = false) -> Attempt {
        queue.withLock { $0.commitBegan = .now }
        var isAtWork = false
        do {
            try db.inTransaction(.immediate) {
                isAtWork = true
                for job in jobs {
                    if eachInSavepoint { try runInSavepoint(job, db) } else { try job.work(db) }
                }
                isAtWork = false
                return .commit
            }
            if jobs.contains(where: \.isProbe) { health.wrote(nil) }
            onCommit.withLock { $0 }?()
            return .committed
        } catch {
            onRollback(db)
            if !isAtWork || Self.isOfDisk(error) { health.wrote(StoreFault(error)) }
            return isAtWork ? .workFailed(StoreFault(error)) : .commitFailed(StoreFault(error))
        }
    }

    /// Whether work failed because the file cannot be written.
    private static func isOfDisk(_ error: any Error) -> Bool {
        guard let error = error as? DatabaseError else { return false }
        return [.SQLITE_FULL, .SQLITE_IOERR, .SQLITE_READONLY, .SQLITE_CANTOPEN].contains(error.resultCode)
    }

    private func runInSavepoint(_ job: Job, _ db: Database) throws {
        do {
            try db.inSavepoint {
                try job.work(db)
                return .commit
            }
        } catch {
            onRollback(db)
            // A fault of the disk may have ended the whole transaction.
            if !db.isInsideTransaction { throw error }
        }
    }
}

extension StoreFault {
    init(_ error: any Error) {
        switch error {
        case let fault as StoreFault:
            self = fault
        case let error as DatabaseError where error.resultCode == .SQLITE_FULL:
            self.init(.full, "the disk is full: \(error.message ?? "SQLITE_FULL")")
        case let error as DatabaseError where [.SQLITE_CORRUPT, .SQLITE_NOTADB].contains(error.resultCode):
            self.init(.damaged, "the database is damaged: \(error.message ?? "SQLite \(error.resultCode.rawValue)")")
        case let error as DatabaseError:
            // The message does not contain the whole error, which can quote the values of a statement.
            self.init(.unavailable, "SQLite \(error.extendedResultCode.rawValue): \(error.message ?? "no message")")
        default:
            self.init(.unavailable, "\(type(of: error))")
        }
    }
}
