import CarillonWire
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypesHTTP1

/// Asks the routes, and hands their answer to the connection.
struct RouteCall: Sendable {
    let responder: any HTTPResponder<RouteContext>
    let logger: Logger

    func answer(
        _ request: RequestMachine.Request, on channel: any NIOCore.Channel, to connection: HTTPConnectionHandler
    ) async {
        await answer(request.head, RequestBody(request.body), on: channel, to: connection)
    }

    /// The same of a request whose body comes as it likes.
    func answer(
        _ head: HTTPRequestHead, _ body: RequestStream, on channel: any NIOCore.Channel, to connection: HTTPConnectionHandler
    ) async {
        await answer(head, RequestBody(asyncSequence: body), on: channel, to: connection) { status, fields in
            connection.told(HTTPResponseHead(version: .http1_1, status: status, headers: HTTPHeaders(fields)))
        }
    }

    private func answer(
        _ requestHead: HTTPRequestHead, _ body: RequestBody, on channel: any NIOCore.Channel,
        to connection: HTTPConnectionHandler, tell: (@Sendable (HTTPResponseStatus, HTTPFields) -> Void)? = nil
    ) async {
        let response: Response
        do {
            var head = try HTTPRequest(requestHead, secure: false, splitCookie: false)
            // The routes know of GET alone: what they answer is not asked for its body (RFC 9110 section 9.3.2).
            if head.method == .head { head.method = .get }
            var context = RouteContext(source: ApplicationRequestContextSource(channel: channel, logger: logger))
            context.isHead = requestHead.method == .HEAD
            context.tell = tell
            response = try await responder.respond(
                to: Request(head: head, body: body), context: context)
        } catch {
            response = Response(refusal: Refusal(.requestInvalid, "The request could not be understood."))
        }
        await give(response, hasBody: requestHead.method != .HEAD, to: connection)
    }

    private func give(_ response: Response, hasBody: Bool, to connection: HTTPConnectionHandler) async {
        let head = HTTPResponseHead(response.head)
        do {
            if !hasBody {
                var answer = HTTPAnswer(status: head.status, headers: head.headers)
                answer.length = response.body.contentLength
                connection.answered(answer)
            } else if let length = response.body.contentLength, length <= Self.wholeBytes {
                let collected = Collected()
                try await response.body.write(WholeBody(collected: collected))
                connection.answered(HTTPAnswer(status: head.status, headers: head.headers, body: collected.bytes))
            } else {
                connection.began(head, length: response.body.contentLength)
                try await response.body.write(BodyInParts(connection: connection))
            }
        } catch {
            connection.broke()
        }
    }

    /// A body of so many bytes is answered at once.
    private static let wholeBytes = 1 << 20

    private final class Collected {
        var bytes = ByteBuffer()
    }

    private struct WholeBody: ResponseBodyWriter {
        let collected: Collected
        func write(_ buffer: ByteBuffer) { collected.bytes.writeImmutableBuffer(buffer) }
        func finish(_ trailingHeaders: HTTPFields?) {}
    }

    private struct BodyInParts: ResponseBodyWriter {
        let connection: HTTPConnectionHandler
        func write(_ buffer: ByteBuffer) async throws { try await connection.send(buffer) }
        func finish(_ trailingHeaders: HTTPFields?) { connection.ended() }
    }
}

extension RequestBody {
    /// A body that was too large fails whoever reads it.
    fileprivate init(_ body: RequestMachine.Body) {
        switch body {
        case .whole(let bytes):
            self.init(buffer: bytes)
        case .tooLarge(let limit):
            let fault = NIOTooManyBytesError(maxBytes: limit)
            self.init(asyncSequence: AsyncThrowingStream<ByteBuffer, any Error> { $0.finish(throwing: fault) })
        }
    }
}
