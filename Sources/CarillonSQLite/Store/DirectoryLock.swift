import CarillonCore
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Keeps two processes from using one data directory. The operating system takes the lock away when the process ends,
/// however it ends.
final class DirectoryLock: Sendable {
    private let descriptor: Int32
    private let isHeld = Atomic<Bool>(true)

    /// Creates the directory when it is missing, for its owner only.
    init(directory: String) throws {
        if mkdir(directory, 0o700) != 0, errno != EEXIST {
            throw StoreOpenFault(unusable: directory, cause: errno)
        }
        let path = directory + "/lock"
        descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw StoreOpenFault(unusable: directory, cause: errno)
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            close(descriptor)
            throw StoreOpenFault.locked(directory)
        }
    }

    deinit { release() }

    func release() {
        guard isHeld.exchange(false, ordering: .relaxed) else { return }
        // A child that is just being started may hold the descriptor for a moment longer.
        flock(descriptor, LOCK_UN)
        close(descriptor)
    }
}
