import CarillonCore
import GRDB
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Whether the store can still be trusted: damage that was met anywhere is remembered until the end, and a file that is
/// no longer in its place takes nothing more, as nobody would find it there again.
final class StoreHealth: Sendable {
    private struct Place: Equatable {
        var device: UInt64
        var file: UInt64

        init?(_ path: String) {
            var status = stat()
            guard stat(path, &status) == 0 else { return nil }
            device = UInt64(truncatingIfNeeded: status.st_dev)
            file = UInt64(truncatingIfNeeded: status.st_ino)
        }
    }

    private let path: String?
    private let place: Place?
    private let damage = Mutex<StoreFault?>(nil)
    private let writing = Mutex(Writing())

    private struct Writing {
        /// Why a commit failed; nil since a probe succeeded.
        var fault: StoreFault?
        /// See ``refuseCommits(_:)``.
        var refusal: StoreFault?
    }

    /// - Parameter path: The database file, which is open; nil for one in memory.
    init(path: String?) {
        self.path = path
        place = path.flatMap(Place.init)
    }

    /// Remembers damage; anything else may pass.
    func met(_ error: any Error) {
        guard let fault = error as? StoreFault, fault.kind == .damaged else { return }
        damage.withLock { $0 = $0 ?? fault }
    }

    /// A commit that changed a page for certain succeeded, or the disk did not take one.
    func wrote(_ fault: StoreFault?) { writing.withLock { $0.fault = fault } }

    /// Why a commit failed, and no probe has succeeded since.
    var writeFault: StoreFault? { writing.withLock { $0.fault } }

    /// For tests: commits fail with this, until it is nil.
    func refuseCommits(_ fault: StoreFault?) { writing.withLock { $0.refusal = fault } }

    fileprivate func checkCommit() throws {
        try checkPlace()
        if let refusal = writing.withLock({ $0.refusal }) { throw refusal }
    }

    /// - Throws: ``StoreFault``.
    func check() throws {
        if let fault = damage.withLock({ $0 }) { throw fault }
        try checkPlace()
    }

    fileprivate func checkPlace() throws {
        guard let path, Place(path) != place else { return }
        throw StoreFault(.unavailable, "the database file was removed, moved or replaced while it was in use")
    }
}

/// Lets nothing be committed to a file that is not in its place.
final class PlaceGuard: TransactionObserver {
    private let health: StoreHealth

    init(_ health: StoreHealth) { self.health = health }

    func observes(eventsOfKind eventKind: DatabaseEventKind) -> Bool { false }
    func databaseDidChange(with event: DatabaseEvent) {}
    func databaseWillCommit() throws { try health.checkCommit() }
    func databaseDidCommit(_ db: Database) {}
    func databaseDidRollback(_ db: Database) {}
}
