#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// System calls for the descriptors of sockets.
enum SocketDescriptor {
    enum Kind {
        case streams
        case datagrams

        var number: CInt {
            #if canImport(Glibc)
                switch self {
                case .streams: return CInt(SOCK_STREAM.rawValue)
                case .datagrams: return CInt(SOCK_DGRAM.rawValue)
                }
            #else
                switch self {
                case .streams: return SOCK_STREAM
                case .datagrams: return SOCK_DGRAM
                }
            #endif
        }
    }

    /// Creates a Unix socket. Returns nil with `errno` if the system refuses.
    static func makeUnix(_ kind: Kind) -> CInt? {
        let descriptor = socket(AF_UNIX, kind.number, 0)
        guard descriptor >= 0 else { return nil }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        return descriptor
    }

    /// Returns another descriptor of the same socket; nil with `errno` if the system refuses.
    static func duplicate(_ descriptor: CInt) -> CInt? {
        let duplicate = fcntl(descriptor, F_DUPFD_CLOEXEC, 3)
        return duplicate >= 0 ? duplicate : nil
    }

    /// Sets the number of connections that can wait for the listener.
    static func setBacklog(_ backlog: CInt, of descriptor: CInt) { listen(descriptor, backlog) }
}
