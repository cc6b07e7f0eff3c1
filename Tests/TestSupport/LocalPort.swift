#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// The port at which a socket of this process is.
package enum LocalPort {
    /// Nil if the descriptor is no socket for TCP over IPv4.
    package static func of(_ descriptor: Int32) -> Int? {
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isNamed = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) == 0 }
        }
        guard isNamed, Int32(address.sin_family) == AF_INET else { return nil }
        return Int(UInt16(bigEndian: address.sin_port))
    }
}
