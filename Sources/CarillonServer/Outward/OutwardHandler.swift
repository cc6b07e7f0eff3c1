import CarillonBasics
import CarillonCore
import CarillonWire
import NIOCore
import NIOHTTP1
import NIOSSL
import NIOTLS

/// Sends one request, and determines its response or the failure.
final class OutwardHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias OutboundOut = HTTPClientRequestPart

    private let request: OutwardCaller.Request
    private let answerTime: TimeAmount
    private var result: EventLoopPromise<OutwardCaller.Answer>?
    private var deadline: Scheduled<Void>?
    private var isSecured: Bool
    private var status: Int?
    private var retryAfter: Duration?
    private var body: [UInt8] = []

    init(
        _ request: OutwardCaller.Request, answerTime: TimeAmount, result: EventLoopPromise<OutwardCaller.Answer>
    ) {
        self.request = request
        self.answerTime = answerTime
        self.result = result
        isSecured = !request.address.isSecure
    }

    func channelActive(context: ChannelHandlerContext) {
        deadline = context.eventLoop.assumeIsolated().scheduleTask(in: answerTime) {
            self.end(.failed(.noAnswerInTime, detail: "no whole answer came in time"), context)
        }
        var headers: HTTPHeaders = [
            "Host": request.address.hostHeader, "User-Agent": "Carillon", "Connection": "close",
        ]
        if request.method == .POST {
            headers.add(name: "Content-Type", value: "application/json")
            headers.add(name: "Content-Length", value: String(request.body.count))
        }
        for (name, value) in request.headers { headers.add(name: name, value: value) }
        let head = HTTPRequestHead(
            version: .http1_1, method: request.method, uri: request.address.target, headers: headers)
        context.write(Self.wrapOutboundOut(.head(head)), promise: nil)
        if !request.body.isEmpty {
            context.write(Self.wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: request.body)))), promise: nil)
        }
        context.writeAndFlush(Self.wrapOutboundOut(.end(nil)), promise: nil)
        context.fireChannelActive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch Self.unwrapInboundIn(data) {
        case .head(let head):
            let status = Int(head.status.code)
            self.status = status
            retryAfter = head.headers.first(name: "retry-after").flatMap {
                RetryAfter.duration($0, at: TimeSource.system.now().milliseconds)
            }
            // The body of an unsuccessful response is not needed.
            if !(200..<300).contains(status), !request.wantsRefusals {
                end(.answered(status: status, retryAfter: retryAfter), context)
            }
        case .body(let part):
            guard request.answerBytes > 0 else { break }
            guard body.count + part.readableBytes <= request.answerBytes else {
                return endTooLarge(request.answerBytes, context)
            }
            body += part.readableBytesView
        case .end:
            if let status { end(.answered(status: status, retryAfter: retryAfter), context) }
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case TLSUserEvent.handshakeCompleted: isSecured = true
        case is CallAbandoned: end(.notMade(reason: "the server stops"), context)
        default: break
        }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch error {
        case NIOSSLError.uncleanShutdown:
            // The end of the connection shows whether the response was complete.
            break
        case is AnswerBudget.Exceeded:
            endTooLarge(AnswerBudget.bytes + request.answerBytes, context)
        case is HTTPParserError:
            end(.failed(.invalidAnswer, detail: "the answer is not HTTP/1.1"), context)
        case let error where CertificateFault.isOne(error):
            end(.failed(.badCertificate, detail: "the certificate is not valid for this address"), context)
        default:
            endEarly(context)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        endEarly(context)
        context.fireChannelInactive()
    }

    private func endEarly(_ context: ChannelHandlerContext) {
        guard isSecured else {
            return end(.failed(.noConnection, detail: "TLS could not be agreed on"), context)
        }
        end(.failed(.invalidAnswer, detail: "the connection ended before the answer was whole"), context)
    }

    private func endTooLarge(_ bytes: Int, _ context: ChannelHandlerContext) {
        end(.failed(.invalidAnswer, detail: "the answer is larger than \(bytes) bytes"), context)
    }

    private func end(_ result: CallResult, _ context: ChannelHandlerContext) {
        guard let promise = self.result else { return }
        self.result = nil
        deadline?.cancel()
        promise.succeed(.init(result: result, body: body))
        context.close(promise: nil)
    }
}

/// Recognizes TLS errors that are caused by the certificate.
enum CertificateFault {
    static func isOne(_ error: any Error) -> Bool {
        switch error {
        case is NIOSSLExtraError:
            // The certificate does not contain the host name or the address.
            true
        case NIOSSLError.handshakeFailed(.sslError(let stack)):
            // BoringSSL's name of the error, which NIOSSL provides only as text.
            stack.contains { $0.description.contains("CERTIFICATE_VERIFY_FAILED") }
        case NIOSSLError.unableToValidateCertificate, NIOSSLError.noCertificateToValidate:
            true
        default:
            false
        }
    }
}
