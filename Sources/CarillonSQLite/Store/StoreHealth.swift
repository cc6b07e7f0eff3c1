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

/// Whether the store is usable. Damage that any call found is remembered until the store is closed. A file that is not in its
/// place accepts no more commits, because they could not be found there later.
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
        /// The reason why a commit failed; nil after a probe succeeded.
        var fault: StoreFault?
        /// See ``refuseCommits(_:)``.
        var refusal: StoreFault?
    }

    /// - Parameter path: The path of the open database file; nil for a database in memory.
    init(path: String?) {
        self.path = path
        place = path.flatMap(Place.init)
    }

    /// Remembers damage. Other faults may be temporary.
    func met(_ error: any Error) {
        guard let fault = error as? StoreFault, fault.kind == .damaged else { return }
        damage.withLock { $0 = $0 ?? fault }
    }

    /// A commit that certainly changed a page succeeded, or a commit could not be written to the disk.
    func wrote(_ fault: StoreFault?) { writing.withLock { $0.fault = fault } }

    /// The reason why a commit failed; nil if a probe succeeded since.
    var writeFault: StoreFault? { writing.withLock { $0.fault } }

    /// For tests: commits fail with this fault until it is nil.
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

/// Refuses commits to a file that is not in its place.
final class FileGuard: TransactionObserver {
    private let health: StoreHealth

    init(_ health: StoreHealth) { self.health = health }

    func observes(eventsOfKind eventKind: DatabaseEventKind) -> Bool { false }
    func databaseDidChange(with event: DatabaseEvent) {}
    func databaseWillCommit() throws { try health.checkCommit() }
    func databaseDidCommit(_ db: Database) {}
    func databaseDidRollback(_ db: Database) {}
}
