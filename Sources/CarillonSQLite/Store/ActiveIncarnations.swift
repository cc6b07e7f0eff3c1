import CarillonCore
import GRDB
import Synchronization

/// The incarnations of homes that were added and not removed, as the writing connection sees them.
///
/// The table `node` is read once and not in each transaction. This is as safe as a statement in each transaction: only the
/// process with the lock of the data directory writes the file, on one connection, and each change of the table clears this
/// cache. The next check, also one later in the same transaction, reads the table with the transaction's changes.
final class ActiveIncarnations: Sendable {
    /// Nil if the table was not read since it changed.
    private let known = Mutex<Set<HomeFence>?>(nil)

    /// - Parameter db: The writing connection, in a transaction.
    func contains(_ fence: HomeFence, in db: Database) throws -> Bool {
        if let known = known.withLock({ $0 }) { return known.contains(fence) }
        let read = try NodeTable(db).living()
        known.withLock { $0 = read }
        return read.contains(fence)
    }

    /// Clears the cache after a change of the table, or after the rollback of a change.
    func forget() { known.withLock { $0 = nil } }
}
