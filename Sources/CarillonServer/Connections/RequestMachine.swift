import CarillonWire
import NIOCore
import NIOHTTP1

/// The states of one HTTP/1.1 connection: it controls reading, answering and closing. It enforces the time limits and the form of
/// requests before the sender is authenticated. Times are seconds of the ``ConnectionWheel``.
///
/// - *awaiting*: there is no request. A head leads to *reading* or *streaming*. Silence, a stop, or the end of the peer's side
///   closes the connection.
/// - *reading*: a head was received, and the body is collected up to its limit. The end of the request leads to *answering*. A
///   body beyond the limit also leads there: the rest is not read, and the connection is closed after the answer. A WebSocket
///   handshake leaves HTTP for good.
/// - *streaming*: the head of a request with a body of any length was received. The routes receive the body in parts, and their
///   reading controls the flow. The end of the request leads to *answering*. An answer that ends earlier closes the connection.
/// - *answering*: the routes process the request. Parts that were already received are kept, and no more is read. The end of the
///   answer leads to *awaiting* or *closing*. If no answer begins in time, a refusal replaces it.
/// - *closing*: the last answer was sent. Received data is ignored. The connection is closed after the peer had time to read.
package struct RequestMachine {
    struct Request: Equatable {
        var head: HTTPRequestHead
        var body: Body
    }

    enum Body: Equatable {
        case whole(ByteBuffer)
        /// The body exceeds the limit and was discarded.
        case tooLarge(limit: Int)
    }

    enum Action: Equatable {
        case none
        /// Send "100 Continue" (RFC 9110 section 10.1.1).
        case sendContinue
        /// Pass the request to the routes. Call ``answerBegan(hasLength:)`` and ``answerEnded(at:)``.
        case answer(Request)
        /// Pass the request to the routes, and its body in parts. Call ``answerBegan(hasLength:)`` and ``answerEnded(at:)``. Call
        /// ``bodyWanted()`` when the routes begin to read the body, then ``bodyFilled()`` and ``bodyTaken(at:)``.
        case stream(HTTPRequestHead)
        case streamed(ByteBuffer)
        case streamEnded
        /// The rest of the body will not arrive.
        case streamBroke(Refusal)
        /// Answer with this refusal, and end the connection as after ``End/lingering``.
        case refuse(Refusal)
        /// Answer the WebSocket handshake, and leave HTTP.
        case upgrade(HTTPRequestHead)
        /// Close the connection when all answers have been sent.
        case finish
        case close
        /// Close the connection, because the peer does not read.
        case stalled
    }

    /// How the peer's side of the connection ended. A fault is answered after the answers that are still due.
    private enum Ending {
        case ended
        case broke(Refusal)
    }

    enum End: Equatable {
        /// The connection stays open. Call ``bufferedAction(at:)`` for the parts that were received meanwhile.
        case open
        /// Close the connection when the answer has been sent.
        case flushed
        /// The request was not read completely. End the sending side, and let the peer read before the connection is closed.
        case lingering
    }

    package struct Settings: Sendable {
        /// The longest time for a head, from its first byte.
        package var headSeconds = 10
        /// The longest time for a body, from the end of its head. For a streamed body: the period in which the minimum of its
        /// ``StreamedBody`` must arrive.
        package var bodySeconds = 30
        /// The longest time until the routes begin an answer, in addition to the wait that the request contains.
        package var answerSeconds = 30
        /// The longest time between two requests.
        package var idleSeconds = 75
        /// The period in which a peer must receive ``StallClock/minimumBytes`` of the waiting data.
        package var stallSeconds = 30

        package init() {}
    }

    private enum State {
        case awaiting
        case reading(HTTPRequestHead, ByteBuffer, limit: Int)
        case streaming(Streaming)
        case answering(isWhole: Bool)
        case closing
    }

    private struct Streaming {
        let body: StreamedBody
        var bytes = 0
        var wireBytes = 0
        /// The bytes that had been received at the start of the present period.
        var bytesBefore = 0
        /// Whether the peer waits for "100 Continue" before it sends the body.
        var expectsContinue: Bool
        /// Whether the routes have the largest allowed amount of unread body.
        var isFull = false
    }

    private static let stoppingSeconds = 2
    /// The longest time until the request on a connection beyond a limit.
    private static let refusedSeconds = 2

    private let settings: Settings
    private let origins: AllowedOrigins
    private var state = State.awaiting
    private var buffered: [HTTPServerRequestPart] = []
    private var bufferedTaken = 0
    /// The HTTP version that the peer supports.
    private(set) var version = HTTPVersion.http1_1
    /// Whether the answer to the last request has a head only.
    private(set) var isHead = false
    /// The bytes of the present request that count for ``unfinishedLimit``: all bytes of a body, or those since the last part.
    private var unfinishedBytes = 0
    private var closesAfterAnswer = false
    /// The refusal of a connection beyond a limit. All requests except health checks receive it.
    private var refusalOfOthers: Refusal?
    /// Whether the answer to the present request has begun.
    private var hasAnswered = false
    /// The longest time for the answer to the present request.
    private var answerSeconds = 0
    private var isStopping = false
    /// The second in which the server will have stopped.
    private var stopAt: Int?
    /// While awaiting: whether a part of the head was received, as is required on a new connection. While reading: whether the
    /// time limit of the body runs.
    private var hasBegun = true
    private var partsOfThisRead = 0
    /// The end of the present state; nil while the routes answer.
    private(set) var deadline: Int?
    private var stall = StallClock()
    private var isWritable = true
    private var ending: Ending?

    init(settings: Settings, origins: AllowedOrigins = .none, at second: Int) {
        self.settings = settings
        self.origins = origins
        deadline = second + settings.headSeconds
    }

    /// Whether more data can be read from the peer.
    var wantsToRead: Bool {
        guard isWritable else { return false }
        return switch state {
        case .awaiting, .reading: buffered.isEmpty
        case .streaming(let streaming): buffered.isEmpty && !streaming.isFull
        // After a request that ends the connection, the parser would only collect data.
        case .answering(isWhole: true): buffered.isEmpty && !closesAfterAnswer
        case .answering, .closing: false
        }
    }

    // MARK: The request

    mutating func received(_ part: HTTPServerRequestPart, admitsSocket: () -> Bool) -> Action {
        partsOfThisRead += 1
        // The part follows others that are kept.
        if bufferedTaken < buffered.count {
            buffered.append(part)
            return .none
        }
        return take(part, admitsSocket)
    }

    private mutating func take(_ part: HTTPServerRequestPart, _ admitsSocket: () -> Bool) -> Action {
        switch state {
        case .closing:
            return .none
        case .answering(let isWhole):
            if isWhole { buffered.append(part) }
            return .none
        case .awaiting:
            // The parser ensures that a request begins with a head.
            guard case .head(var head) = part else { return .none }
            head.normalise()
            return received(head, admitsSocket)
        case .streaming(var streaming):
            switch part {
            case .head: return .none
            case .body(let bytes):
                streaming.bytes += bytes.readableBytes
                state = .streaming(streaming)
                return .streamed(bytes)
            case .end:
                state = .answering(isWhole: true)
                deadline = nil
                return .streamEnded
            }
        case .reading(let head, var body, let limit):
            switch part {
            case .head:
                return .none
            case .body(var bytes):
                guard body.readableBytes + bytes.readableBytes <= limit else { return answer(head, .tooLarge(limit: limit)) }
                state = .awaiting
                if body.readableBytes == 0 { body = bytes } else { body.writeBuffer(&bytes) }
                state = .reading(head, body, limit: limit)
                return .none
            case .end:
                switch SocketHandshake.read(head, from: origins) {
                case .accepted where admitsSocket():
                    state = .closing
                    deadline = nil
                    return .upgrade(head)
                case .refused(let refusal):
                    return refuse(refusal)
                case .accepted, .otherRequest:
                    return answer(head, .whole(body))
                }
            }
        }
    }

    private mutating func received(_ head: HTTPRequestHead, _ admitsSocket: () -> Bool) -> Action {
        hasBegun = false
        hasAnswered = false
        deadline = nil
        isHead = head.method == .HEAD
        let framing = RequestFraming(head.headers)
        if let refusal = refusalOfOthers {
            let hasBody = !framing.codings.isEmpty || framing.length ?? "0" != "0"
            guard HealthRoutes.isHealthCheck(head), !hasBody else { return refuse(refusal) }
        }
        guard framing.codings.isEmpty || framing.codings.map({ $0.lowercased() }) == ["chunked"] else {
            return refuse(Refusal(.requestInvalid, "The only supported \"Transfer-Encoding\" is chunked."))
        }
        version = head.version == .http1_0 ? .http1_0 : .http1_1
        closesAfterAnswer = isStopping || !head.isKeepAlive || refusalOfOthers != nil
        // The parser treats the bytes after such a request as another protocol.
        if head.method == .CONNECT || framing.asksToUpgrade { closesAfterAnswer = true }
        guard version == .http1_0 || framing.hosts == 1 else {
            return refuse(Refusal(.requestInvalid, "An HTTP/1.1 request must have one \"Host\" header."))
        }
        let sendsContinue =
            head.version == .http1_1 && framing.hasExpectation
            && head.headers[canonicalForm: "expect"].contains { $0.lowercased() == "100-continue" }
        if let body = StreamedBody(of: head) {
            answerSeconds = settings.answerSeconds + StreamedBody.storingSeconds
            state = .streaming(Streaming(body: body, expectsContinue: sendsContinue))
            return .stream(head)
        }
        let path = head.uri.prefix { $0 != "?" }
        answerSeconds = settings.answerSeconds + (path == InboxRoutes.path ? Limits.pollWaitSeconds : 0)
        let otherLimit = path == MatrixRoutes.path ? Limits.matrixBodyBytes : Limits.apiBodyBytes
        let limit = PublishHandler.token(of: head.uri) == nil ? otherLimit : Limits.messageBodyBytes
        if let length = framing.length, Int(length) ?? .max > limit {
            return answer(head, .tooLarge(limit: limit))
        }
        state = .reading(head, ByteBuffer(), limit: limit)
        return sendsContinue ? .sendContinue : .none
    }

    // MARK: A streamed body

    /// The routes begin to read the body, because the sender is authenticated.
    mutating func bodyWanted() -> Action {
        guard case .streaming(var streaming) = state, streaming.expectsContinue else { return .none }
        streaming.expectsContinue = false
        state = .streaming(streaming)
        return .sendContinue
    }

    /// The routes have the largest allowed amount of unread body: reading pauses.
    mutating func bodyFilled() {
        guard case .streaming(var streaming) = state else { return }
        streaming.isFull = true
        state = .streaming(streaming)
        deadline = stopAt
    }

    /// The routes read a part of the body.
    mutating func bodyTaken(at second: Int) {
        guard case .streaming(var streaming) = state, streaming.isFull else { return }
        streaming.isFull = false
        state = .streaming(streaming)
        awaitMore(at: second)
    }

    private mutating func awaitMore(at second: Int) {
        guard case .streaming(var streaming) = state, !streaming.isFull else { return }
        streaming.bytesBefore = streaming.bytes
        state = .streaming(streaming)
        deadline = min(stopAt ?? .max, second + settings.bodySeconds)
    }

    /// The routes answer although the body is incomplete.
    private mutating func breakStream(_ refusal: Refusal) -> Action {
        state = .answering(isWhole: false)
        closesAfterAnswer = true
        deadline = nil
        return .streamBroke(refusal)
    }

    private mutating func answer(_ head: HTTPRequestHead, _ body: Body) -> Action {
        let isWhole = if case .whole = body { true } else { false }
        if !isWhole { closesAfterAnswer = true }
        state = .answering(isWhole: isWhole)
        deadline = nil
        return .answer(Request(head: head, body: body))
    }

    private mutating func refuse(_ refusal: Refusal) -> Action {
        state = .closing
        deadline = nil
        return .refuse(refusal)
    }

    /// All available data has been read.
    ///
    /// - Parameter bytes: The number of bytes. The parser skips chunk extensions and white space between requests silently, so
    ///   they are limited here.
    mutating func readCompleted(at second: Int, bytes: Int) -> Action {
        let parts = partsOfThisRead
        partsOfThisRead = 0
        switch state {
        case .closing:
            return .none
        case .streaming(var streaming):
            streaming.wireBytes += bytes
            state = .streaming(streaming)
            unfinishedBytes = 0
            let isEnough = streaming.bytes - streaming.bytesBefore >= streaming.body.minimumBytes
            if deadline == nil || parts > 0 && isEnough { awaitMore(at: second) }
            guard
                streaming.wireBytes
                    <= ConnectionLimits.headBytes + ConnectionLimits.bytesOnWirePerByte * streaming.bytes
            else {
                return breakStream(
                    Refusal(.bodyTooLarge, "The chunks of the body have too much overhead; send larger chunks."))
            }
            return .none
        case .reading where hasBegun:
            unfinishedBytes += bytes
        default:
            unfinishedBytes = parts == 0 ? unfinishedBytes + bytes : 0
        }
        guard unfinishedBytes <= unfinishedLimit else { return foundTooMuch() }
        switch state {
        case .awaiting where parts == 0 && !hasBegun:
            hasBegun = true
            deadline = min(deadline ?? .max, second + settings.headSeconds)
        default:
            awaitBody(at: second)
            awaitAnswer(at: second)
        }
        return .none
    }

    /// A body can arrive in chunks of a few bytes, each with a line of its own, after a head of the largest size.
    private var unfinishedLimit: Int {
        guard case .reading(_, _, let limit) = state else { return 2 * ConnectionLimits.headBytes }
        return ConnectionLimits.headBytes + ConnectionLimits.bytesOnWirePerByte * limit
    }

    private mutating func foundTooMuch() -> Action {
        switch state {
        case .reading:
            return refuse(
                Refusal(
                    .bodyTooLarge, "The body is within its limit, but its chunks have too much overhead; send larger chunks."
                ))
        case .awaiting:
            return refuse(.headTooLarge)
        case .streaming, .answering, .closing:
            closesAfterAnswer = true
            return .none
        }
    }

    private mutating func awaitAnswer(at second: Int) {
        guard case .answering = state, !hasAnswered, deadline == nil else { return }
        deadline = second + answerSeconds
    }

    private mutating func awaitBody(at second: Int) {
        guard case .reading = state, !hasBegun else { return }
        hasBegun = true
        deadline = second + (isStopping ? Self.stoppingSeconds : settings.bodySeconds)
    }

    // MARK: The answer

    /// Returns the value of "Connection" in the answer.
    ///
    /// - Parameter hasLength: Whether the length of the answer is known. For an HTTP/1.0 client, an answer without a length ends
    ///   with the connection.
    mutating func answerBegan(hasLength: Bool) -> String? {
        hasAnswered = true
        if case .answering = state { deadline = nil }
        if version == .http1_0, !hasLength { closesAfterAnswer = true }
        // The rest of the request is not read.
        if case .streaming = state { closesAfterAnswer = true }
        if closesAfterAnswer { return "close" }
        return version == .http1_0 ? "keep-alive" : nil
    }

    /// Whether an interim response is possible: the answer has not begun, and the peer supports HTTP/1.1.
    var mayNotify: Bool { version == .http1_1 && !hasAnswered && owesAnswer }

    /// Whether the answer to a request is still needed. It is not after a refusal that replaced it.
    var owesAnswer: Bool {
        switch state {
        case .streaming, .answering: true
        case .awaiting, .reading, .closing: false
        }
    }

    mutating func answerEnded(at second: Int) -> End {
        if case .streaming = state { return close(.lingering, at: second) }
        guard case .answering(let isWhole) = state else { return .open }
        guard closesAfterAnswer else {
            state = .awaiting
            hasBegun = false
            deadline = second + settings.idleSeconds
            return .open
        }
        return close(isWhole ? .flushed : .lingering, at: second)
    }

    /// The requested refusal was written.
    mutating func refused(at second: Int) -> End { close(.lingering, at: second) }

    private mutating func close(_ end: End, at second: Int) -> End {
        state = .closing
        buffered = []
        bufferedTaken = 0
        deadline = second + (end == .lingering ? 2 : 1)
        return end
    }

    private mutating func finish(at second: Int) -> Action {
        _ = close(.flushed, at: second)
        return .finish
    }

    /// Returns the action for the next part that was received during the last answer; nil if there is no such part, or the next
    /// request is being answered.
    mutating func bufferedAction(at second: Int, admitsSocket: () -> Bool) -> Action? {
        switch state {
        case .awaiting, .reading, .streaming: break
        case .answering, .closing: return nil
        }
        guard isWritable else { return nil }
        guard bufferedTaken < buffered.count else {
            buffered = []
            bufferedTaken = 0
            awaitBody(at: second)
            awaitMore(at: second)
            return end(at: second)
        }
        bufferedTaken += 1
        let action = take(buffered[bufferedTaken - 1], admitsSocket)
        awaitAnswer(at: second)
        return action
    }

    // MARK: Time

    mutating func timePassed(to second: Int, _ progress: OutputProgress) -> Action {
        if stall.isStalled(progress, at: second, periodSeconds: stallSeconds) { return .stalled }
        guard let deadline, deadline <= second else { return .none }
        switch (state, refusalOfOthers) {
        case (.awaiting, let refusal?), (.reading, let refusal?):
            return refuse(refusal)
        case (.awaiting, nil) where hasBegun, (.reading, nil):
            return refuse(Refusal(.requestTimeout, "The request did not arrive in time; send it again."))
        case (.awaiting, nil):
            return finish(at: second)
        case (.streaming, _):
            let action = breakStream(
                isStopping
                    ? Refusal(.stopping, "The server is stopping; retry.", retryAfterSeconds: 2)
                    : Refusal(
                        .requestTimeout, "Too little of the body arrived in time; send the rest on a faster connection."))
            awaitAnswer(at: second)
            return action
        case (.closing, _) where progress.waiting > 0:
            self.deadline = second + 1
            return .none
        case (.closing, _):
            return .close
        case (.answering, _):
            return hasAnswered ? .none : refuse(.notFinished(inSeconds: answerSeconds))
        }
    }

    /// The next second in which a time limit must be checked.
    var nextDeadline: Int? {
        switch (deadline, stall.deadline) {
        case (let deadline?, let stall?): min(deadline, stall)
        case (let deadline, let stall): deadline ?? stall
        }
    }

    /// Data was written. A peer that reads too little of it is disconnected after a while.
    mutating func wrote(_ progress: OutputProgress, at second: Int) {
        stall.started(progress, at: second, periodSeconds: stallSeconds)
    }

    private var stallSeconds: Int { isStopping ? Self.stoppingSeconds : settings.stallSeconds }

    /// While answers are waiting to be sent, no more requests are read.
    mutating func writabilityChanged(_ isWritable: Bool) { self.isWritable = isWritable }

    // MARK: The end

    /// The server stops. A connection that waits for a request is closed at once, any other connection after its answer.
    mutating func stopped(at second: Int) -> Action {
        isStopping = true
        stopAt = second + Self.stoppingSeconds
        closesAfterAnswer = true
        stall.hurry(to: second + Self.stoppingSeconds)
        switch state {
        case .awaiting:
            return finish(at: second)
        case .reading, .streaming:
            deadline = min(deadline ?? .max, second + Self.stoppingSeconds)
            return .none
        case .answering, .closing:
            return .none
        }
    }

    /// The connection exceeds the limit of the server or of its address. A health check is still answered.
    mutating func foundNoPlace(_ refusal: Refusal, at second: Int) {
        refusalOfOthers = refusal
        deadline = min(deadline ?? .max, second + Self.refusedSeconds)
    }

    /// The peer will send nothing more. Its requests are still answered.
    mutating func inputEnded(at second: Int) -> Action {
        if ending == nil { ending = .ended }
        return end(at: second) ?? .none
    }

    /// The received data is not valid HTTP. Earlier requests are answered first.
    mutating func received(_ fault: any Error, at second: Int) -> Action {
        switch fault {
        case HTTPParserError.headerOverflow:
            ending = .broke(.headTooLarge)
        case HTTPParserError.invalidEOFState:
            return inputEnded(at: second)
        case is HTTPParserError:
            ending = .broke(Refusal(.requestInvalid, "The received bytes are not an HTTP/1.1 request."))
        default:
            return .close
        }
        return end(at: second) ?? .none
    }

    /// Ends the connection if all answers have been sent.
    private mutating func end(at second: Int) -> Action? {
        guard let ending, bufferedTaken == buffered.count else { return nil }
        switch (state, ending) {
        case (.streaming, .ended):
            return breakStream(Refusal(.bodyIncomplete, "The body ended before it was complete."))
        case (.streaming, .broke(let refusal)): return breakStream(refusal)
        case (.closing, .ended): return .finish
        case (.closing, _), (.answering, _): return nil
        case (_, .broke(let refusal)): return refuse(refusal)
        case (.reading, .ended):
            return refuse(
                Refusal(.bodyIncomplete, "The body ended before it was complete; nothing was done. Send the request again."))
        case (.awaiting, .ended): return finish(at: second)
        }
    }
}

/// The limits of a connection before its sender is authenticated.
enum ConnectionLimits {
    static let headBytes = 16_384
    static let headFields = 100
    /// The largest number of bytes on the wire for each byte of a body.
    static let bytesOnWirePerByte = 8
    /// The largest amount of unsent data in the kernel.
    static let unsentBytes = 32_768
}

extension Refusal {
    /// The store is slow or does not respond.
    static func notFinished(inSeconds seconds: Int) -> Refusal {
        Refusal(
            .notFinished,
            "The server did not finish the request in \(seconds) seconds, but may still finish it. Check the result before you retry, or retry with the same \"Idempotency-Key\".",
            retryAfterSeconds: 30)
    }

    static let serverFull = Refusal(
        .overloaded, "The server has reached its limit of connections; retry later.", retryAfterSeconds: 10)

    fileprivate static let headTooLarge = Refusal(
        .headersTooLarge, "The head of a request must have at most \(ConnectionLimits.headBytes) bytes.")
}
