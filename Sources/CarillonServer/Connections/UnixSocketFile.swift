import NIOCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// The file of a Unix socket that the server created.
struct UnixSocketFile {
    /// The owner and the group can connect.
    private static let mode: mode_t = 0o660

    private struct Identity: Equatable {
        var device: UInt64
        var file: UInt64

        init?(_ path: String) {
            var status = stat()
            guard lstat(path, &status) == 0 else { return nil }
            device = UInt64(truncatingIfNeeded: status.st_dev)
            file = UInt64(truncatingIfNeeded: status.st_ino)
        }
    }

    private let path: String
    private let identity: Identity

    /// Creates a bound socket with this path, which does not listen yet. A stale socket file without a listener is replaced.
    ///
    /// - Throws: ``ListenFault``.
    static func make(_ path: String) throws -> (descriptor: CInt, file: UnixSocketFile) {
        let address: SocketAddress
        do {
            address = try SocketAddress(unixDomainSocketPath: path)
        } catch {
            throw fault(path, "the path is too long for a socket")
        }
        try removeUnused(path, address)
        let descriptor = try newSocket(path)
        let isBound = address.withSockAddr { pointer, size in bind(descriptor, pointer, socklen_t(size)) == 0 }
        // Clients cannot connect before the socket listens.
        guard isBound, chmod(path, mode) == 0, let identity = Identity(path) else {
            defer { close(descriptor) }
            throw fault(path, code: errno)
        }
        return (descriptor, UnixSocketFile(path: path, identity: identity))
    }

    /// Removes the file, unless another file replaced it.
    func remove() {
        if Identity(path) == identity { unlink(path) }
    }

    private static func removeUnused(_ path: String, _ address: SocketAddress) throws {
        var status = stat()
        guard lstat(path, &status) == 0 else { return }
        guard status.st_mode & S_IFMT == S_IFSOCK else { throw fault(path, "a file is there that is no socket") }
        let descriptor = try newSocket(path)
        defer { close(descriptor) }
        // A connection to a listener with a full queue would block.
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
        let result = address.withSockAddr { pointer, size in connect(descriptor, pointer, socklen_t(size)) }
        guard result != 0, errno == ECONNREFUSED else { throw fault(path, "another process listens there") }
        guard unlink(path) == 0 || errno == ENOENT else { throw fault(path, code: errno) }
    }

    private static func newSocket(_ path: String) throws -> CInt {
        guard let descriptor = SocketDescriptor.makeUnix(.streams) else { throw fault(path, code: errno) }
        return descriptor
    }

    private static func fault(_ path: String, code: CInt) -> ListenFault {
        fault(path, ListenFault.reason(of: code))
    }

    private static func fault(_ path: String, _ reason: String) -> ListenFault {
        ListenFault(address: ListenPlace.unix(path: path).description, reason: reason)
    }
}
