import NIOCore
import NIOHTTP1

/// Reads one request after the other, and writes the responses of the routes.
final class ControlHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private static let bodyLimit = 1 << 20

    private let simulator: WeakSimulator
    private var head: HTTPRequestHead?
    private var body = ByteBuffer()

    init(simulator: WeakSimulator) { self.simulator = simulator }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head):
            self.head = head
            body = ByteBuffer()
        case .body(var part):
            if body.readableBytes + part.readableBytes <= Self.bodyLimit {
                body.writeBuffer(&part)
            } else {
                context.close(promise: nil)
            }
        case .end:
            guard let head else { return }
            self.head = nil
            answer(head, context)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    private func answer(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
        let answer: ControlAnswer
        if let origin = head.headers.first(name: "origin"), origin != "http://" + (head.headers.first(name: "host") ?? "") {
            // A page of another origin in the developer's browser must not use the API.
            answer = .refusal(403, "The API accepts no requests from other pages.")
        } else if let simulator = simulator.value {
            answer = ControlRoutes(simulator: simulator).answer(
                head.method.rawValue, head.uri, body: Array(body.readableBytesView))
        } else {
            answer = .refusal(503, "The simulator has been stopped.")
        }
        var headers: HTTPHeaders = ["content-type": answer.type, "content-length": String(answer.body.utf8.count)]
        if !head.isKeepAlive { headers.add(name: "connection", value: "close") }
        let status = HTTPResponseStatus(statusCode: answer.status)
        context.write(wrapOutboundOut(.head(.init(version: .http1_1, status: status, headers: headers))), promise: nil)
        if head.method != .HEAD {
            context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(string: answer.body)))), promise: nil)
        }
        let done = context.writeAndFlush(wrapOutboundOut(.end(nil)))
        if !head.isKeepAlive {
            let channel = context.channel
            done.whenComplete { _ in channel.close(promise: nil) }
        }
    }
}
