import CarillonWire
import NIOCore
import NIOHTTP1

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The exchange of one request and its response (HTTP/1.1), over TLS for `https:` addresses.
extension NIOTransport {
    func send(_ request: WebRequest) async throws(TransportFault) -> WebAnswer {
        let progress = ConnectProgress()
        do {
            return try await open(request.address, patience: request.patience, progress) { try Self.send(request, on: $0) }
        } catch {
            throw fault(error, progress)
        }
    }

    private static func send(
        _ request: WebRequest, on channel: any NIOCore.Channel
    ) throws -> EventLoopFuture<WebAnswer> {
        let answer = channel.eventLoop.makePromise(of: WebAnswer.self)
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHTTPClientHandlers(leftOverBytesStrategy: .dropBytes)
        try pipeline.addHandler(AnswerHandler(answer, limit: request.answerLimit))
        var headers: HTTPHeaders = ["Host": request.address.authority, "Connection": "close"]
        if let bearer = request.bearer { headers.add(name: "Authorization", value: "Bearer \(bearer)") }
        if let json = request.json {
            headers.add(name: "Content-Type", value: "application/json")
            headers.add(name: "Content-Length", value: String(json.count))
        }
        let head = HTTPRequestHead(
            version: .http1_1, method: HTTPMethod(rawValue: request.method.rawValue), uri: request.address.target,
            headers: headers)
        channel.write(HTTPClientRequestPart.head(head), promise: nil)
        if let json = request.json {
            channel.write(HTTPClientRequestPart.body(.byteBuffer(ByteBuffer(bytes: json))), promise: nil)
        }
        channel.writeAndFlush(HTTPClientRequestPart.end(nil)).cascadeFailure(to: answer)
        return answer.futureResult
    }
}

extension WebAnswer {
    /// Makes an answer without its body.
    init(_ head: HTTPResponseHead) {
        let fields = head.headers.map { ($0.name.lowercased(), $0.value) }
        self.init(status: Int(head.status.code), headers: Dictionary(fields, uniquingKeysWith: { first, _ in first }))
    }
}

/// Reads one response, and closes the connection.
private final class AnswerHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart

    /// A completed promise keeps its first value.
    private let answer: EventLoopPromise<WebAnswer>
    private let limit: Int
    private var head: HTTPResponseHead?
    private var body = Data()

    init(_ answer: EventLoopPromise<WebAnswer>, limit: Int) {
        self.answer = answer
        self.limit = limit
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch Self.unwrapInboundIn(data) {
        case .head(let head): self.head = head
        case .body(let part):
            guard head != nil else { return }
            body.append(contentsOf: part.readableBytesView)
            guard body.count > limit else { return }
            // No body of the server is this long. The status of another program's response is enough.
            body = Data()
            finish(context)
        case .end: finish(context)
        }
    }

    private func finish(_ context: ChannelHandlerContext) {
        guard let head else { return }
        self.head = nil
        var response = WebAnswer(head)
        response.body = body
        answer.succeed(response)
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) { answer.fail(ChannelError.inputClosed) }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        answer.fail(error)
        context.close(promise: nil)
    }
}
