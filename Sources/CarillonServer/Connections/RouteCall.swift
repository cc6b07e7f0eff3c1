import CarillonWire
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypesHTTP1

/// Calls the routes, and passes their response to the connection.
struct RouteCall: Sendable {
    let responder: any HTTPResponder<RouteContext>
    let answers: AnswerMemory
    let server: ServerID
    let logger: Logger

    func answer(
        _ request: RequestMachine.Request, on channel: any NIOCore.Channel, to connection: HTTPConnectionHandler
    ) async {
        await answer(request.head, RequestBody(request.body), on: channel, to: connection)
    }

    /// Answers a request with a streamed body.
    func answer(
        _ head: HTTPRequestHead, _ body: RequestStream, on channel: any NIOCore.Channel, to connection: HTTPConnectionHandler
    ) async {
        await answer(head, RequestBody(asyncSequence: body), on: channel, to: connection) { status, fields in
            connection.notified(HTTPResponseHead(version: .http1_1, status: status, headers: HTTPHeaders(fields)))
        }
    }

    private func answer(
        _ requestHead: HTTPRequestHead, _ body: RequestBody, on channel: any NIOCore.Channel,
        to connection: HTTPConnectionHandler, notify: (@Sendable (HTTPResponseStatus, HTTPFields) -> Void)? = nil
    ) async {
        var response: Response
        do {
            var head = try HTTPRequest(requestHead, secure: false, splitCookie: false)
            // The routes know only GET. The body of their response is not requested (RFC 9110 section 9.3.2).
            if head.method == .head { head.method = .get }
            var context = RouteContext(.connection(channel), logger: logger)
            context.isHead = requestHead.method == .HEAD
            context.inform = notify
            context.usage = connection.usage
            response = try await responder.respond(
                to: Request(head: head, body: body), context: context)
        } catch {
            response = Response(refusal: Refusal(.requestInvalid, "The request is not valid."))
            // No route created this response.
            response.headers[.carillonServer] = server.description
        }
        // The poll waits without a task, and the inbox is read again later.
        if let poll = connection.usage.takePoll() { return connection.waits(for: poll) }
        await give(
            response, hasBody: requestHead.method != .HEAD, bearer: requestHead.headers.first(name: "authorization"),
            to: connection)
    }

    /// Reads the inbox again for a waiting poll.
    func answer(_ poll: WaitingPoll, isLast: Bool, to connection: HTTPConnectionHandler) async {
        var response: Response
        do {
            guard let found = try await poll.look(isLast: isLast) else { return connection.waits(for: poll) }
            response = found
        } catch {
            response = Response(refusal: Refusal(error, logger: logger))
        }
        // No route created this response.
        response.headers[.carillonServer] = server.description
        await give(response, hasBody: !poll.isHead, bearer: nil, to: connection)
    }

    private func give(
        _ response: Response, hasBody: Bool, bearer: String?, to connection: HTTPConnectionHandler
    ) async {
        let head = HTTPResponseHead(response.head)
        let usage = connection.usage
        let kept = usage.takeAnswer()
        do {
            if !hasBody {
                var answer = HTTPAnswer(status: head.status, headers: head.headers)
                answer.length = response.body.contentLength
                connection.answered(answer)
            } else if let length = response.body.contentLength {
                // A body in parts has no known length here. Its route can set the field.
                let place: AnswerReservation?
                do throws(Refusal) {
                    if let kept {
                        place = kept
                    } else {
                        place = try await answers.place(for: length, of: usage.device, or: bearer, from: usage.address)
                    }
                } catch {
                    // This response replaces that of the route.
                    var refusal = HTTPAnswer(error)
                    refusal.headers.replaceOrAdd(name: HeaderNames.server, value: server.description)
                    return connection.answered(refusal)
                }
                let collected = Collected()
                try await response.body.write(WholeBody(collected: collected))
                guard length > AnswerMemory.partBytes else {
                    return connection.answered(
                        HTTPAnswer(status: head.status, headers: head.headers, body: collected.bytes), holding: place)
                }
                defer { place?.release() }
                connection.began(head, length: length)
                while let part = collected.bytes.readSlice(
                    length: min(AnswerMemory.partBytes, collected.bytes.readableBytes)), part.readableBytes > 0
                {
                    try await connection.send(part)
                }
                connection.ended()
            } else {
                connection.began(head, length: nil)
                try await response.body.write(BodyInParts(connection: connection))
            }
        } catch {
            connection.broke()
        }
    }

    private final class Collected {
        var bytes = ByteBuffer()
    }

    private struct WholeBody: ResponseBodyWriter {
        let collected: Collected
        func write(_ buffer: ByteBuffer) { collected.bytes.add(buffer) }
        func finish(_ trailingHeaders: HTTPFields?) {}
    }

    private struct BodyInParts: ResponseBodyWriter {
        let connection: HTTPConnectionHandler
        func write(_ buffer: ByteBuffer) async throws { try await connection.send(buffer) }
        func finish(_ trailingHeaders: HTTPFields?) { connection.ended() }
    }
}

extension ByteBuffer {
    /// The first buffer is not copied.
    mutating func add(_ buffer: ByteBuffer) {
        if readableBytes == 0 { self = buffer } else { writeImmutableBuffer(buffer) }
    }
}

extension RequestBody {
    /// Reading a body that was too large fails.
    init(_ body: RequestMachine.Body) {
        switch body {
        case .whole(let bytes):
            self.init(buffer: bytes)
        case .tooLarge(let limit):
            let fault = NIOTooManyBytesError(maxBytes: limit)
            self.init(asyncSequence: AsyncThrowingStream<ByteBuffer, any Error> { $0.finish(throwing: fault) })
        }
    }
}
