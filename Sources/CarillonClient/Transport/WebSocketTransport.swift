import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import NIOWebSocket

/// Opens WebSocket connections (RFC 6455), over TLS for `wss:` addresses. Each attempt resolves the name anew.
struct WebSocketTransport: Sendable {
    /// The largest message that a server may send, in bytes.
    static let messageBytes = 1 << 20
    /// The most fragments of one message.
    static let fragments = 1024

    let tls: NIOSSLContext
    /// From name resolution until the upgrade is accepted.
    let timeout: Duration

    private enum Upgrade: Sendable {
        case accepted(NIOAsyncChannel<WebSocketFrame, WebSocketFrame>)
        case refused
    }

    /// Connects, and hands the connection to the closure; it is closed when the closure ends.
    /// - Throws: ``TransportFault`` when there is no connection to hand over. Faults of a connection that stood are the
    ///   end of its inbound events.
    func withConnection(
        to address: WebAddress, _ body: (WebSocketConnection) async -> Void
    ) async throws(TransportFault) {
        let progress = ConnectProgress()
        do {
            let upgrade = try await connect(to: address, progress)
            guard case .accepted(let channel) = upgrade else { throw TransportFault(.refusedUpgrade, nil) }
            try await channel.executeThenClose { inbound, _ in
                await body(WebSocketConnection(channel: channel.channel, inbound: inbound))
            }
        } catch let fault as TransportFault {
            throw fault
        } catch {
            // A fault after the upgrade was met by the closure already.
            if !progress.isUpgraded {
                throw TransportFault(progress.hasConnected ? .reachedServer : .unreachable, error)
            }
        }
    }

    private func connect(to address: WebAddress, _ progress: ConnectProgress) async throws -> Upgrade {
        let group = MultiThreadedEventLoopGroup.singleton
        let limit = TimeAmount(timeout)
        let attempt: EventLoopFuture<Upgrade> = ClientBootstrap(group: group)
            .connectTimeout(limit)
            .channelOption(.socketOption(.tcp_nodelay), value: 1)
            .channelInitializer { channel in
                progress.began(on: channel)
                return channel.eventLoop.makeSucceededVoidFuture()
            }
            .connect(host: address.host, port: address.port)
            .flatMap { channel in
                progress.connected()
                return channel.eventLoop.flatSubmit { requestUpgrade(of: channel, to: address, progress) }
            }
        // The timer covers TLS and the upgrade as well as the connection.
        let timer = group.any().scheduleTask(in: limit) { progress.abandon(TransportFault(.timeOut, nil)) }
        defer { timer.cancel() }
        return try await withTaskCancellationHandler {
            try await progress.first(of: attempt, on: group.any())
        } onCancel: {
            progress.abandon(CancellationError())
        }
    }

    /// Asks for the upgrade on a channel that is connected and has no handler yet.
    private func requestUpgrade(
        of channel: any NIOCore.Channel, to address: WebAddress, _ progress: ConnectProgress
    ) -> EventLoopFuture<Upgrade> {
        do {
            if address.isSecure {
                // Without a name, the certificate must be made out to the address itself.
                let isIPAddress = (try? SocketAddress(ipAddress: address.host, port: address.port)) != nil
                try channel.pipeline.syncOperations.addHandler(
                    NIOSSLClientHandler(context: tls, serverHostname: isIPAddress ? nil : address.host))
            }
            return try Self.configureUpgrade(of: channel, to: address, progress)
        } catch {
            return channel.eventLoop.makeFailedFuture(error)
        }
    }

    private static func configureUpgrade(
        of channel: any NIOCore.Channel, to address: WebAddress, _ progress: ConnectProgress
    ) throws -> EventLoopFuture<Upgrade> {
        let upgrader = NIOTypedWebSocketClientUpgrader<Upgrade>(maxFrameSize: messageBytes) { channel, _ in
            channel.eventLoop.makeCompletedFuture {
                // An asynchronous channel that nobody takes would be a fault, so that none is made for nobody.
                guard progress.upgraded() else { return Upgrade.refused }
                try channel.pipeline.syncOperations.addHandler(
                    NIOWebSocketFrameAggregator(
                        minNonFinalFragmentSize: 0, maxAccumulatedFrameCount: fragments,
                        maxAccumulatedFrameSize: messageBytes))
                return Upgrade.accepted(try NIOAsyncChannel(wrappingChannelSynchronously: channel))
            }
        }
        let head = HTTPRequestHead(
            version: .http1_1, method: .GET, uri: address.target, headers: ["Host": address.authority])
        var configuration = NIOUpgradableHTTPClientPipelineConfiguration(
            upgradeConfiguration: NIOTypedHTTPClientUpgradeConfiguration<Upgrade>(
                upgradeRequestHead: head, upgraders: [upgrader],
                notUpgradingCompletionHandler: { channel in
                    channel.close(promise: nil)
                    return channel.eventLoop.makeSucceededFuture(.refused)
                }))
        configuration.leftOverBytesStrategy = .forwardBytes
        return try channel.pipeline.syncOperations.configureUpgradableHTTPClientPipeline(configuration: configuration)
    }
}

/// Why there is no connection.
struct TransportFault: Error {
    enum Kind: Sendable {
        case unreachable
        case timeOut
        /// The host answered, but TLS or HTTP failed.
        case reachedServer
        case refusedUpgrade
    }

    let kind: Kind
    let cause: (any Error)?

    init(_ kind: Kind, _ cause: (any Error)?) {
        self.kind = kind
        self.cause = cause
    }
}
