import NIOCore
import NIOPosix

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// A port of this machine on which no process listens, and which the system assigns to no other one meanwhile.
final class ClosedPort {
    let number: Int
    private let descriptor: CInt

    init() throws {
        #if canImport(Glibc)
            let descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        #else
            let descriptor = socket(AF_INET, SOCK_STREAM, 0)
        #endif
        let isBound = try SocketAddress(ipAddress: "127.0.0.1", port: 0).withSockAddr { address, size in
            bind(descriptor, address, socklen_t(size)) == 0
        }
        self.descriptor = descriptor
        var bound = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let isNamed = withUnsafeMutablePointer(to: &bound) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) == 0 }
        }
        // The port follows the family, in the order of the network.
        number = withUnsafeBytes(of: bound) { Int($0[2]) << 8 | Int($0[3]) }
        guard isBound, isNamed else { throw IOError(errnoCode: errno, reason: "bind") }
    }

    deinit { close(descriptor) }
}
