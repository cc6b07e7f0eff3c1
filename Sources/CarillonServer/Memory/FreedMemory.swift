import NIOPosix
import ServiceLifecycle
import Synchronization

#if canImport(Glibc)
    import Glibc
#endif

/// Gives memory that connections and answers took back to the system. The allocator of glibc keeps freed memory for the process
/// unless it is told otherwise (`malloc_trim`).
struct FreedMemory: Service {
    /// Bytes that were freed since memory was given back, by estimate.
    private static let freed = Atomic<Int>(0)
    private static let pause = Duration.seconds(20)
    /// Less is not worth the time.
    private static let leastBytes = 8 << 20
    /// What a connection takes, with what was read and written on it.
    static let bytesOfConnection = 8192
    /// What a poll took until it waits.
    static let bytesOfRequest = 4096

    static func add(_ bytes: Int) { freed.wrappingAdd(bytes, ordering: .relaxed) }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                try? await Task.sleep(for: Self.pause)
                if Self.isDue { await Self.giveBack() }
            }
        }
    }

    /// Whether enough was freed since the last time; begins a new count then.
    static var isDue: Bool {
        guard freed.load(ordering: .relaxed) >= leastBytes else { return false }
        freed.store(0, ordering: .relaxed)
        return true
    }

    /// Takes some milliseconds, so it runs on a thread of its own.
    private static func giveBack() async {
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
