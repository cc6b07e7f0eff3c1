import NIOCore
import NIOPosix

#if canImport(Network)
    import NIOTransportServices
#endif

/// Opens TCP connections. TLS is the same above each kind.
struct Sockets: Sendable {
    let group: any EventLoopGroup
    let bootstrap: @Sendable () -> any NIOClientTCPBootstrapProtocol

    static let posix = Sockets(group: MultiThreadedEventLoopGroup.singleton) {
        ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
    }

    #if canImport(Network)
        /// Network.framework, which supports VPNs, proxies and changes of the network path.
        static let network = Sockets(group: NIOTSEventLoopGroup.singleton) {
            NIOTSConnectionBootstrap(group: NIOTSEventLoopGroup.singleton)
        }
        static let platform = network
    #else
        static let platform = posix
    #endif

    private init(
        group: any EventLoopGroup, bootstrap: @escaping @Sendable () -> any NIOClientTCPBootstrapProtocol
    ) {
        self.group = group
        self.bootstrap = bootstrap
    }
}
