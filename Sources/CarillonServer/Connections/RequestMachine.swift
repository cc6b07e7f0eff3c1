import CarillonWire
import NIOCore
import NIOHTTP1

/// The order of things on one HTTP/1.1 connection: what is read, what is answered, and when it is over. It watches over
/// the time and the shape of requests before anybody knows who sends them. Times are seconds of the ``ConnectionWheel``.
///
/// - *awaiting*: no request. Left by a head to *reading*; by silence, a stop, or the peer's end the connection closes.
/// - *reading*: a head came, and its body is gathered, up to its limit. Left to *answering* by the end of the request,
///   or when the body is larger than it may be: then the rest is not read, and the answer closes the connection.
///   A handshake for a WebSocket leaves HTTP for good.
/// - *streaming*: a head came of a request whose body is as long as it likes. The routes have it, and get the body as it comes and
///   as they take it. Left to *answering* by the end of the request; an answer that ends before closes the connection.
/// - *answering*: the routes have the request. What else comes is held, and no more is read. Left by the end of the
///   answer, to *awaiting* or to *closing*; where none begins in time, a refusal takes its place.
/// - *closing*: the last answer was given. Nothing that comes is looked at; the connection closes when the peer has
///   had the time to read.
package struct RequestMachine {
    struct Request: Equatable {
        var head: HTTPRequestHead
        var body: Body
    }

    enum Body: Equatable {
        case whole(ByteBuffer)
        /// More than the limit; what came was thrown away.
        case tooLarge(limit: Int)
    }

    enum Action: Equatable {
        case none
        /// Say "100 Continue" (RFC 9110 section 10.1.1).
        case sendContinue
        /// Ask the routes; say ``answerBegan(hasLength:)`` and ``answerEnded(at:)``.
        case answer(Request)
        /// Ask the routes, and give them the body as it comes; say ``answerBegan(hasLength:)`` and ``answerEnded(at:)``,
        /// ``bodyWanted()`` when they begin to take it, and ``bodyFilled()`` and ``bodyTaken(at:)`` as they go on.
        case stream(HTTPRequestHead)
        case streamed(ByteBuffer)
        case streamEnded
        /// The rest of the body does not come.
        case streamBroke(Refusal)
        /// HTTPAnswer with this, and end the connection as after ``End/lingering``.
        case refuse(Refusal)
        /// Take the handshake, and leave HTTP.
        case upgrade(HTTPRequestHead)
        /// Close as soon as everything that was answered is out.
        case finish
        case close
        /// Close: the peer does not read.
        case stalled
    }

    /// What the peer does no more, and what it is told behind the answers that it is still owed.
    private enum Ending {
        case ended
        case broke(Refusal)
    }

    enum End: Equatable {
        /// The connection stays; ask ``heldAction(at:)`` for what came meanwhile.
        case open
        /// Close it when the answer is out.
        case flushed
        /// The request was not read whole. Say that no more will come, and let the peer read before the connection goes.
        case lingering
    }

    package struct Settings: Sendable {
        /// How long a head may take, from the first byte of it.
        package var headSeconds = 10
        /// How long a body may take, from the end of its head; or, of one that streams, until so much more of it has come as its
        /// ``StreamedBody`` wants.
        package var bodySeconds = 30
        /// How long the routes may take to begin an answer, beyond what the request asks them to wait.
        package var answerSeconds = 30
        /// How long a connection may wait for its next request.
        package var idleSeconds = 75
        /// How long a peer may take less than ``StallClock/minimumBytes`` of what waits for it.
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
        /// When the present period began, as much of it had come.
        var bytesBefore = 0
        /// The peer waits to be told that its body is wanted.
        var expectsContinue: Bool
        /// The routes have as much of it as they may have untaken.
        var isFull = false
    }

    private static let stoppingSeconds = 2
    /// How long a connection that has no place may take to ask.
    private static let refusedSeconds = 2

    private let settings: Settings
    private let origins: AllowedOrigins
    private var state = State.awaiting
    private var held: [HTTPServerRequestPart] = []
    private var heldTaken = 0
    /// What the peer understands of the answer.
    private(set) var version = HTTPVersion.http1_1
    /// Whether the answer to the last request is a head alone.
    private(set) var isHead = false
    /// What came of the present request without bringing it to its end, in bytes.
    private var unfinishedBytes = 0
    private var closesAfterAnswer = false
    /// The connection has no place: everything but health checks is refused with this.
    private var refusalOfOthers: Refusal?
    /// The answer to the present request has begun.
    private var hasAnswered = false
    /// How long the present request may take to be answered.
    private var answerSeconds = 0
    private var isStopping = false
    /// By then the server has stopped.
    private var stopAt: Int?
    /// Something of the head came, as is expected of a new connection; or, while reading, the time for the body runs.
    private var hasBegun = true
    private var partsOfThisRead = 0
    /// When the present state is over; nil while the routes answer.
    private(set) var deadline: Int?
    private var stall = StallClock()
    private var isWritable = true
    private var ending: Ending?

    init(settings: Settings, origins: AllowedOrigins = .none, at second: Int) {
        self.settings = settings
        self.origins = origins
        deadline = second + settings.headSeconds
    }

    /// Whether more may be read from the peer.
    var wantsToRead: Bool {
        guard isWritable else { return false }
        return switch state {
        case .awaiting, .reading: held.isEmpty
        case .streaming(let streaming): held.isEmpty && !streaming.isFull
        // Behind a request that ends the connection the parser only hoards.
        case .answering(isWhole: true): held.isEmpty && !closesAfterAnswer
        case .answering, .closing: false
        }
    }

    // MARK: The request

    mutating func received(_ part: HTTPServerRequestPart, admitsSocket: () -> Bool) -> Action {
        partsOfThisRead += 1
        // Behind what is held.
        if heldTaken < held.count {
            held.append(part)
            return .none
        }
        return take(part, admitsSocket)
    }

    private mutating func take(_ part: HTTPServerRequestPart, _ admitsSocket: () -> Bool) -> Action {
        switch state {
        case .closing:
            return .none
        case .answering(let isWhole):
            if isWhole { held.append(part) }
            return .none
        case .awaiting:
            // Nothing but a head begins a request; the parser sees to it.
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
        // The parser takes what follows such a request for another protocol.
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
        let limit = PublishDoor.token(of: head.uri) == nil ? otherLimit : Limits.messageBodyBytes
        if let length = framing.length, Int(length) ?? .max > limit {
            return answer(head, .tooLarge(limit: limit))
        }
        state = .reading(head, ByteBuffer(), limit: limit)
        return sendsContinue ? .sendContinue : .none
    }

    // MARK: A body that streams

    /// The routes take it: who sends it is known.
    mutating func bodyWanted() -> Action {
        guard case .streaming(var streaming) = state, streaming.expectsContinue else { return .none }
        streaming.expectsContinue = false
        state = .streaming(streaming)
        return .sendContinue
    }

    /// The routes have as much of it as they may have untaken: no more is read.
    mutating func bodyFilled() {
        guard case .streaming(var streaming) = state else { return }
        streaming.isFull = true
        state = .streaming(streaming)
        deadline = stopAt
    }

    /// The routes took of it.
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

    /// The routes answer what they had of it.
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

    /// All that was there to be read has been.
    ///
    /// - Parameter bytes: How much it was. The parser passes over chunk extensions and the white space between requests
    ///   without a word, so that they are bounded here.
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

    /// A body may come in chunks of a few bytes, each with a line of its own, behind what the head of a request may be.
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

    /// What the answer says in "Connection".
    ///
    /// - Parameter hasLength: Whether its length is known. To a client of HTTP/1.0 another ends with the connection.
    mutating func answerBegan(hasLength: Bool) -> String? {
        hasAnswered = true
        if case .answering = state { deadline = nil }
        if version == .http1_0, !hasLength { closesAfterAnswer = true }
        // The rest of the request is not read.
        if case .streaming = state { closesAfterAnswer = true }
        if closesAfterAnswer { return "close" }
        return version == .http1_0 ? "keep-alive" : nil
    }

    /// Whether something can be told before the answer: not behind its beginning, nor in the language of HTTP/1.0.
    var mayNotify: Bool { version == .http1_1 && !hasAnswered && owesAnswer }

    /// Whether the answer to a request is still wanted: behind a refusal that took its place it is not.
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

    /// The refusal that was asked for is written.
    mutating func refused(at second: Int) -> End { close(.lingering, at: second) }

    private mutating func close(_ end: End, at second: Int) -> End {
        state = .closing
        held = []
        heldTaken = 0
        deadline = second + (end == .lingering ? 2 : 1)
        return end
    }

    private mutating func finish(at second: Int) -> Action {
        _ = close(.flushed, at: second)
        return .finish
    }

    /// What is to be done about the next part that came while the last request was answered; nil when none is left, or
    /// the next request is being answered.
    mutating func heldAction(at second: Int, admitsSocket: () -> Bool) -> Action? {
        switch state {
        case .awaiting, .reading, .streaming: break
        case .answering, .closing: return nil
        }
        guard isWritable else { return nil }
        guard heldTaken < held.count else {
            held = []
            heldTaken = 0
            awaitBody(at: second)
            awaitMore(at: second)
            return end(at: second)
        }
        heldTaken += 1
        let action = take(held[heldTaken - 1], admitsSocket)
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

    /// When time matters next.
    var nextDeadline: Int? {
        switch (deadline, stall.deadline) {
        case (let deadline?, let stall?): min(deadline, stall)
        case (let deadline, let stall): deadline ?? stall
        }
    }

    /// Something was written. A peer that takes too little of it is let go after a while.
    mutating func wrote(_ progress: OutputProgress, at second: Int) {
        stall.started(progress, at: second, periodSeconds: stallSeconds)
    }

    private var stallSeconds: Int { isStopping ? Self.stoppingSeconds : settings.stallSeconds }

    /// While answers pile up, no more requests are read.
    mutating func writabilityChanged(_ isWritable: Bool) { self.isWritable = isWritable }

    // MARK: The end

    /// The server stops: a connection that waits for a request is closed, another after its answer.
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

    /// There are as many connections as there may be, in all or from one address. A health check may still be answered.
    mutating func foundNoPlace(_ refusal: Refusal, at second: Int) {
        refusalOfOthers = refusal
        deadline = min(deadline ?? .max, second + Self.refusedSeconds)
    }

    /// The peer will send nothing more. What it asked is still answered.
    mutating func inputEnded(at second: Int) -> Action {
        if ending == nil { ending = .ended }
        return end(at: second) ?? .none
    }

    /// What came is not HTTP. What came before it is answered first.
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

    /// Ends the connection when the peer is owed nothing more.
    private mutating func end(at second: Int) -> Action? {
        guard let ending, heldTaken == held.count else { return nil }
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

/// What a connection may send before it is known who it is.
enum ConnectionLimits {
    static let headBytes = 16_384
    static let headFields = 100
    /// How many bytes each byte of a body may take on the wire.
    static let bytesOnWirePerByte = 8
    /// What the kernel may hold of what was written and not sent.
    static let unsentBytes = 32_768
}

extension Refusal {
    /// The store is slow, or stands still.
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
