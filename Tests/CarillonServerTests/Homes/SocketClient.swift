import CarillonCore
import Hummingbird
import NIOCore
import NIOPosix

@testable import CarillonServer

/// Accepts sockets for the devices of two homes. A peer sends frames without a handshake.
struct SocketClient: Sendable {
    struct Closed: Error {}

    let port: Int
    private let listener: any NIOCore.Channel

    init(_ world: TwoHomes) async throws {
        let (settings, domain) = (ServerSettings(dataDirectory: ""), world.domains[0])
        let addresses = PublicAddresses(base: "https://push.example.com")
        let limit = ConnectionLimit(limit: 100, gauge: .sockets, refused: .socketsRefused)
        let responder = Routes.all(
            domain: domain, addresses: addresses, store: world.store, settings: settings, readiness: Readiness(),
            sockets: limit
        ).router().buildResponder()
        let shared = SocketHandler.Shared(
            domain: domain.shared, settings: settings,
            identifier: SocketIdentifier(homes: domain.homes, anonymousApp: nil, logger: domain.logger),
            requests: SocketRequests(
                domain: domain, addresses: addresses, anonymousApp: nil, responder: responder, logger: domain.logger),
            limit: limit)
        let group = MultiThreadedEventLoopGroup.singleton
        let loops = try await LoopContext.all(of: group, slots: settings.keepAliveSeconds + 2, time: domain.time)
        let quotas = ConnectionQuotas(settings.quotas, isBehindProxy: false)
        let listener = try await ServerBootstrap(group: group)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    guard let loop = loops[ObjectIdentifier(channel.eventLoop)] else {
                        preconditionFailure("a connection is on an event loop of the group")
                    }
                    let socket = SocketHandler(
                        shared: shared, loop: loop, eventLoop: channel.eventLoop, forwardedFor: nil, address: nil,
                        quotas: quotas)
                    try channel.pipeline.syncOperations.addHandler(socket)
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        guard let port = listener.localAddress?.port else { throw Closed() }
        self.port = port
        self.listener = listener
    }

    func close() async throws { try await listener.close() }
}
