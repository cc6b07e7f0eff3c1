#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Calls of the system for sockets that are known by their descriptors.
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

    /// A new Unix socket; nil when the system has none, as `errno` says.
    static func makeUnix(_ kind: Kind) -> CInt? {
        let descriptor = socket(AF_UNIX, kind.number, 0)
        guard descriptor >= 0 else { return nil }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        return descriptor
    }

    /// Another descriptor of the same socket; nil when the system has none, as `errno` says.
    static func duplicate(_ descriptor: CInt) -> CInt? {
        let duplicate = fcntl(descriptor, F_DUPFD_CLOEXEC, 3)
        return duplicate >= 0 ? duplicate : nil
    }

    /// The number of connections that may wait until the listener accepts them.
    static func setBacklog(_ backlog: CInt, of descriptor: CInt) { listen(descriptor, backlog) }
}
