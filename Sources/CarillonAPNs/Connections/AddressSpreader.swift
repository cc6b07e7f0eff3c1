import NIOCore
import NIOPosix

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// Resolves the name for each connection, without a cache, and shuffles the addresses, so that the connections of a pool use
/// different servers.
final class AddressSpreader: Resolver, Sendable {
    private let loop: any EventLoop

    init(loop: any EventLoop) { self.loop = loop }

    func initiateAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> {
        resolve(host, port, AF_INET)
    }

    func initiateAAAAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> {
        resolve(host, port, AF_INET6)
    }

    func cancelQueries() {
        // `getaddrinfo` cannot be interrupted; its result is ignored.
    }

    private func resolve(_ host: String, _ port: Int, _ family: Int32) -> EventLoopFuture<[SocketAddress]> {
        NIOThreadPool.singleton.runIfActive(eventLoop: loop) {
            var hints = addrinfo()
            hints.ai_family = family
            #if canImport(Glibc)
                hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
            #else
                hints.ai_socktype = SOCK_STREAM
            #endif
            var found: UnsafeMutablePointer<addrinfo>?
            let code = getaddrinfo(host, String(port), &hints, &found)
            // A name without addresses of one family is not a fault. If there are no addresses at all, connecting fails.
            guard code == 0 else { return [] }
            defer { freeaddrinfo(found) }
            var addresses: [SocketAddress] = []
            var next = found
            while let entry = next {
                if let address = entry.pointee.ai_addr {
                    switch family {
                    case AF_INET:
                        address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
                            addresses.append(SocketAddress($0.pointee, host: host))
                        }
                    default:
                        address.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) {
                            addresses.append(SocketAddress($0.pointee, host: host))
                        }
                    }
                }
                next = entry.pointee.ai_next
            }
            return addresses.shuffled()
        }
    }
}
