import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import Synchronization

/// A backend over true sockets, that answers each request with the bytes that the test decides.
final class ScriptedBackend: Sendable {
    enum Answer: Sendable {
        /// These bytes, and then the end of the connection.
        case bytes(String)
        /// These bytes, and then nothing for ever.
        case stall(String)
        /// These bytes, and then the same piece for ever, as fast as it is taken.
        case flood(String, piece: Int)
        /// One byte of these at a time.
        case trickle(String)
        /// 204 after a while. It counts as answered before its first byte is sent.
        case late(milliseconds: Int64)

        static func status(_ status: Int, headers: String = "") -> Answer {
            .bytes("HTTP/1.1 \(status) Status\r\n\(headers)Content-Length: 0\r\n\r\n")
        }
    }

    struct Received: Sendable {
        var head: HTTPRequestHead
        var body: [UInt8]

        var text: String { String(decoding: body, as: UTF8.self) }
    }

    private struct State {
        var answer: Answer
        var received: [Received] = []
        var connections = 0
        var underWay = 0
        var mostUnderWay = 0
        var waiters: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state: Mutex<State>
    private let listener: any Channel

    let port: Int
    var received: [Received] { state.withLock { $0.received } }
    var connections: Int { state.withLock { $0.connections } }
    /// The most requests that were being answered at one moment.
    var mostUnderWay: Int { state.withLock { $0.mostUnderWay } }

    var answer: Answer {
        get { state.withLock { $0.answer } }
        set { state.withLock { $0.answer = newValue } }
    }

    private init(_ listener: any Channel, _ shared: Shared) {
        self.listener = listener
        port = listener.localAddress?.port ?? 0
        self.state = Mutex(State(answer: shared.answer))
        shared.backend.withLock { $0 = Weak(self) }
    }

    private final class Shared: Sendable {
        let answer: Answer
        let backend = Mutex(Weak(nil))
        init(_ answer: Answer) { self.answer = answer }
    }

    private struct Weak: Sendable {
        weak var value: ScriptedBackend?
        init(_ value: ScriptedBackend?) { self.value = value }
    }

    static func start(
        _ answer: Answer = .status(204), tls: NIOSSLContext? = nil, host: String = "127.0.0.1", port: Int = 0
    ) async throws -> ScriptedBackend {
        let shared = Shared(answer)
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.autoRead, value: true)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    shared.backend.withLock { $0.value }?.state.withLock { $0.connections += 1 }
                    let pipeline = channel.pipeline.syncOperations
                    if let tls { try pipeline.addHandler(NIOSSLServerHandler(context: tls)) }
                    try pipeline.addHandler(ByteToMessageHandler(HTTPRequestDecoder()))
                    try pipeline.addHandler(BackendHandler { shared.backend.withLock { $0.value } })
                }
            }
            .bind(host: host, port: port).get()
        return ScriptedBackend(listener, shared)
    }

    deinit { listener.close(promise: nil) }

    func stop() async throws { try await listener.close().get() }

    /// Waits until the given number of requests have arrived.
    func received(_ count: Int) async -> [Received] {
        await withCheckedContinuation { continuation in
            let isThere = state.withLock { state in
                if state.received.count >= count { return true }
                state.waiters.append((count, continuation))
                return false
            }
            if isThere { continuation.resume() }
        }
        return received
    }

    fileprivate func began(_ request: Received) -> Answer {
        let (answer, reached) = state.withLock { state in
            state.received.append(request)
            state.underWay += 1
            state.mostUnderWay = max(state.mostUnderWay, state.underWay)
            let reached = state.waiters.filter { $0.count <= state.received.count }
            state.waiters.removeAll { $0.count <= state.received.count }
            return (state.answer, reached)
        }
        for waiter in reached { waiter.continuation.resume() }
        return answer
    }

    fileprivate func ended() { state.withLock { $0.underWay -= 1 } }
}

private final class BackendHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = ByteBuffer

    private let backend: () -> ScriptedBackend?
    private var request: ScriptedBackend.Received?
    private var isAnswering = false

    init(_ backend: @escaping () -> ScriptedBackend?) { self.backend = backend }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch Self.unwrapInboundIn(data) {
        case .head(let head): request = .init(head: head, body: [])
        case .body(let bytes): request?.body += Array(bytes.readableBytesView)
        case .end:
            guard let request, let answer = backend()?.began(request) else { return context.close(promise: nil) }
            isAnswering = true
            give(answer, context)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        if isAnswering { backend()?.ended() }
        isAnswering = false
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    private func give(_ answer: ScriptedBackend.Answer, _ context: ChannelHandlerContext) {
        switch answer {
        case .bytes(let text):
            let loop = context.eventLoop.assumeIsolated()
            context.writeAndFlush(Self.wrapOutboundOut(ByteBuffer(string: text)))
                .assumeIsolated().whenComplete { _ in
                    _ = loop.scheduleTask(in: .milliseconds(20)) { context.close(promise: nil) }
                }
        case .stall(let text):
            context.writeAndFlush(Self.wrapOutboundOut(ByteBuffer(string: text)), promise: nil)
        case .flood(let text, let piece):
            context.writeAndFlush(Self.wrapOutboundOut(ByteBuffer(string: text)), promise: nil)
            flood(ByteBuffer(repeating: UInt8(ascii: "x"), count: piece), context)
        case .trickle(let text):
            trickle(text.utf8[...], context)
        case .late(let milliseconds):
            context.eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(milliseconds)) {
                self.channelInactive(context: context)
                self.give(.status(204), context)
            }
        }
    }

    private func flood(_ piece: ByteBuffer, _ context: ChannelHandlerContext) {
        guard context.channel.isActive else { return }
        context.writeAndFlush(Self.wrapOutboundOut(piece)).assumeIsolated().whenSuccess {
            // A write that is done at once would begin the next one inside itself.
            context.eventLoop.assumeIsolated().execute { self.flood(piece, context) }
        }
    }

    private func trickle(_ rest: Substring.UTF8View, _ context: ChannelHandlerContext) {
        guard let first = rest.first, context.channel.isActive else { return }
        context.writeAndFlush(Self.wrapOutboundOut(ByteBuffer(bytes: [first])), promise: nil)
        context.eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(50)) {
            self.trickle(rest.dropFirst(), context)
        }
    }
}
