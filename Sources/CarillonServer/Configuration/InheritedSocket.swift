#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// A listening socket that the service manager passed to the process (sd_listen_fds(3)).
package struct InheritedSocket: Equatable, Sendable {
    let descriptor: CInt
    let isTCP: Bool

    /// A passed descriptor is not a listening socket.
    package struct Fault: Error {
        /// A sentence for the operator.
        package let sentence: String
    }

    /// Returns the sockets that were passed to a process. Returns none if `LISTEN_PID` is another process or `LISTEN_FDS` is not
    /// a number.
    ///
    /// - Parameters:
    ///   - processID: Nil is this process.
    ///   - first: The first descriptor.
    package static func all(
        environment: [String: String], processID: Int32? = nil, first: CInt = 3
    ) throws(Fault) -> [InheritedSocket] {
        guard environment["LISTEN_PID"].flatMap({ Int32($0) }) == processID ?? getpid(),
            let count = environment["LISTEN_FDS"].flatMap({ CInt($0) }), count > 0
        else { return [] }
        var sockets: [InheritedSocket] = []
        for descriptor in first..<first + min(count, 4096) {
            guard let socket = InheritedSocket(descriptor) else {
                let what = "which is no stream socket that listens"
                throw Fault(sentence: "The service manager passed file descriptor \(descriptor), \(what).")
            }
            sockets.append(socket)
        }
        return sockets
    }

    private init?(_ descriptor: CInt) {
        guard Self.option(SO_TYPE, of: descriptor) == SocketDescriptor.Kind.streams.number,
            Self.option(SO_ACCEPTCONN, of: descriptor) == 1
        else { return nil }
        var address = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let isNamed = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &size) == 0 }
        }
        guard isNamed else { return nil }
        switch CInt(address.ss_family) {
        case AF_INET, AF_INET6: isTCP = true
        case AF_UNIX: isTCP = false
        default: return nil
        }
        self.descriptor = descriptor
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    }

    private static func option(_ name: CInt, of descriptor: CInt) -> CInt? {
        var value: CInt = 0
        var size = socklen_t(MemoryLayout<CInt>.size)
        return getsockopt(descriptor, SOL_SOCKET, name, &value, &size) == 0 ? value : nil
    }
}
