import NIOCore
import NIOHTTP1
import NIOWebSocket

/// WebSocket connections (RFC 6455), over TLS for `wss:` addresses.
extension NIOTransport {
    /// The largest message that a server may send, in bytes.
    static let messageBytes = 1 << 20
    /// The most fragments of one message.
    static let fragments = 1024

    private enum Upgrade: Sendable {
        case accepted(NIOAsyncChannel<WebSocketFrame, WebSocketFrame>)
        case refused
    }

    func withConnection(
        to address: WebAddress, _ body: (WebSocketConnection) async -> Void
    ) async throws(TransportFault) {
        let progress = ConnectProgress()
        do {
            let upgrade = try await open(address, progress) { try Self.upgrade($0, to: address, progress) }
            guard case .accepted(let channel) = upgrade else {
                throw TransportFault(.refusedUpgrade, progress.status.map(UpgradeRefusal.init))
            }
            try await channel.executeThenClose { inbound, _ in
                await body(WebSocketConnection(channel: channel.channel, inbound: inbound))
            }
        } catch {
            // The closure has handled faults after the upgrade.
            if error is TransportFault || !progress.isUpgraded { throw fault(error, progress) }
        }
    }

    private static func upgrade(
        _ channel: any NIOCore.Channel, to address: WebAddress, _ progress: ConnectProgress
    ) throws -> EventLoopFuture<Upgrade> {
        let upgrader = NIOTypedWebSocketClientUpgrader<Upgrade>(maxFrameSize: messageBytes) { channel, _ in
            channel.eventLoop.makeCompletedFuture {
                // If the attempt was abandoned, no asynchronous channel is made, because a channel without a reader is a fault in
                // NIO.
                guard progress.upgraded() else { return Upgrade.refused }
                try channel.pipeline.syncOperations.addHandler(
                    NIOWebSocketFrameAggregator(
                        minNonFinalFragmentSize: 0, maxAccumulatedFrameCount: fragments,
                        maxAccumulatedFrameSize: messageBytes))
                return Upgrade.accepted(try NIOAsyncChannel(wrappingChannelSynchronously: channel))
            }
        }
        try channel.pipeline.syncOperations.addHandler(HandshakeStatus { progress.answered(status: $0) })
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
