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
    func databaseWillCommit() throws { try health.checkPlace() }
    func databaseDidCommit(_ db: Database) {}
    func databaseDidRollback(_ db: Database) {}
}
