#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Calls of the system for sockets that are known by their descriptors.
enum SocketDescriptor {
    /// A new Unix socket for streams; nil when the system has none, as `errno` says.
    static func makeUnix() -> CInt? {
        #if canImport(Glibc)
            let kind = CInt(SOCK_STREAM.rawValue)
        #else
            let kind = SOCK_STREAM
        #endif
        let descriptor = socket(AF_UNIX, kind, 0)
        guard descriptor >= 0 else { return nil }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        return descriptor
    }

    /// The number of connections that may wait until the listener accepts them.
    static func setBacklog(_ backlog: CInt, of descriptor: CInt) { listen(descriptor, backlog) }
}
