import Foundation
import NIOCore
import NIOHPACK
import NIOHTTP2
import NIOPosix
import NIOSSL
import Synchronization

/// A service that handles each request according to the script of a test, over true TLS and NIO's own HTTP/2. The state machine
/// of HTTP/2 ends the connection of a client that breaks the protocol.
final class ScriptedServer: Sendable {
    typealias Script = @Sendable (ServerConnection, ServerRequest) -> Void

    let port: Int
    private let listener: any NIOCore.Channel
    private let log = Mutex<[ServerRequest]>([])
    private let connectionLog = Mutex<[ServerConnection]>([])
    private let faultLog = Mutex<[String]>([])

    struct Options: Sendable {
        var settings: [HTTP2Setting] = [HTTP2Setting(parameter: .maxConcurrentStreams, value: 1000)]
        /// Called when only the headers of a request are there.
        var onHeaders: Script?
        var opensWindows = true
        /// Called when the client opens the window of a stream.
        var onWindow: (@Sendable (ServerConnection, _ stream: Int, _ bytes: Int) -> Void)?
        /// The handling of a new connection.
        var onConnect: (@Sendable (ServerConnection) -> Void)?
    }

    init(tls: NIOSSLContext, options: Options = Options(), port wanted: Int = 0, script: @escaping Script) async throws {
        let box = ServerBox()
        listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let connection = ServerConnection(options: options, script: script, server: box)
                    try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls))
                    var connectionOptions = NIOHTTP2Handler.ConnectionConfiguration()
                    connectionOptions.initialSettings = options.settings
                    var streamOptions = NIOHTTP2Handler.StreamConfiguration()
                    streamOptions.streamResetFrameRateLimit.maximumCount = 1_000_000
                    try channel.pipeline.syncOperations.addHandlers(
                        NIOHTTP2Handler(
                            mode: .server, connectionConfiguration: connectionOptions, streamConfiguration: streamOptions),
                        connection)
                }
            }
            .bind(host: "127.0.0.1", port: wanted).get()
        port = listener.localAddress?.port ?? 0
        box.server.withLock { $0 = self }
    }

    func close() async throws {
        for connection in connections { connection.close() }
        try await listener.close()
    }

    var requests: [ServerRequest] { log.withLock { $0 } }
    var connections: [ServerConnection] { connectionLog.withLock { $0 } }
    /// The violations of HTTP/2 by clients.
    var faults: [String] { faultLog.withLock { $0 } }

    func note(_ request: ServerRequest) { log.withLock { $0.append(request) } }
    /// Counts connections from 1.
    func note(_ connection: ServerConnection) -> Int {
        connectionLog.withLock {
            $0.append(connection)
            return $0.count
        }
    }
    func note(fault: String) { faultLog.withLock { $0.append(fault) } }
}

/// So that connections know the server, which has its port only after them.
final class ServerBox: Sendable {
    let server = Mutex<ScriptedServer?>(nil)
}

struct ServerRequest: Sendable {
    var connection: Int
    var stream: Int
    var headers: [String: String]
    var body: String
    /// The number of pending requests of the connection when this one arrived, including this one.
    var underWay: Int
    var path: String { headers[":path"] ?? "" }
    var token: String { String(path.split(separator: "/").last ?? "") }
}

/// `@unchecked Sendable`: the properties beside the mutex are used on the channel's loop only, to which the methods go.
final class ServerConnection: ChannelInboundHandler, @unchecked Sendable {
    typealias InboundIn = HTTP2Frame
    typealias OutboundOut = HTTP2Frame

    private let options: ScriptedServer.Options
    private let script: ScriptedServer.Script
    private let box: ServerBox
    private var channel: (any NIOCore.Channel)?
    private var open: [HTTP2StreamID: ServerRequest] = [:]
    private let seen = Mutex((number: 0, resets: [Int](), isClosed: false))
    var isClosed: Bool { seen.withLock { $0.isClosed } }
    var number: Int { seen.withLock { $0.number } }
    var resets: [Int] { seen.withLock { $0.resets } }

    init(options: ScriptedServer.Options, script: @escaping ScriptedServer.Script, server: ServerBox) {
        self.options = options
        self.script = script
        box = server
    }

    private var server: ScriptedServer? { box.server.withLock { $0 } }

    func handlerAdded(context: ChannelHandlerContext) { channel = context.channel }

    func channelActive(context: ChannelHandlerContext) {
        let number = server?.note(self) ?? 0
        seen.withLock { $0.number = number }
        context.fireChannelActive()
        options.onConnect?(self)
    }

    func channelInactive(context: ChannelHandlerContext) {
        seen.withLock { $0.isClosed = true }
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        switch frame.payload {
        case .headers(let headers):
            let all = Dictionary(headers.headers.map { ($0.name, $0.value) }, uniquingKeysWith: { $0 + "," + $1 })
            let request = ServerRequest(
                connection: number, stream: Int(frame.streamID), headers: all, body: "", underWay: open.count + 1)
            open[frame.streamID] = request
            options.onHeaders?(self, request)
            if headers.endStream { finish(frame.streamID) }
        case .data(let data):
            if case .byteBuffer(let bytes) = data.data { open[frame.streamID]?.body += String(buffer: bytes) }
            if options.opensWindows, case .byteBuffer(let bytes) = data.data, bytes.readableBytes > 0 {
                openWindow(0, by: bytes.readableBytes)
                if !data.endStream { openWindow(Int(frame.streamID), by: bytes.readableBytes) }
            }
            if data.endStream { finish(frame.streamID) }
        case .windowUpdate(let bytes):
            if frame.streamID != .rootStream { options.onWindow?(self, Int(frame.streamID), bytes) }
        case .rstStream:
            seen.withLock { $0.resets.append(Int(frame.streamID)) }
            open[frame.streamID] = nil
        default: break
        }
    }

    private func finish(_ id: HTTP2StreamID) {
        guard let request = open[id] else { return }
        server?.note(request)
        script(self, request)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if !(error is NIOSSLError), !(error is IOError), !(error is NIOHTTP2Errors.NoSuchStream),
            !(error is NIOHTTP2Errors.StreamClosed), !(error is NIOHTTP2Errors.IOOnClosedConnection)
        {
            server?.note(fault: "\(error)")
        }
        context.fireErrorCaught(error)
    }

    // MARK: Actions of a script

    private func write(_ frames: [HTTP2Frame]) {
        guard let channel else { return }
        channel.eventLoop.execute {
            for frame in frames { channel.write(frame, promise: nil) }
            channel.flush()
        }
    }

    /// - Parameter hasID: whether an `apns-id` is added where there is none.
    func answer(
        _ stream: Int, _ status: Int, _ headers: [(String, String)] = [], body: String = "", endsStream: Bool = true,
        hasID: Bool = true
    ) {
        // Before the answer is sent, after which the next request can arrive.
        channel?.eventLoop.execute { self.open[HTTP2StreamID(stream)] = nil }
        write(Self.frames(stream, status, headers, body: body, endsStream: endsStream, hasID: hasID))
    }

    private static func frames(
        _ stream: Int, _ status: Int, _ headers: [(String, String)] = [], body: String, endsStream: Bool = true,
        hasID: Bool = true
    ) -> [HTTP2Frame] {
        let id = HTTP2StreamID(stream)
        var fields = HPACKHeaders([(":status", String(status))] + headers)
        if hasID, !headers.contains(where: { $0.0 == "apns-id" }) {
            fields.add(name: "apns-id", value: "00000000-0000-0000-0000-\(String(format: "%012d", stream))")
        }
        var frames = [
            HTTP2Frame(
                streamID: id, payload: .headers(.init(headers: fields, endStream: body.isEmpty && endsStream)))
        ]
        if !body.isEmpty {
            frames.append(
                HTTP2Frame(
                    streamID: id,
                    payload: .data(.init(data: .byteBuffer(ByteBuffer(string: body)), endStream: endsStream))))
        }
        return frames
    }

    func continueBody(_ stream: Int, _ body: String, endsStream: Bool) {
        write([
            HTTP2Frame(
                streamID: HTTP2StreamID(stream),
                payload: .data(.init(data: .byteBuffer(ByteBuffer(string: body)), endStream: endsStream)))
        ])
    }

    func accept(_ request: ServerRequest) { answer(request.stream, 200) }

    func reject(_ request: ServerRequest, _ status: Int, _ reason: String) {
        answer(request.stream, status, body: "{\"reason\":\"\(reason)\"}")
    }

    /// Accepts a request and ends the connection with one write, so that the client reads both at once.
    func acceptAndGoAway(_ request: ServerRequest) {
        let goAway = HTTP2Frame(
            streamID: .rootStream,
            payload: .goAway(lastStreamID: HTTP2StreamID(request.stream), errorCode: .noError, opaqueData: nil))
        channel?.eventLoop.execute { self.open[HTTP2StreamID(request.stream)] = nil }
        write(Self.frames(request.stream, 200, body: "") + [goAway])
    }

    /// Rejects a request and ends the connection with one write, so that the client reads both at once.
    func rejectAndGoAway(_ request: ServerRequest, _ status: Int, _ reason: String) {
        let goAway = HTTP2Frame(
            streamID: .rootStream,
            payload: .goAway(lastStreamID: HTTP2StreamID(request.stream), errorCode: .noError, opaqueData: nil))
        channel?.eventLoop.execute { self.open[HTTP2StreamID(request.stream)] = nil }
        write(Self.frames(request.stream, status, body: "{\"reason\":\"\(reason)\"}") + [goAway])
    }

    /// Resets a stream and rejects a request with one write, so that the client reads both at once.
    func reject(_ request: ServerRequest, _ status: Int, _ reason: String, resetting stream: Int) {
        let reset = HTTP2Frame(streamID: HTTP2StreamID(stream), payload: .rstStream(.internalError))
        channel?.eventLoop.execute {
            self.open[HTTP2StreamID(request.stream)] = nil
            self.open[HTTP2StreamID(stream)] = nil
        }
        write([reset] + Self.frames(request.stream, status, body: "{\"reason\":\"\(reason)\"}"))
    }

    func reset(_ stream: Int, _ code: HTTP2ErrorCode) {
        write([HTTP2Frame(streamID: HTTP2StreamID(stream), payload: .rstStream(code))])
        channel?.eventLoop.execute { self.open[HTTP2StreamID(stream)] = nil }
    }

    func goAway(last: Int, _ code: HTTP2ErrorCode = .noError, reason: String = "") {
        write([
            HTTP2Frame(
                streamID: .rootStream,
                payload: .goAway(
                    lastStreamID: HTTP2StreamID(last), errorCode: code,
                    opaqueData: reason.isEmpty ? nil : ByteBuffer(string: "{\"reason\":\"\(reason)\"}")))
        ])
    }

    func settings(_ settings: [HTTP2Setting]) {
        write([HTTP2Frame(streamID: .rootStream, payload: .settings(.settings(settings)))])
    }

    func openWindow(_ stream: Int, by bytes: Int) {
        write([
            HTTP2Frame(streamID: HTTP2StreamID(stream), payload: .windowUpdate(windowSizeIncrement: bytes))
        ])
    }

    func close() {
        guard let channel else { return }
        channel.eventLoop.execute { channel.close(promise: nil) }
    }
}
