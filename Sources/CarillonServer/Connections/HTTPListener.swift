import Logging
import NIOCore
import NIOExtras
import NIOHTTP1
import NIOPosix
import ServiceLifecycle

/// Accepts connections until the server stops, and then waits until the last one is closed.
struct HTTPListener: Service {
    let group: any EventLoopGroup
    let host: String
    let port: Int
    let connections: HTTPConnectionHandler.Shared
    let loops: [ObjectIdentifier: LoopContext]
    let readiness: Readiness
    let logger: Logger
    /// Ends when all else listens: who finds this port open finds the server whole.
    let others: AsyncStream<Void>
    let onListening: @Sendable (any NIOCore.Channel) async -> Void

    func run() async throws {
        let quiescing = ServerQuiescingHelper(group: group)
        let bootstrap = ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: 4096)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelOption(.tcpOption(Self.unsentLimit), value: ConnectionLimits.unsentBytes)
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addHandler(AcceptPause(logger: logger))
                    try pipeline.addHandler(quiescing.makeServerChannelHandler(channel: channel))
                }
            }
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelOption(.maxMessagesPerRead, value: HTTPReceiveAllocator.readsAtOnce)
            .childChannelOption(.recvAllocator, value: HTTPReceiveAllocator())
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelInitializer(setUp)
        for await _ in others {}
        try Task.checkCancellation()
        let listener = try await ListenFault.naming(host, port) { try await bootstrap.bind(host: host, port: port).get() }
        await onListening(listener)
        let allClosed = group.any().makePromise(of: Void.self)
        // Ends when the last connection is closed, or with the patience of whoever runs this.
        let (end, ending) = AsyncStream.makeStream(of: Void.self)
        allClosed.futureResult.whenComplete { _ in ending.finish() }
        await withTaskCancellationHandler {
            await withGracefulShutdownHandler {
                for await _ in end {}
            } onGracefulShutdown: {
                quiescing.initiateShutdown(promise: allClosed)
            }
        } onCancel: {
            quiescing.initiateShutdown(promise: allClosed)
        }
    }

    /// How much the kernel takes of what it cannot send yet (`TCP_NOTSENT_LOWAT`): without it, megabytes of what a peer does
    /// not read would be out of reach. Connections have it from the socket that accepted them.
    private static var unsentLimit: NIOBSDSocket.Option {
        #if os(Linux)
            NIOBSDSocket.Option(rawValue: 25)
        #else
            NIOBSDSocket.Option(rawValue: 0x201)
        #endif
    }

    @Sendable private func setUp(_ channel: any NIOCore.Channel) -> EventLoopFuture<Void> {
        channel.eventLoop.makeCompletedFuture {
            guard let loop = loops[ObjectIdentifier(channel.eventLoop)] else {
                preconditionFailure("a connection is on an event loop of the server's group")
            }
            var limits = NIOHTTPDecoderLimitConfiguration()
            limits.maxHeaderListSize = ConnectionLimits.headBytes
            limits.maxHeaderFieldSize = ConnectionLimits.headBytes
            limits.maxHeaderFieldCount = ConnectionLimits.headFields
            let counter = InboundByteCounter()
            try channel.pipeline.syncOperations.addHandlers([
                counter,
                HTTPResponseEncoder(),
                ByteToMessageHandler(
                    HTTPRequestDecoder(leftOverBytesStrategy: .forwardBytes, limitConfiguration: limits)),
                HTTPConnectionHandler(shared: connections, loop: loop, eventLoop: channel.eventLoop, counter: counter),
            ])
            // One that came too late was not told that the server stops, and would not be waited for.
            if !readiness.isReady { channel.close(promise: nil) }
        }
    }
}
