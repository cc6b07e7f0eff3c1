import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Ports for servers that keep theirs while they are stopped: each is returned once in a process, and they are below those that
/// the system assigns to clients.
package enum FreePort {
    private static let ports = Mutex((20_000..<32_000).shuffled())

    package struct None: Error {}

    /// A port that was free a moment ago, and that no other test receives.
    package static func next() throws -> Int {
        while let port = ports.withLock({ $0.popLast() }) {
            if isFree(port) { return port }
        }
        throw None()
    }

    private static func isFree(_ port: Int) -> Bool {
        #if canImport(Darwin)
            let descriptor = socket(AF_INET, SOCK_STREAM, 0)
        #elseif canImport(Musl)
            let descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)
        #else
            // A child would inherit it, and keep the port.
            let descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        #endif
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let length = socklen_t(MemoryLayout<sockaddr_in>.size)
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, length) == 0 }
        }
    }
}
