import CarillonWire
import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import NIOWebSocket
import Synchronization

/// A server that speaks the true protocol over true sockets, and whose every answer the test decides.
final class ScriptedServer: Sendable {
    /// How a registration is answered.
    struct Answer: Sendable {
        var status = HTTPResponseStatus.created
        var headers: HTTPHeaders = [:]
        var body = Data()
    }

    let port: Int
    let isSecure: Bool
    /// Each connection that was upgraded, in order.
    let sockets: AsyncStream<ServerSocket>

    private let listener: any NIOCore.Channel
    private let connections: OpenChannels
    private let registrations: Registrations

    /// A port that was given back may be somebody's for a moment: the system lends it to outgoing connections.
    private static func bind(_ bootstrap: ServerBootstrap, _ port: Int) async throws -> any Channel {
        for _ in 0..<200 {
            if let channel = try? await bootstrap.bind(host: "127.0.0.1", port: port).get() { return channel }
            try await Task.sleep(for: .milliseconds(20))
        }
        return try await bootstrap.bind(host: "127.0.0.1", port: port).get()
    }

    static func start(port: Int = 0, tls: NIOSSLContext? = nil, upgrades: Bool = true) async throws -> ScriptedServer {
        let (sockets, arrival) = AsyncStream.makeStream(of: ServerSocket.self)
        let registrations = Registrations()
        let connections = OpenChannels()
        let bootstrap = ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    connections.add(channel)
                    if let tls {
                        try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls))
                    }
                    let upgrader = NIOWebSocketServerUpgrader(
                        maxFrameSize: 1 << 20,
                        shouldUpgrade: { channel, _ in channel.eventLoop.makeSucceededFuture(upgrades ? [:] : nil) },
                        upgradePipelineHandler: { channel, _ in
                            channel.eventLoop.makeCompletedFuture {
                                let socket = ServerSocket(channel: channel)
                                try channel.pipeline.syncOperations.addHandler(ServerSocketHandler(socket))
                                arrival.yield(socket)
                            }
                        })
                    let http = NIOLoopBound(RegistrationHandler(registrations), eventLoop: channel.eventLoop)
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline(
                        withServerUpgrade: (
                            upgraders: [upgrader],
                            completionHandler: { $0.pipeline.syncOperations.removeHandler(http.value, promise: nil) }
                        ))
                    try channel.pipeline.syncOperations.addHandler(http.value)
                }
            }
        let listener = try await bind(bootstrap, port)
        return ScriptedServer(
            listener: listener, isSecure: tls != nil, sockets: sockets, registrations: registrations,
            connections: connections)
    }

    private init(
        listener: any NIOCore.Channel, isSecure: Bool, sockets: AsyncStream<ServerSocket>,
        registrations: Registrations, connections: OpenChannels
    ) {
        self.listener = listener
        self.isSecure = isSecure
        self.sockets = sockets
        self.registrations = registrations
        self.connections = connections
        port = listener.localAddress?.port ?? 0
        answerRegistrations(with: nil)
    }

    deinit { listener.close(promise: nil) }

    var address: String { "\(isSecure ? "https" : "http")://localhost:\(port)" }

    /// What the registrations said, in order.
    var received: [Registrations.Request] { registrations.state.withLock { $0.received } }

    /// Decides the next answers to registrations; nil registers each as a new device.
    func answerRegistrations(with answer: Answer?) {
        let socket = "\(isSecure ? "wss" : "ws")://localhost:\(port)/"
        registrations.state.withLock { state in
            state.answer = { number in
                if let answer { return answer }
                let device = RegisteredDevice(id: "device-\(number)", credential: "secret-\(number)", socket: socket)
                return Answer(body: (try? JSONEncoder().encode(device)) ?? Data())
            }
        }
    }

    /// Waits for the next connection.
    func nextSocket() async throws -> ServerSocket {
        for await socket in sockets { return socket }
        throw ServerSocket.Ended()
    }

    /// Waits for the next connection and its hello, and answers it.
    func welcome(keepAliveSeconds: Int = 60) async throws -> (socket: ServerSocket, hello: ClientFrame.Hello) {
        let socket = try await nextSocket()
        guard case .hello(let hello) = try await socket.receive() else { throw ServerSocket.Ended() }
        socket.send(.hello(.init(uaid: "", carillon: .init(keepAliveSeconds: keepAliveSeconds))))
        return (socket, hello)
    }

    /// Ends every connection without a word.
    func dropConnections() { connections.closeAll() }

    func stop() async throws {
        try await listener.close()
        connections.closeAll()
    }
}

final class OpenChannels: Sendable {
    private let channels = Mutex<[any NIOCore.Channel]>([])

    func add(_ channel: any NIOCore.Channel) { channels.withLock { $0.append(channel) } }

    func closeAll() {
        for channel in channels.withLock({ $0 }) { channel.close(promise: nil) }
    }
}

/// What came to `POST /v1/devices`.
final class Registrations: Sendable {
    struct Request: Sendable {
        var line: String
        var authorization: String?
        var body: Data
    }

    struct State: Sendable {
        var received: [Request] = []
        var answer: (@Sendable (_ number: Int) -> ScriptedServer.Answer)?
    }

    let state = Mutex(State())
}

private final class RegistrationHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let registrations: Registrations
    private var request: Registrations.Request?

    init(_ registrations: Registrations) { self.registrations = registrations }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head):
            request = Registrations.Request(
                line: "\(head.method) \(head.uri)", authorization: head.headers.first(name: "Authorization"),
                body: Data())
        case .body(let bytes):
            request?.body.append(contentsOf: bytes.readableBytesView)
        case .end:
            guard let request else { return }
            let answer = registrations.state.withLock { state in
                state.received.append(request)
                return state.answer?(state.received.count)
            }
            guard let answer else { return context.close(promise: nil) }
            var headers = answer.headers
            headers.add(name: "Content-Length", value: "\(answer.body.count)")
            context.write(
                wrapOutboundOut(.head(.init(version: .http1_1, status: answer.status, headers: headers))), promise: nil)
            context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: answer.body)))), promise: nil)
            context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        }
    }
}
