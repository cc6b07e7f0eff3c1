import CarillonWire
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization

/// The demo's backend: it receives a channel's endpoint from the app, registers a watch at the server, and answers the server's
/// pings. It loses its state when it is stopped.
final class DemoBackend: Sendable {
    private struct State {
        var endpoint: String?
        var listener: (any NIOCore.Channel)?
        var port = 0
    }

    private let state = Mutex(State())
    /// Emits a value after each successful ping.
    let answeredPings: AsyncStream<Void>
    private let pingAnswered: AsyncStream<Void>.Continuation

    init() {
        (answeredPings, pingAnswered) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    var address: String { "http://127.0.0.1:\(state.withLock { $0.port })" }

    func start() async throws {
        let bootstrap = ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                    try channel.pipeline.syncOperations.addHandler(Handler(self))
                }
            }
        let known = state.withLock { $0.port }
        let listener =
            try await known == 0 ? Self.bindAnywhere(bootstrap) : bootstrap.bind(host: "127.0.0.1", port: known).get()
        state.withLock { state in
            state.listener = listener
            state.port = listener.localAddress?.port ?? 0
        }
    }

    /// Binds a port below the range of ephemeral ports, because the backend later restarts at the same port.
    private static func bindAnywhere(_ bootstrap: ServerBootstrap) async throws -> any NIOCore.Channel {
        for port in (10_000..<20_000).shuffled().prefix(100) {
            if let listener = try? await bootstrap.bind(host: "127.0.0.1", port: port).get() { return listener }
        }
        return try await bootstrap.bind(host: "127.0.0.1", port: 0).get()
    }

    /// Closes the listener and removes the stored endpoint.
    func stop() async throws {
        try await state.withLock { $0.listener.take() }?.close()
        state.withLock { $0.endpoint = nil }
    }

    /// Stores the app's endpoint, and registers a watch with a ping every second.
    private func take(_ endpoint: String) async throws {
        state.withLock { $0.endpoint = endpoint }
        let watch = PutWatch(pingAddress: "\(address)/ping", pingIntervalSeconds: 1)
        let client = APIClient(server: "", key: nil)
        _ = try await client.call(.PUT, "\(endpoint)/watch", watch, as: WatchBody.self)
    }

    /// Returns 410 if the token is lost.
    private func answerToPing() -> HTTPResponseStatus {
        guard state.withLock({ $0.endpoint }) != nil else { return .gone }
        pingAnswered.yield()
        return .noContent
    }

    private final class Handler: ChannelInboundHandler {
        typealias InboundIn = HTTPServerRequestPart
        typealias OutboundOut = HTTPServerResponsePart

        private let backend: DemoBackend
        private var path = ""
        private var body = ByteBuffer()

        init(_ backend: DemoBackend) { self.backend = backend }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch Self.unwrapInboundIn(data) {
            case .head(let head):
                path = head.uri
                body.clear()
            case .body(var bytes):
                body.writeBuffer(&bytes)
            case .end:
                guard path == "/token" else { return answer(backend.answerToPing(), context) }
                let endpoint = String(buffer: body)
                let backend = backend
                let taken = context.eventLoop.makeFutureWithTask { try await backend.take(endpoint) }
                taken.assumeIsolated().whenComplete { result in
                    let isTaken = if case .success = result { true } else { false }
                    self.answer(isTaken ? .noContent : .serviceUnavailable, context)
                }
            }
        }

        private func answer(_ status: HTTPResponseStatus, _ context: ChannelHandlerContext) {
            let head = HTTPResponseHead(version: .http1_1, status: status, headers: ["connection": "close"])
            context.write(Self.wrapOutboundOut(.head(head)), promise: nil)
            let written = context.eventLoop.makePromise(of: Void.self)
            context.writeAndFlush(Self.wrapOutboundOut(.end(nil)), promise: written)
            written.futureResult.assumeIsolated().whenComplete { _ in context.close(promise: nil) }
        }
    }
}
