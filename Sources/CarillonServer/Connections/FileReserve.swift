#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// The last open files of the process, which are not used for connections.
///
/// The store, calls to backends and the system's libraries can need files at any time. On Linux, libdispatch reads its threads in
/// `/proc` once a second while there is work, and ends the process if it cannot open a file there
/// (`_dispatch_workq_monitor_pools`).
enum FileReserve {
    /// The number of files. It is a part of the files that ``OpenFileBudget`` reserves.
    static let files = 32

    /// Whether only the reserve is left.
    static var isReached: Bool {
        #if canImport(Glibc)
            let (kind, resource) = (CInt(SOCK_STREAM.rawValue), __rlimit_resource_t(RLIMIT_NOFILE.rawValue))
        #else
            let (kind, resource) = (SOCK_STREAM, RLIMIT_NOFILE)
        #endif
        // A new file has the lowest free number (POSIX.1-2017, 2.14).
        let file = socket(AF_UNIX, kind, 0)
        guard file >= 0 else { return true }
        close(file)
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { return false }
        return Int(file) + files >= Int(clamping: limit.rlim_cur)
    }
}
