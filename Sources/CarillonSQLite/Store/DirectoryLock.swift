import CarillonCore
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Prevents two processes from using one data directory. The operating system releases the lock when the process ends, for any
/// reason.
final class DirectoryLock: Sendable {
    private let descriptor: Int32
    private let isHeld = Atomic<Bool>(true)

    /// Creates the directory, for its owner only, if it is missing.
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
        // A child process that is being started can have the descriptor open for a short time.
        flock(descriptor, LOCK_UN)
        close(descriptor)
    }
}
