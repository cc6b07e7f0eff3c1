#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// The number of files, including sockets, that the process can open.
enum OpenFiles {
    /// Raises the limit as far as the system permits, and returns it.
    @discardableResult
    static func raiseLimit() -> Int {
        #if canImport(Glibc)
            let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #else
            let resource = RLIMIT_NOFILE
        #endif
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { return .max }
        let before = limit.rlim_cur
        limit.rlim_cur = limit.rlim_max
        if setrlimit(resource, &limit) != 0 { limit.rlim_cur = before }
        return Int(clamping: limit.rlim_cur)
    }
}
