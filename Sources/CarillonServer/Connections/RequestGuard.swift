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
/// closed after the answer.
final class RequestGuard: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    private enum Phase {
        case awaitingHead
        case reading
        case read
        /// The answer was given early; what still comes is thrown away until the peer notices.
        case lingering
    }

    private let headTime: TimeAmount
    private let bodyTime: TimeAmount
    private var phase = Phase.awaitingHead
    private var isFirstHead = true
    private var isAnswering = false
    private var deadline: Scheduled<Void>?

    init(headSeconds: Int, bodySeconds: Int) {
        headTime = .seconds(Int64(headSeconds))
        bodyTime = .seconds(Int64(bodySeconds))
    }

    func handlerAdded(context: ChannelHandlerContext) {
        setDeadline(headTime, context)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        deadline?.cancel()
        deadline = nil
    }

    func channelInactive(context: ChannelHandlerContext) {
        deadline?.cancel()
        deadline = nil
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if case .lingering = phase { return }
        switch Self.unwrapInboundIn(data) {
        case .head(let head):
            deadline?.cancel()
            deadline = nil
            phase = .reading
            if head.headers.contains(name: "expect"), head.version == .http1_1 {
                let interim = HTTPResponseHead(version: .http1_1, status: .continue)
                context.writeAndFlush(Self.wrapOutboundOut(.head(interim)), promise: nil)
            }
        case .body:
            break
        case .end:
            phase = .read
            deadline?.cancel()
            deadline = nil
        }
        context.fireChannelRead(data)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        if case .reading = phase, deadline == nil { setDeadline(bodyTime, context) }
        context.fireChannelReadComplete()
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch Self.unwrapOutboundIn(data) {
        case .head(var head):
            isAnswering = true
            if case .reading = phase {
                head.headers.replaceOrAdd(name: "connection", value: "close")
                return context.write(Self.wrapOutboundOut(.head(head)), promise: promise)
            }
            context.write(data, promise: promise)
        case .body:
            context.write(data, promise: promise)
        case .end:
            isAnswering = false
            context.write(data, promise: promise)
            if case .reading = phase { linger(context) }
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard !isAnswering, let refusal = Self.refusal(for: error) else {
            return context.fireErrorCaught(error)
        }
        refuse(refusal, context)
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

    /// Answers here, without the routes: they never hear of this request.
    private func refuse(_ refusal: Refusal, _ context: ChannelHandlerContext) {
        phase = .reading
        let body = (try? JSONEncoder().encode(ProblemDocument(refusal))).map { ByteBuffer(bytes: $0) } ?? ByteBuffer()
        var head = HTTPResponseHead(
            version: .http1_1, status: HTTPResponseStatus(statusCode: refusal.code.status))
        head.headers.add(name: "content-type", value: ProblemDocument.mediaType)
        head.headers.add(name: "content-length", value: String(body.readableBytes))
        head.headers.add(name: "connection", value: "close")
        context.write(Self.wrapOutboundOut(.head(head)), promise: nil)
        context.write(Self.wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
        context.writeAndFlush(Self.wrapOutboundOut(.end(nil)), promise: nil)
        linger(context)
    }

    /// Says that no more will come, and gives the peer a moment to read the answer before the connection goes.
    private func linger(_ context: ChannelHandlerContext) {
        phase = .lingering
        context.flush()
        context.close(mode: .output, promise: nil)
        deadline?.cancel()
        deadline = context.eventLoop.assumeIsolated().scheduleTask(in: .seconds(1)) { context.close(promise: nil) }
    }

    private func setDeadline(_ time: TimeAmount, _ context: ChannelHandlerContext) {
        deadline = context.eventLoop.assumeIsolated().scheduleTask(in: time) {
            self.deadline = nil
            guard !self.isAnswering else { return context.close(promise: nil) }
            self.refuse(Refusal(.requestTimeout, "The request did not arrive in time."), context)
        }
    }
}

/// What a connection may send before it is known who it is.
enum ConnectionLimits {
    static let headBytes = 16_384
    static let headFields = 100
}
