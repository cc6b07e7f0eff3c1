import CarillonBasics
import NIOCore
import NIOPosix
import Synchronization

/// The WebSocket of a phone.
///
/// The socket sends pings, which the server answers in the order of its frames. So each frame has a moment after which the server wrote it.
final class ScenarioSocket: Sendable {
    struct Frame: Sendable {
        var json: JSONValue
        var at: Int64
        var writtenAfter: Int64
    }

    private struct State {
        /// When the pings were sent that have no answer.
        var pings: [Int64] = []
        var writtenAfter: Int64
        var asked: [Int: CheckedContinuation<JSONValue?, Never>] = [:]
        var lastQuestion = 0
        var isOver = false
        var end = ""
    }

    /// The state that the event loop and the phone use.
    private final class Peer: Sendable {
        let state: Mutex<State>
        let now: @Sendable () -> Int64
        let frames: AsyncStream<Frame>
        let output: AsyncStream<Frame>.Continuation

        init(now: @escaping @Sendable () -> Int64) {
            self.now = now
            state = Mutex(State(writtenAfter: now()))
            (frames, output) = AsyncStream.makeStream(of: Frame.self)
        }

        func received(_ text: [UInt8]) {
            let at = now()
            // The answer to a ping.
            if text == Array("{}".utf8) {
                return state.withLock { state in
                    if !state.pings.isEmpty { state.writtenAfter = state.pings.removeFirst() }
                }
            }
            guard let json = JSONValue(parsing: text) else { return }
            if json["messageType"] == .string("answer"), case .integer(let question)? = json["id"] {
                state.withLock { $0.asked.removeValue(forKey: question) }?.resume(returning: json)
            } else {
                output.yield(Frame(json: json, at: at, writtenAfter: state.withLock { $0.writtenAfter }))
            }
        }

        /// - Parameter reason: Nil if the connection just ended.
        func ended(_ reason: String?) {
            let asked = state.withLock { state in
                if let reason { state.end = reason }
                state.isOver = true
                defer { state.asked = [:] }
                return Array(state.asked.values)
            }
            for continuation in asked { continuation.resume(returning: nil) }
            output.finish()
        }
    }

    private let peer: Peer
    private let channel: any NIOCore.Channel

    private init(_ peer: Peer, _ channel: any NIOCore.Channel) {
        self.peer = peer
        self.channel = channel
    }

    static func open(port: Int, now: @escaping @Sendable () -> Int64) async throws -> ScenarioSocket {
        let peer = Peer(now: now)
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Reader(peer))
                }
            }
            .connect(host: "127.0.0.1", port: port).get()
        let socket = ScenarioSocket(peer, channel)
        socket.write(
            Array(
                ("GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                    + "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n").utf8))
        return socket
    }

    // MARK: Received frames

    /// The frames that are not answers to pings and requests. They end with the socket.
    var frames: AsyncStream<Frame> { peer.frames }

    var isOver: Bool { peer.state.withLock { $0.isOver } }

    /// The reason of the server for the end of the socket, if it sent one.
    var end: String { peer.state.withLock { $0.end } }

    // MARK: Sent frames

    func send(_ text: String) { write(Self.frame(0x1, Array(text.utf8))) }

    func ping() {
        let now = peer.now()
        peer.state.withLock { $0.pings.append(now) }
        send("{}")
    }

    /// Sends a request frame, and returns the status and the body of the answer; nil if the socket ended before.
    func ask(_ method: String, _ path: String, _ body: String) async -> (status: Int, body: JSONValue?)? {
        let answer: JSONValue? = await withCheckedContinuation { continuation in
            let question = peer.state.withLock { state -> Int? in
                guard !state.isOver else { return nil }
                state.lastQuestion += 1
                state.asked[state.lastQuestion] = continuation
                return state.lastQuestion
            }
            guard let question else { return continuation.resume(returning: nil) }
            send(#"{"messageType":"request","id":\#(question),"method":"\#(method)","path":"\#(path)","body":\#(body)}"#)
        }
        guard let answer, case .integer(let status)? = answer["status"] else { return nil }
        return (status, answer["body"])
    }

    /// Waits a moment until the server has read the sent frames, and closes the socket.
    func close() async {
        ping()
        let deadline = peer.now() + 2000
        while peer.state.withLock({ !$0.pings.isEmpty && !$0.isOver }), peer.now() < deadline, !Task.isCancelled {
            try? await Task.sleep(for: .milliseconds(2))
        }
        write(Self.frame(0x8, []))
        channel.eventLoop.scheduleTask(in: .seconds(2)) { [channel] in channel.close(promise: nil) }
        try? await channel.closeFuture.get()
    }

    private func write(_ bytes: [UInt8]) { channel.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil) }

    /// Returns a frame that is masked with zeros.
    private static func frame(_ opcode: UInt8, _ payload: [UInt8]) -> [UInt8] {
        var frame: [UInt8] = [0x80 | opcode]
        if payload.count < 126 {
            frame.append(0x80 | UInt8(payload.count))
        } else {
            frame += [0x80 | 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
        }
        return frame + [0, 0, 0, 0] + payload
    }

    // MARK: The bytes

    /// Finds the frames of the server.
    private final class Reader: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        private let peer: Peer
        private var bytes: [UInt8] = []
        private var isUpgraded = false

        init(_ peer: Peer) { self.peer = peer }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            bytes += Self.unwrapInboundIn(data).readableBytesView
            if !isUpgraded {
                guard let end = bytes.firstRange(of: Array("\r\n\r\n".utf8)) else { return }
                let head = String(decoding: bytes[..<end.lowerBound], as: UTF8.self)
                guard head.hasPrefix("HTTP/1.1 101") else {
                    peer.ended("no socket: \(head)")
                    return context.close(promise: nil)
                }
                bytes.removeSubrange(..<end.upperBound)
                isUpgraded = true
            }
            while let (opcode, payload) = next() {
                switch opcode {
                case 0x1: peer.received(payload)
                case 0x8:
                    let code = payload.prefix(2).reduce(0) { $0 << 8 | Int($1) }
                    peer.ended("\(code) \(String(decoding: payload.dropFirst(2), as: UTF8.self))")
                    context.close(promise: nil)
                case 0x9:
                    context.writeAndFlush(NIOAny(ByteBuffer(bytes: ScenarioSocket.frame(0xA, payload))), promise: nil)
                default: break
                }
            }
        }

        private func next() -> (opcode: UInt8, payload: [UInt8])? {
            guard bytes.count >= 2 else { return nil }
            var (length, start) = (Int(bytes[1] & 0x7F), 2)
            if length > 125 {
                start += length == 126 ? 2 : 8
                guard bytes.count >= start else { return nil }
                length = bytes[2..<start].reduce(0) { $0 << 8 | Int($1) }
            }
            guard bytes.count >= start + length else { return nil }
            defer { bytes.removeFirst(start + length) }
            return (bytes[0] & 0x0F, Array(bytes[start..<start + length]))
        }

        func channelInactive(context: ChannelHandlerContext) {
            peer.ended(nil)
            context.fireChannelInactive()
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
}
