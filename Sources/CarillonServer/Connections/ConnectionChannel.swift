import CarillonWire
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1
import NIOWebSocket

/// Sets up each accepted connection: a WebSocket handshake on `/` becomes a ``SocketHandler``, for which no task is
/// kept; everything else is HTTP, answered by Hummingbird's responder.
struct ConnectionChannel: ServerChildChannel, HTTPChannelHandler {
    enum Negotiated: Sendable {
        case http(NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>)
        case socket
    }

    struct Value: ServerChildChannelValue {
        let channel: any Channel
        let requestGuard: NIOLoopBound<RequestGuard>
        let negotiated: EventLoopFuture<Negotiated>
    }

    let responder: Responder
    let sockets: SocketHandler.Shared
    let loops: [ObjectIdentifier: LoopContext]
    let readiness: Readiness

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        channel.eventLoop.makeCompletedFuture {
            var limits = NIOHTTPDecoderLimitConfiguration()
            limits.maxHeaderListSize = ConnectionLimits.headBytes
            limits.maxHeaderFieldSize = ConnectionLimits.headBytes
            limits.maxHeaderFieldCount = ConnectionLimits.headFields
            let encoder = HTTPResponseEncoder()
            let decoder = ByteToMessageHandler(
                HTTPRequestDecoder(leftOverBytesStrategy: .forwardBytes, limitConfiguration: limits))
            let requestGuard = RequestGuard(
                headSeconds: sockets.settings.requestHeadSeconds, bodySeconds: sockets.settings.requestBodySeconds,
                admitsSocket: sockets.population.admits)
            let upgrade = NIOTypedHTTPServerUpgradeHandler(
                httpEncoder: encoder, extraHTTPHandlers: [decoder, requestGuard],
                upgradeConfiguration: .init(upgraders: [upgrader]) { channel in
                    channel.eventLoop.makeCompletedFuture { .http(try self.setUpHTTP(channel, logger)) }
                })
            let pipeline = channel.pipeline.syncOperations
            try pipeline.addHandlers([encoder, decoder, requestGuard, upgrade])
            // One that came too late was not told that the server stops, and would not be waited for.
            if !readiness.isReady { channel.close(promise: nil) }
            return Value(
                channel: channel, requestGuard: NIOLoopBound(requestGuard, eventLoop: channel.eventLoop),
                negotiated: upgrade.upgradeResultFuture)
        }
    }

    func handle(value: Value, logger: Logger) async {
        value.channel.eventLoop.execute { value.requestGuard.value.isTakenUp = true }
        guard case .http(let channel) = try? await value.negotiated.get() else { return }
        await withTaskExecutorPreference(loop(of: value.channel).executor) {
            await handleHTTP(asyncChannel: channel, logger: logger)
        }
    }

    private var upgrader: NIOTypedWebSocketServerUpgrader<Negotiated> {
        NIOTypedWebSocketServerUpgrader(
            maxFrameSize: Limits.clientFrameBytes, enableAutomaticErrorHandling: false,
            shouldUpgrade: { channel, head in
                // The guard has let nothing else through than what is taken.
                var headers = HTTPHeaders()
                // Mozilla's clients offer this; a client that insists on an answer gets one.
                if head.headers[canonicalForm: "sec-websocket-protocol"].contains("push-notification") {
                    headers.add(name: "sec-websocket-protocol", value: "push-notification")
                }
                return channel.eventLoop.makeSucceededFuture(headers)
            },
            upgradePipelineHandler: { channel, _ in
                channel.eventLoop.makeCompletedFuture {
                    let handler = SocketHandler(shared: sockets, loop: loop(of: channel), eventLoop: channel.eventLoop)
                    try channel.pipeline.syncOperations.addHandler(handler)
                    try channel.syncOptions?.setOption(.recvAllocator, value: SocketReceiveAllocator())
                    return .socket
                }
            })
    }

    private func setUpHTTP(
        _ channel: any Channel, _ logger: Logger
    ) throws -> NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart> {
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(HTTP1ToHTTPServerCodec(secure: false))
        try pipeline.addHandler(
            HTTPConnectionStateHandler(idleTimeout: .seconds(sockets.settings.idleSeconds), logger: logger))
        return try NIOAsyncChannel(
            wrappingChannelSynchronously: channel, configuration: .init(isOutboundHalfClosureEnabled: true))
    }

    private func loop(of channel: any Channel) -> LoopContext {
        guard let loop = loops[ObjectIdentifier(channel.eventLoop)] else {
            preconditionFailure("a connection is on an event loop of the server's group")
        }
        return loop
    }
}
