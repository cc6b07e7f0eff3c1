import CarillonCore
import CarillonWire
import NIOCore
import NIOHTTP1
import NIOSSL
import NIOTLS

/// Sends one request, and finds out what its answer is, or which of the failures it met.
final class OutwardHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias OutboundOut = HTTPClientRequestPart

    private let post: OutwardCaller.Post
    private let answerTime: TimeAmount
    private var result: EventLoopPromise<CallResult>?
    private var deadline: Scheduled<Void>?
    private var isSecured: Bool
    private var status: Int?

    init(_ post: OutwardCaller.Post, answerTime: TimeAmount, result: EventLoopPromise<CallResult>) {
        self.post = post
        self.answerTime = answerTime
        self.result = result
        isSecured = !post.address.isSecure
    }

    func channelActive(context: ChannelHandlerContext) {
        deadline = context.eventLoop.assumeIsolated().scheduleTask(in: answerTime) {
            self.end(.failed(.noAnswerInTime, detail: "no whole answer came in time"), context)
        }
        var headers: HTTPHeaders = [
            "Host": post.address.hostHeader, "User-Agent": "Carillon", "Content-Type": "application/json",
            "Content-Length": String(post.body.count), "Connection": "close",
        ]
        for (name, value) in post.headers { headers.add(name: name, value: value) }
        let head = HTTPRequestHead(version: .http1_1, method: .POST, uri: post.address.target, headers: headers)
        context.write(Self.wrapOutboundOut(.head(head)), promise: nil)
        context.write(Self.wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: post.body)))), promise: nil)
        context.writeAndFlush(Self.wrapOutboundOut(.end(nil)), promise: nil)
        context.fireChannelActive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch Self.unwrapInboundIn(data) {
        case .head(let head):
            let status = Int(head.status.code)
            self.status = status
            // Of an answer that is refused for its status, nothing more is wanted.
            if !(200..<300).contains(status) { end(.answered(status: status), context) }
        case .body:
            break
        case .end:
            if let status { end(.answered(status: status), context) }
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
            // The end of the connection tells whether the answer was whole.
            break
        case is AnswerBudget.Exceeded:
            end(.failed(.invalidAnswer, detail: "the answer is larger than \(AnswerBudget.bytes) bytes"), context)
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

    private func end(_ result: CallResult, _ context: ChannelHandlerContext) {
        guard let promise = self.result else { return }
        self.result = nil
        deadline?.cancel()
        promise.succeed(result)
        context.close(promise: nil)
    }
}

/// Which faults of TLS are the certificate's.
enum CertificateFault {
    static func isOne(_ error: any Error) -> Bool {
        switch error {
        case is NIOSSLExtraError:
            // The host name, or the address, is not in the certificate.
            true
        case NIOSSLError.handshakeFailed(.sslError(let stack)):
            // BoringSSL's name of the fault; NIOSSL gives it in words only.
            stack.contains { $0.description.contains("CERTIFICATE_VERIFY_FAILED") }
        case NIOSSLError.unableToValidateCertificate, NIOSSLError.noCertificateToValidate:
            true
        default:
            false
        }
    }
}
