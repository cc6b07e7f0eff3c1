import CarillonBasics
import CarillonWire
import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import NIOWebSocket
import Synchronization
import TestSupport

/// A server that uses the true protocol over true sockets, with answers that the test decides.
final class ScriptedServer: Sendable {
    /// How a registration is answered.
    struct Answer: Sendable {
        var status = HTTPResponseStatus.created
        var headers: HTTPHeaders = [:]
        var body = Data()
    }

    let port: Int
    let isSecure: Bool
    /// The id that the server reports.
    let id: String
    /// Each connection that was upgraded, in order.
    let sockets: AsyncStream<ServerSocket>

    private let listener: any NIOCore.Channel
    private let connections: OpenChannels
    private let registrations: Registrations

    /// Binds a port that the system assigns to no other process, so that it is free again after its release.
    static func startOnStablePort() async throws -> ScriptedServer {
        try await start(port: FreePort.next())
    }

    static func start(
        port: Int = 0, tls: NIOSSLContext? = nil, upgrades: Bool = true, id: String = "server-1"
    ) async throws -> ScriptedServer {
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
            listener: listener, isSecure: tls != nil, id: id, sockets: sockets, registrations: registrations,
            connections: connections)
    }

    /// Another process can use a closed port for a moment.
    private static func bind(_ bootstrap: ServerBootstrap, _ port: Int) async throws -> any NIOCore.Channel {
        for _ in 0..<500 where port != 0 {
            do {
                return try await bootstrap.bind(host: "127.0.0.1", port: port).get()
            } catch let error as IOError where error.errnoCode == EADDRINUSE {
                try await Task.sleep(for: .milliseconds(20))
            }
        }
        return try await bootstrap.bind(host: "127.0.0.1", port: port).get()
    }

    private init(
        listener: any NIOCore.Channel, isSecure: Bool, id: String, sockets: AsyncStream<ServerSocket>,
        registrations: Registrations, connections: OpenChannels
    ) {
        self.listener = listener
        self.isSecure = isSecure
        self.id = id
        self.sockets = sockets
        self.registrations = registrations
        self.connections = connections
        port = listener.localAddress?.port ?? 0
        answerRegistrations(with: nil)
    }

    deinit { listener.close(promise: nil) }

    var address: String { "\(isSecure ? "https" : "http")://localhost:\(port)" }

    /// The reports of the registrations, in order.
    var received: [Registrations.Request] { requests(to: "POST /v1/devices") }

    func requests(to line: String) -> [Registrations.Request] {
        registrations.state.withLock { $0.received }.filter { $0.line == line }
    }

    /// Waits until the given number of requests of one kind arrived.
    func waitFor(_ count: Int, _ line: String) async {
        await withCheckedContinuation { continuation in
            let isThere = registrations.state.withLock { state in
                if state.received.count(where: { $0.line == line }) >= count { return true }
                state.waiters.append((count, line, continuation))
                return false
            }
            if isThere { continuation.resume() }
        }
    }

    /// Answers the next registrations as usual, and loses the answers.
    func loseRegistrations(_ areLost: Bool) { registrations.state.withLock { $0.areLost = areLost } }

    /// Decides the next answers to registrations; nil registers each as a new device.
    func answerRegistrations(with answer: Answer?) {
        let id = id
        let socket = "\(isSecure ? "wss" : "ws")://localhost:\(port)/"
        registrations.state.withLock { state in
            state.server = id
            state.description = ServerBody(
                server: id, socket: socket, endpoints: "\(address)/push/")
            state.answer = { number in
                if let answer { return answer }
                let device = RegisteredDevice(
                    id: "device-\(number)", credential: "secret-\(number)", socket: socket, server: id)
                return Answer(body: (try? JSONEncoder().encode(device)) ?? Data())
            }
        }
    }

    /// Decides the answers to deletions of devices: by the server, or by a relay in its place.
    func answerDeletions(with status: HTTPResponseStatus, byRelay isRelayed: Bool = false) {
        registrations.state.withLock { ($0.deletion, $0.isDeletionRelayed) = (status, isRelayed) }
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

    /// Ends every connection without a close frame.
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

/// The requests to `POST /v1/devices`.
final class Registrations: Sendable {
    struct Request: Sendable {
        var line: String
        var authorization: String?
        var body: Data

        /// The app and the secret in the body of a registration.
        var registration: (app: String?, secret: String?) {
            let body = JSONValue(parsing: Array(self.body))
            func text(_ name: String) -> String? { if case .string(let text)? = body?[name] { text } else { nil } }
            return (text("app"), text("registration"))
        }
    }

    struct State: Sendable {
        var received: [Request] = []
        var areLost = false
        /// The answer to `GET /v1/server`; nil for a server that does not know the path.
        var description: ServerBody?
        var deletion = HTTPResponseStatus.noContent
        var isDeletionRelayed = false
        /// The value of `Carillon-Server` in each answer.
        var server = ""
        var waiters: [(count: Int, line: String, continuation: CheckedContinuation<Void, Never>)] = []
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
            let answer = registrations.state.withLock { state -> ScriptedServer.Answer? in
                state.received.append(request)
                let count = state.received.count { $0.line == request.line }
                for waiter in state.waiters where waiter.line == request.line && waiter.count == count {
                    waiter.continuation.resume()
                }
                switch request.line {
                case "GET /v1/server":
                    guard let body = state.description, let data = try? JSONEncoder().encode(body) else {
                        return .init(status: .notFound)
                    }
                    return .init(status: .ok, body: data)
                case "DELETE /v1/device":
                    return .init(status: state.deletion)
                default:
                    let answer = state.answer?(count)
                    return state.areLost ? nil : answer
                }
            }
            guard let answer else { return context.close(promise: nil) }
            var headers = answer.headers
            let (server, isRelayed) = registrations.state.withLock {
                ($0.server, $0.isDeletionRelayed && request.line == "DELETE /v1/device")
            }
            if !isRelayed { headers.add(name: "Carillon-Server", value: server) }
            if answer.status.code >= 400, answer.body.first == UInt8(ascii: "{") {
                headers.add(name: "Content-Type", value: ProblemDocument.mediaType)
            }
            headers.add(name: "Content-Length", value: "\(answer.body.count)")
            context.write(
                wrapOutboundOut(.head(.init(version: .http1_1, status: answer.status, headers: headers))), promise: nil)
            context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: answer.body)))), promise: nil)
            context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        }
    }
}
