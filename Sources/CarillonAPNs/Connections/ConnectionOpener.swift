import NIOCore
import NIOExtras
import NIOHTTP1
import NIOPosix
import NIOSOCKS
import NIOSSL

/// Opens sockets to one host, through a proxy if there is one, with TLS and HTTP/2.
struct ConnectionOpener: Sendable {
    let address: APNsEnvironment.Address
    /// Nil for a connection without TLS.
    let tls: NIOSSLContext?
    let proxy: APNsClient.Proxy?
    let timeout: Duration

    func open(on loop: any EventLoop, handler: APNsConnectionHandler) -> EventLoopFuture<any NIOCore.Channel> {
        let target = proxy?.address ?? (host: address.host, port: address.port)
        let limit = TimeAmount(timeout)
        // The handler is used only on the event loop of the channel.
        let bound = NIOLoopBound(handler, eventLoop: loop)
        return ClientBootstrap(group: loop)
            .connectTimeout(limit)
            .resolver(AddressSpreader(loop: loop))
            .channelOption(.socketOption(.tcp_nodelay), value: 1)
            .channelOption(
                .recvAllocator, value: AdaptiveRecvByteBufferAllocator(minimum: 2048, initial: 16_384, maximum: 65_536)
            )
            .connect(host: target.host, port: target.port)
            .flatMap { channel in
                do {
                    let pipeline = channel.pipeline.syncOperations
                    switch proxy {
                    case .http(_, _, let authorization):
                        return try connectByHTTP(channel, authorization, bound)
                    case .socks:
                        // The handler buffers the output until the proxy has connected.
                        try pipeline.addHandler(SOCKSClientHandler(targetAddress: socksTarget))
                    case nil: break
                    }
                    try addProtocols(to: pipeline, bound.value)
                    return loop.makeSucceededFuture(channel)
                } catch {
                    channel.close(promise: nil)
                    return loop.makeFailedFuture(error)
                }
            }
    }

    private func addProtocols(
        to pipeline: ChannelPipeline.SynchronousOperations, _ handler: APNsConnectionHandler
    ) throws {
        if let tls {
            try pipeline.addHandler(NIOSSLClientHandler(context: tls, serverHostname: serverName))
        }
        try pipeline.addHandler(handler)
    }

    private var ipAddress: SocketAddress? { try? SocketAddress(ipAddress: address.host, port: address.port) }

    /// Without a name, the certificate must be issued for the address.
    private var serverName: String? { ipAddress == nil ? address.host : nil }

    private var socksTarget: SOCKSAddress {
        ipAddress.map { .address($0) } ?? .domain(address.host, port: address.port)
    }

    private func connectByHTTP(
        _ channel: any NIOCore.Channel, _ authorization: String?, _ handler: NIOLoopBound<APNsConnectionHandler>
    ) throws -> EventLoopFuture<any NIOCore.Channel> {
        let answered = channel.eventLoop.makePromise(of: Void.self)
        var headers = HTTPHeaders([("Host", "\(address.uriHost):\(address.port)")])
        if let authorization { headers.add(name: "Proxy-Authorization", value: authorization) }
        let pipeline = channel.pipeline.syncOperations
        let encoder = HTTPRequestEncoder()
        let decoder = ByteToMessageHandler(HTTPResponseDecoder(leftOverBytesStrategy: .forwardBytes))
        let connect = NIOHTTP1ProxyConnectHandler(
            targetHost: address.uriHost, targetPort: address.port, headers: headers,
            deadline: .now() + TimeAmount(timeout), promise: answered)
        try pipeline.addHandlers([encoder, decoder, connect])
        let bound = NIOLoopBound((encoder, decoder), eventLoop: channel.eventLoop)
        return answered.futureResult.flatMap {
            let pipeline = channel.pipeline.syncOperations
            return pipeline.removeHandler(bound.value.0).flatMap {
                channel.pipeline.syncOperations.removeHandler(bound.value.1)
            }
        }.flatMapThrowing {
            try addProtocols(to: channel.pipeline.syncOperations, handler.value)
            return channel
        }.flatMapErrorThrowing { error in
            channel.close(promise: nil)
            throw error
        }
    }
}
