import CarillonWire
import NIOCore
import NIOHTTP1

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Watches over the time and the shape of HTTP requests, before anybody knows who sends them.
///
/// A head and a body that do not arrive in time end the connection with 408. What is not HTTP is answered with 400 or
/// 431. When an answer is complete before the request is, the rest of the request is not read: the connection is
/// closed after the answer. A body that breaks off fails the reading of it, so that a part never passes for the whole.
/// Requests that come before the last one was answered are held back, and a peer that does not read is let go.
final class RequestGuard: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    private enum Phase {
        case awaitingHead
        case reading
        case read
        /// The answer was given early; nothing is read or written any more.
        case lingering
    }

    private let headTime: TimeAmount
    private let bodyTime: TimeAmount
    private let admitsSocket: () -> Bool
    private var phase = Phase.awaitingHead
    private var isAnswering = false
    /// Whether somebody answers the requests of this connection.
    var isTakenUp = false
    private var closesAfterAnswer = false
    private var isStopping = false
    /// The last answer is on its way; the connection is closed when it is out.
    private var isClosingAfterFlush = false
    private var held: [HTTPServerRequestPart] = []
    private var deadline: Scheduled<Void>?
    private var stall: Scheduled<Void>?

    private static let heldParts = 1000

    /// - Parameter admitsSocket: Whether one more WebSocket may come in.
    init(headSeconds: Int, bodySeconds: Int, admitsSocket: @escaping () -> Bool) {
        headTime = .seconds(Int64(headSeconds))
        bodyTime = .seconds(Int64(bodySeconds))
        self.admitsSocket = admitsSocket
    }

    func handlerAdded(context: ChannelHandlerContext) {
        setDeadline(headTime, context)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        clearDeadline()
        stall?.cancel()
    }

    func channelInactive(context: ChannelHandlerContext) {
        clearDeadline()
        stall?.cancel()
        context.fireChannelInactive()
    }

    // MARK: The request

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if case .lingering = phase { return }
        let part = Self.unwrapInboundIn(data)
        if case .read = phase {
            guard held.count < Self.heldParts else { return context.close(promise: nil) }
            return held.append(part)
        }
        receive(part, context)
    }

    private func receive(_ part: HTTPServerRequestPart, _ context: ChannelHandlerContext) {
        switch part {
        case .head(let head):
            clearDeadline()
            phase = .reading
            received(head, context)
        case .body:
            context.fireChannelRead(Self.wrapInboundOut(part))
        case .end:
            phase = .read
            clearDeadline()
            context.fireChannelRead(Self.wrapInboundOut(part))
        }
    }

    /// The last request was answered whole: the next one may be read.
    private func readOn(_ context: ChannelHandlerContext) {
        phase = .awaitingHead
        guard !held.isEmpty else { return }
        while !held.isEmpty {
            if case .read = phase { break }
            receive(held.removeFirst(), context)
        }
        context.fireChannelReadComplete()
        if case .reading = phase, deadline == nil { setDeadline(bodyTime, context) }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        if case .reading = phase, deadline == nil { setDeadline(isStopping ? .seconds(2) : bodyTime, context) }
        context.fireChannelReadComplete()
    }

    private func received(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
        var head = head
        let codings = head.headers[canonicalForm: "transfer-encoding"]
        guard codings.isEmpty || codings.map({ $0.lowercased() }) == ["chunked"] else {
            return refuse(Refusal(.requestInvalid, "The only Transfer-Encoding understood is chunked."), context)
        }
        closesAfterAnswer = isStopping || !head.isKeepAlive
        if head.headers.contains(name: "upgrade"), !(head.isSocketHandshake && admitsSocket()) {
            // The parser takes what follows such a request for another protocol; the routes answer this one.
            head.headers.remove(name: "upgrade")
            closesAfterAnswer = true
        }
        if head.headers[canonicalForm: "expect"].contains(where: { $0.lowercased() == "100-continue" }),
            head.version == .http1_1, head.mayContinue
        {
            let interim = HTTPResponseHead(version: .http1_1, status: .continue)
            context.writeAndFlush(Self.wrapOutboundOut(.head(interim)), promise: nil)
        }
        context.fireChannelRead(Self.wrapInboundOut(.head(head)))
    }

    /// The server stops: a connection that waits for a request is closed, another after its answer.
    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is ChannelShouldQuiesceEvent {
            isStopping = true
            closesAfterAnswer = true
            switch phase {
            case .awaitingHead:
                return context.close(promise: nil)
            case .reading, .read:
                if !isTakenUp { giveUp(context) }
                if case .reading = phase {
                    clearDeadline()
                    setDeadline(.seconds(2), context)
                }
            case .lingering:
                break
            }
            if !context.channel.isWritable { awaitReader(context) }
        }
        context.fireUserInboundEventTriggered(event)
    }

    /// A connection that was accepted while the server began to stop may never reach the routes.
    private func giveUp(_ context: ChannelHandlerContext) {
        context.eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(250)) {
            if self.isTakenUp || self.isAnswering { return }
            self.refuse(Refusal(.stopping, "The server is stopping; ask again soon.", retryAfterSeconds: 2), context)
        }
    }

    // MARK: The answer

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        if case .lingering = phase {
            promise?.fail(ChannelError.ioOnClosedChannel)
            return
        }
        switch Self.unwrapOutboundIn(data) {
        case .head(var head):
            isAnswering = true
            if case .reading = phase { closesAfterAnswer = true }
            if closesAfterAnswer { head.headers.replaceOrAdd(name: "connection", value: "close") }
            context.write(Self.wrapOutboundOut(.head(head)), promise: promise)
        case .body:
            context.write(data, promise: promise)
        case .end:
            isAnswering = false
            guard closesAfterAnswer else {
                context.write(data, promise: promise)
                if case .read = phase { readOn(context) }
                return
            }
            let written = context.eventLoop.makePromise(of: Void.self)
            written.futureResult.cascade(to: promise)
            context.write(data, promise: written)
            if case .read = phase { closeAfter(written.futureResult, context) } else { linger(context) }
        }
    }

    /// Closing at once would throw away what the peer has not read yet.
    private func closeAfter(_ written: EventLoopFuture<Void>, _ context: ChannelHandlerContext) {
        phase = .lingering
        isClosingAfterFlush = true
        clearDeadline()
        context.flush()
        written.assumeIsolated().whenComplete { _ in
            self.isClosingAfterFlush = false
            context.close(promise: nil)
        }
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        guard mode == .all, isClosingAfterFlush else { return context.close(mode: mode, promise: promise) }
        context.channel.closeFuture.cascade(to: promise)
    }

    // MARK: A peer that does not read

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        stall?.cancel()
        stall = nil
        if !context.channel.isWritable { awaitReader(context) }
        context.fireChannelWritabilityChanged()
    }

    private func awaitReader(_ context: ChannelHandlerContext) {
        stall?.cancel()
        stall = context.eventLoop.assumeIsolated().scheduleTask(in: isStopping ? .seconds(2) : .seconds(30)) {
            self.isClosingAfterFlush = false
            context.close(promise: nil)
        }
    }

    // MARK: Faults

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if !isAnswering, let refusal = Self.refusal(for: error) { refuse(refusal, context) }
        context.fireErrorCaught(error)
    }

    private static func refusal(for error: any Error) -> Refusal? {
        switch error {
        case HTTPParserError.headerOverflow:
            Refusal(.headersTooLarge, "The head of a request may have \(ConnectionLimits.headBytes) bytes in all.")
        case is HTTPParserError:
            Refusal(.requestInvalid, "What came is not an HTTP/1.1 request.")
        default:
            nil
        }
    }

    /// Answers here, without the routes.
    private func refuse(_ refusal: Refusal, _ context: ChannelHandlerContext) {
        if case .lingering = phase { return }
        let body = (try? JSONEncoder().encode(ProblemDocument(refusal))).map { ByteBuffer(bytes: $0) } ?? ByteBuffer()
        var head = HTTPResponseHead(
            version: .http1_1, status: HTTPResponseStatus(statusCode: refusal.code.status))
        head.headers.add(name: "content-type", value: ProblemDocument.mediaType)
        head.headers.add(name: "content-length", value: String(body.readableBytes))
        head.headers.add(name: "connection", value: "close")
        if let seconds = refusal.retryAfterSeconds { head.headers.add(name: "retry-after", value: String(seconds)) }
        context.write(Self.wrapOutboundOut(.head(head)), promise: nil)
        context.write(Self.wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
        context.writeAndFlush(Self.wrapOutboundOut(.end(nil)), promise: nil)
        linger(context)
    }

    /// Says that no more will come, and gives the peer a moment to read the answer before the connection goes.
    private func linger(_ context: ChannelHandlerContext) {
        phase = .lingering
        clearDeadline()
        context.flush()
        context.channel.setOption(.autoRead, value: false).whenFailure { _ in }
        context.close(mode: .output, promise: nil)
        deadline = context.eventLoop.assumeIsolated().scheduleTask(in: .seconds(1)) { context.close(promise: nil) }
    }

    private func clearDeadline() {
        deadline?.cancel()
        deadline = nil
    }

    private func setDeadline(_ time: TimeAmount, _ context: ChannelHandlerContext) {
        deadline = context.eventLoop.assumeIsolated().scheduleTask(in: time) {
            self.deadline = nil
            guard !self.isAnswering else { return context.close(promise: nil) }
            context.fireErrorCaught(RequestTimedOut())
            self.refuse(Refusal(.requestTimeout, "The request did not arrive in time."), context)
        }
    }
}

/// Fails the reading of a body that did not arrive in time.
struct RequestTimedOut: Error {}

/// What a connection may send before it is known who it is.
enum ConnectionLimits {
    static let headBytes = 16_384
    static let headFields = 100
}

extension HTTPRequestHead {
    /// Whether this is a WebSocket handshake that the server takes (RFC 6455 section 4.2.1).
    fileprivate var isSocketHandshake: Bool {
        method == .GET && uri.prefix { $0 != "?" } == "/" && version == .http1_1
            && headers[canonicalForm: "upgrade"].contains { $0.lowercased() == "websocket" }
            && headers[canonicalForm: "connection"].contains { $0.lowercased() == "upgrade" }
            && headers["sec-websocket-version"] == ["13"]
            && headers["sec-websocket-key"].count == 1
            && Base64URL.decode(headers["sec-websocket-key"][0])?.count == 16
            && !headers.contains(name: "transfer-encoding")
            && (headers.first(name: "content-length") ?? "0") == "0"
    }

    /// Whether the body that is announced is worth being sent.
    fileprivate var mayContinue: Bool {
        guard let length = headers.first(name: "content-length").flatMap(Int.init) else { return true }
        return length <= (uri.hasPrefix("/push/") ? Limits.messageBodyBytes : Limits.apiBodyBytes)
    }
}
