import NIOPosix
import ServiceLifecycle
import Synchronization

#if canImport(Glibc)
    import Glibc
#endif

/// Returns the memory of ended connections and answers to the system. By default, the allocator of glibc keeps freed memory for
/// the process (`malloc_trim`).
struct FreedMemory: Service {
    /// The estimated number of bytes that were freed since memory was last returned.
    private static let freed = Atomic<Int>(0)
    private static let pause = Duration.seconds(20)
    /// The smallest amount that justifies the work.
    private static let leastBytes = 8 << 20
    /// The estimated memory of a connection, with its received and written data.
    static let bytesOfConnection = 8192
    /// The estimated memory of a poll until it waits.
    static let bytesOfRequest = 4096

    static func add(_ bytes: Int) { freed.wrappingAdd(bytes, ordering: .relaxed) }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                try? await Task.sleep(for: Self.pause)
                if Self.isDue { await Self.returnToSystem() }
            }
        }
    }

    /// Whether enough memory was freed since the last time. If so, the count restarts.
    static var isDue: Bool {
        guard freed.load(ordering: .relaxed) >= leastBytes else { return false }
        freed.store(0, ordering: .relaxed)
        return true
    }

    /// Runs on a thread of its own, because it takes some milliseconds.
    private static func returnToSystem() async {
        #if canImport(Glibc)
            _ = try? await NIOThreadPool.singleton.runIfActive { trim?(0) }
        #endif
    }

    #if canImport(Glibc)
        private typealias Trim = @Sendable @convention(c) (Int) -> CInt

        /// `malloc_trim`, which the system's module does not declare.
        private static let trim: Trim? = dlsym(nil, "malloc_trim").map { unsafeBitCast($0, to: Trim.self) }
    #endif
}
