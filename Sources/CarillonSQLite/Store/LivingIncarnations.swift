import CarillonCore
import GRDB
import Synchronization

/// The incarnations of homes that were added and not removed, as the writing connection has them.
///
/// The table `node` is read once and not with each transaction. That is as safe as a statement in each: only the process with the lock
/// of the data directory writes the file, on one connection, and each change of the table forgets what was read. The next check, also one
/// later in the same transaction, reads the table as the transaction left it.
final class LivingIncarnations: Sendable {
    /// Nil: not read since the table changed.
    private let known = Mutex<Set<HomeFence>?>(nil)

    /// - Parameter db: The writing connection, in a transaction.
    func contains(_ fence: HomeFence, in db: Database) throws -> Bool {
        if let known = known.withLock({ $0 }) { return known.contains(fence) }
        let read = try NodeTable(db).living()
        known.withLock { $0 = read }
        return read.contains(fence)
    }

    /// The table was changed, or a change of it was rolled back.
    func forget() { known.withLock { $0 = nil } }
}
