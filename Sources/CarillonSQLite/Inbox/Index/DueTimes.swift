import CarillonCore
import GRDB
import Synchronization

/// The next due times, by chunks of neighbouring positions. An entry of the table `due` means that rows of a chunk can be due by
/// the end of a bucket. A message adds no entry if its neighbours have the same one. No entry is removed with a message.
final class DueTimes: Sendable {
    /// The logarithm of the chunk size: 64 consecutive sequence numbers, with all shards.
    private static let chunkBits: Int64 = 16

    struct Entry: Hashable {
        var bucket: Int64
        var chunk: Int64

        var positions: ClosedRange<Int64> {
            let first = chunk << DueTimes.chunkBits
            return first...first + (1 << DueTimes.chunkBits) - 1
        }
    }

    /// The entries that are known to be in the table.
    private let known = Mutex(LRUCache<Entry, Bool>(capacity: 4096))
    private let outcomeSeconds: Int64

    init(outcomeSeconds: Int64) { self.outcomeSeconds = outcomeSeconds }

    /// Returns the time up to which outcomes that became final are past their retention time.
    func lastForgotten(at now: Timestamp) -> Timestamp { now.adding(milliseconds: -1000 * outcomeSeconds) }

    func cutoff(by retention: RetentionTime) -> RetentionCutoff { retention.cutoff(afterSeconds: outcomeSeconds) }

    func add(_ row: InboxRow, in db: Database) throws {
        let (moment, since) = moment(of: row)
        let bucket = DueBucket.of(moment, since: since)
        // Rows that never expire are not due.
        guard bucket < .max else { return }
        let entry = Entry(bucket: bucket, chunk: row.position >> Self.chunkBits)
        guard known.withLock({ $0[entry] }) == nil else { return }
        try db.cachedStatement(sql: "INSERT OR IGNORE INTO due (bucket, chunk) VALUES (?, ?)")
            .execute(arguments: [entry.bucket, entry.chunk])
        known.withLock { $0[entry] = true }
    }

    func remove(_ entry: Entry, in db: Database) throws {
        known.withLock { $0[entry] = nil }
        try db.cachedStatement(sql: "DELETE FROM due WHERE bucket = ? AND chunk = ?")
            .execute(arguments: [entry.bucket, entry.chunk])
    }

    // MARK: Postponed chunks

    /// Postpones a chunk with outcomes whose retention time is over by the wall clock alone. The wall clock may be wrong, so only
    /// the counter of served seconds decides when they are checked again.
    func hold(_ chunk: Int64, untilServed served: Int64, in db: Database) throws {
        try db.cachedStatement(sql: "INSERT OR IGNORE INTO due_held (served, chunk) VALUES (?, ?)")
            .execute(arguments: [served, chunk])
    }

    /// Makes postponed chunks due whose time has come. Returns the number of chunks.
    func releaseHeld(by retention: RetentionTime, limit: Int, in db: Database) throws -> Int {
        let held = try Row.fetchAll(
            db.cachedStatement(sql: "SELECT served, chunk FROM due_held WHERE served <= ? LIMIT ?"),
            arguments: [retention.served, limit])
        for row in held {
            let (served, chunk): (Int64, Int64) = (row[0], row[1])
            try db.cachedStatement(sql: "INSERT OR IGNORE INTO due (bucket, chunk) VALUES (?, ?)")
                .execute(arguments: [retention.now.milliseconds, chunk])
            try db.cachedStatement(sql: "DELETE FROM due_held WHERE served = ? AND chunk = ?")
                .execute(arguments: [served, chunk])
        }
        return held.count
    }

    /// Clears the cache after a rollback.
    func forgetAll() { known.withLock { $0.removeAll() } }

    static func entries(by moment: Timestamp, limit: Int, in db: Database) throws -> [Entry] {
        let rows = try Row.fetchAll(
            db, sql: "SELECT bucket, chunk FROM due WHERE bucket <= ? ORDER BY bucket, chunk LIMIT ?",
            arguments: [moment.milliseconds, limit])
        return rows.map { Entry(bucket: $0["bucket"], chunk: $0["chunk"]) }
    }

    private func moment(of row: InboxRow) -> (at: Timestamp, since: Timestamp) {
        guard let finalOutcome = row.finalOutcome else { return (row.waitsUntil, row.acceptedAt) }
        return (finalOutcome.at.adding(seconds: outcomeSeconds), finalOutcome.at)
    }
}
