#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// The last files of the process, which no connection gets.
///
/// The store, calls to back ends and the system's own libraries need them at any time. On Linux, libdispatch looks at its
/// threads in `/proc` each second that there is work, and ends the process where it cannot open that
/// (`_dispatch_workq_monitor_pools`).
enum FileReserve {
    /// Within what ``OpenFileBudget`` reserves.
    static let files = 32

    /// Whether no more than the reserve is left.
    static var isReached: Bool {
        #if canImport(Glibc)
            let (kind, resource) = (CInt(SOCK_STREAM.rawValue), __rlimit_resource_t(RLIMIT_NOFILE.rawValue))
        #else
            let (kind, resource) = (SOCK_STREAM, RLIMIT_NOFILE)
        #endif
        // A new file has the lowest number that is free (POSIX.1-2017, 2.14).
        let file = socket(AF_UNIX, kind, 0)
        guard file >= 0 else { return true }
        close(file)
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { return false }
        return Int(file) + files >= Int(clamping: limit.rlim_cur)
    }
}
