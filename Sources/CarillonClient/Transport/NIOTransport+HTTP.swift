import CarillonWire
import NIOCore
import NIOHTTP1

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// One request and its answer (HTTP/1.1), over TLS for `https:` addresses.
extension NIOTransport {
    func ask(_ question: WebQuestion) async throws(TransportFault) -> WebAnswer {
        let progress = ConnectProgress()
        do {
            return try await open(question.address, patience: question.patience, progress) { try Self.ask(question, on: $0) }
        } catch {
            throw fault(error, progress)
        }
    }

    private static func ask(
        _ question: WebQuestion, on channel: any NIOCore.Channel
    ) throws -> EventLoopFuture<WebAnswer> {
        let answer = channel.eventLoop.makePromise(of: WebAnswer.self)
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHTTPClientHandlers(leftOverBytesStrategy: .dropBytes)
        try pipeline.addHandlers([
            NIOHTTPClientResponseAggregator(maxContentLength: question.answerLimit), AnswerHandler(answer),
        ])
        var headers: HTTPHeaders = ["Host": question.address.authority, "Connection": "close"]
        if let bearer = question.bearer { headers.add(name: "Authorization", value: "Bearer \(bearer)") }
        if let json = question.json {
            headers.add(name: "Content-Type", value: "application/json")
            headers.add(name: "Content-Length", value: String(json.count))
        }
        let head = HTTPRequestHead(
            version: .http1_1, method: HTTPMethod(rawValue: question.method.rawValue), uri: question.address.target,
            headers: headers)
        channel.write(HTTPClientRequestPart.head(head), promise: nil)
        if let json = question.json {
            channel.write(HTTPClientRequestPart.body(.byteBuffer(ByteBuffer(bytes: json))), promise: nil)
        }
        channel.writeAndFlush(HTTPClientRequestPart.end(nil)).cascadeFailure(to: answer)
        return answer.futureResult
    }
}

/// Waits for one answer, and closes the connection.
private final class AnswerHandler: ChannelInboundHandler {
    typealias InboundIn = NIOHTTPClientResponseFull

    /// It keeps what it was fulfilled with first.
    private let answer: EventLoopPromise<WebAnswer>

    init(_ answer: EventLoopPromise<WebAnswer>) { self.answer = answer }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let response = Self.unwrapInboundIn(data)
        let headers = response.head.headers
        answer.succeed(
            WebAnswer(
                status: Int(response.head.status.code), retryAfter: headers.first(name: "Retry-After"),
                body: Data(response.body?.readableBytesView ?? ByteBuffer().readableBytesView),
                contentType: headers.first(name: "Content-Type"), server: headers.first(name: HeaderNames.server)))
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) { answer.fail(ChannelError.inputClosed) }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        answer.fail(error)
        context.close(promise: nil)
    }
}
