import NIOCore
import NIOHPACK

/// One HTTP/2 connection to the service, as a machine: bytes and pushes go in, bytes and events come out.
///
/// It is a client of RFC 9113 that knows only what pushing needs: it opens streams with a request, takes one answer on
/// each, keeps to the peer's settings and windows, and says of every push that it was given exactly one thing:
///
/// - `answered`: the service said what it decided;
/// - `returned`: the service has certainly not processed it (refused, above the last stream of a GOAWAY, or its body never
///   left whole): it can be sent on another connection;
/// - `lost`: nobody knows.
///
/// A push whose status was read is answered, whatever becomes of its stream, of the connection or of the push's time.
/// A push that the caller gives up otherwise is reset and not spoken of again.
///
/// Phases: `awaitingSettings` until the peer's first SETTINGS; `open` while it takes pushes; `draining` while answers are
/// awaited but no push is taken (a GOAWAY, a retirement, no stream numbers left); `ended` when nothing is to come: what
/// `output` holds is to be written and the socket closed. From every phase a fault or the socket's end leads to `ended`.
///
/// The bytes to write are in ``output``, the events in ``takeEvents()``. While the socket takes no more of them
/// (``outputPaused(_:)``) no push is taken and they stay here, where those that the peer provokes are bounded: a peer that
/// asks and does not read is left.
struct ConnectionMachine {
    enum Phase: Equatable {
        case awaitingSettings
        case open
        case draining
        case ended
    }

    enum Event: Equatable {
        case opened
        case answered(PushID, RawAnswer)
        /// It comes back unprocessed: because the service refused its stream, or because the connection ended before it.
        case returned(PushID, isRefused: Bool = false)
        case lost(PushID, mayHaveBeenProcessed: Bool, detail: String)
        /// No push is taken any more; the answers to those under way are awaited.
        case draining(ConnectionFault, APNsReason?)
        case ended(ConnectionFault)
    }

    struct Options: Sendable {
        /// The most streams at once, whatever the peer allows.
        var maximumStreams = 1000
        /// One stream until the first answer that shows that the service takes the credentials, which the service demands of
        /// those with a token key.
        var startsWithOneStream = true
        /// A ping after so long without a byte.
        var pingsAfterIdle: Duration = .seconds(600)
        /// A ping when an answer is awaited and nothing came for so long.
        var suspectsAfter: Duration = .seconds(5)
        /// How long the answer to a ping, or the first SETTINGS, may take.
        var answersPingWithin: Duration = .seconds(5)
        /// An idle connection that has no room for so long, with its window or its streams used up, is given up.
        var staysFullFor: Duration = .seconds(10)
        /// A socket that takes nothing for so long is given up.
        var takesOutputWithin: Duration = .seconds(10)
        /// So many bytes of answers to the peer's own frames may wait to be written. One read of its frames makes a
        /// fraction of it.
        var largestBacklog = 512 << 10
        /// So many unanswered pushes in a row end the connection's use.
        var toleratedTimeouts = 3
        var authority = "api.push.apple.com"
        var isSecure = true
        var indexesAuthorization = true
        var firstStream: UInt32 = 1
    }

    struct Stream {
        var push: PushID
        var body: ByteBuffer
        var window: Int
        var answer: RawAnswer?
        var answerLimit: Int
        var unacknowledgedBytes = 0
        var isWhole: Bool { body.readableBytes == 0 }
    }

    /// What becomes of a push that its caller gives up.
    enum GivenUp: Equatable {
        /// Its status was there already.
        case answered(RawAnswer)
        case unanswered(mayHaveBeenProcessed: Bool)
    }

    let options: Options
    var phase = Phase.awaitingSettings
    var output = ByteBuffer()
    /// How many bytes of the output the peer provoked.
    var repliesWaiting = 0
    var events: [Event] = []
    var peer = PeerSettings()
    var streams: [UInt32: Stream] = [:]
    /// Streams whose body waits for a window, oldest first.
    var blocked: [UInt32] = []
    var sendWindow = 65_535
    var unacknowledgedBytes = 0
    var nextStream: UInt32
    var lastPeerStream: UInt32 = .max
    var encoder: HeaderEncoder
    var decoder: HPACKDecoder
    var inbound = ByteBuffer()
    /// A header block that is not whole yet.
    var headerBlock: (stream: UInt32, endsStream: Bool, bytes: ByteBuffer)?

    /// Whether an answer on this connection showed that the service takes the credentials.
    private(set) var isProven = false
    /// Our own limit, which falls when streams are refused or the service has trouble, and rises with each answer that shows
    /// that the service takes the credentials.
    private(set) var ownLimit: Int
    private(set) var timeoutsInARow = 0
    private var heardAt: Moment
    private var pingedAt: Moment?
    /// Since when answers are awaited, and since when there is no room although nothing is under way; seen by the clock.
    private var awaitsSince: Moment?
    private var fullSince: Moment?
    /// Since when the socket takes no output.
    private(set) var pausedSince: Moment?
    /// Why no push is taken any more.
    private var drainFault: ConnectionFault?

    init(options: Options, now: Moment) {
        self.options = options
        nextStream = options.firstStream
        ownLimit = options.maximumStreams
        heardAt = now
        encoder = HeaderEncoder(
            authority: options.authority, isSecure: options.isSecure, indexesAuthorization: options.indexesAuthorization)
        decoder = HPACKDecoder(allocator: ByteBufferAllocator(), maxDynamicTableSize: 4096, maxHeaderListSize: 16_384)
        output.writeString("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        APNsFrameHead(length: 18, kind: .settings).write(into: &output)
        output.writeMultipleIntegers(PeerSettings.enablePush, 0 as UInt32)
        output.writeMultipleIntegers(PeerSettings.maxConcurrentStreams, 0 as UInt32)
        output.writeMultipleIntegers(PeerSettings.maxHeaderListSize, 16_384 as UInt32)
    }

    /// How many pushes can be given now.
    var freeStreams: Int {
        guard phase == .open, sendWindow > 0, pausedSince == nil else { return 0 }
        return max(0, streamLimit - streams.count)
    }

    /// How many pushes the connection can hold at once, as things stand.
    var streamLimit: Int {
        min(peer.maxConcurrentStreams, ownLimit, options.startsWithOneStream && !isProven ? 1 : .max)
    }

    mutating func takeEvents() -> [Event] {
        guard !events.isEmpty else { return [] }
        defer { events.removeAll(keepingCapacity: true) }
        return events
    }

    /// What is to be written now.
    mutating func takeOutput() -> ByteBuffer? {
        guard output.readableBytes > 0 else { return nil }
        defer {
            output = ByteBuffer()
            repliesWaiting = 0
        }
        return output
    }

    // MARK: Pushes

    /// Sends a request on a stream of its own. Call it only while ``freeStreams`` is above 0.
    mutating func send(
        _ push: PushID, _ head: APNsRequestHead, _ authorization: ProviderToken?, path: String, body: RequestBody
    ) -> UInt32 {
        precondition(freeStreams > 0, "A push must be sent only to a connection that can accept it.")
        let id = nextStream
        nextStream += 2
        writeHeaders(id, head, authorization, path: path, endsStream: body.count == 0)
        var stream = Stream(
            push: push, body: body.buffer, window: peer.initialWindow, answerLimit: head.method == .get ? 4 << 20 : 16_384)
        writeBody(of: id, &stream)
        if !stream.isWhole { blocked.append(id) }
        streams[id] = stream
        if nextStream > 0x7FFF_FFFF { drain(ConnectionFault(.exhausted, "All stream numbers are used."), nil) }
        return id
    }

    /// Gives a push up. Nothing more is said of it.
    @discardableResult
    mutating func cancelled(_ id: UInt32) -> GivenUp {
        // What is no longer here has an event that was not read yet: then nobody knows.
        guard let stream = streams.removeValue(forKey: id) else { return .unanswered(mayHaveBeenProcessed: true) }
        if !blocked.isEmpty { blocked.removeAll { $0 == id } }
        writeReset(id, .cancel)
        if let answer = stream.answer { note(answer) }
        endIfDrained()
        return stream.answer.map(GivenUp.answered) ?? .unanswered(mayHaveBeenProcessed: stream.isWhole)
    }

    /// Gives a push up because its time is over, which speaks against the connection when there is no status.
    mutating func timedOut(_ id: UInt32) -> GivenUp {
        if let stream = streams[id], stream.answer == nil { timeoutsInARow += 1 }
        let end = cancelled(id)
        if timeoutsInARow >= options.toleratedTimeouts, phase == .open {
            drain(ConnectionFault(.unanswering, "\(timeoutsInARow) pushes in a row were not answered."), nil)
        }
        return end
    }

    /// Takes no more pushes; ends when the answers to those under way are there.
    mutating func retire(_ detail: String) {
        guard phase == .open || phase == .awaitingSettings else { return }
        drain(ConnectionFault(.retired, detail), nil)
    }

    // MARK: Time and the socket

    /// The socket takes no more output for now.
    mutating func outputPaused(_ now: Moment) { pausedSince = pausedSince ?? now }

    /// The socket takes output again.
    mutating func outputResumed() { pausedSince = nil }

    mutating func timePassed(_ now: Moment) {
        guard phase != .ended else { return }
        awaitsSince = streams.isEmpty ? nil : awaitsSince ?? now
        fullSince = phase == .open && streams.isEmpty && freeStreams == 0 ? fullSince ?? now : nil
        if let fullSince, now - fullSince > options.staysFullFor {
            drain(ConnectionFault(.unanswering, "The service left no window for a push."), nil)
            return
        }
        if let pausedSince, now - pausedSince > options.takesOutputWithin {
            return end(ConnectionFault(.silent, "The service read nothing for \(options.takesOutputWithin)."))
        }
        let quietSince = max(heardAt, awaitsSince ?? heardAt)
        if let pingedAt {
            if now - pingedAt > options.answersPingWithin {
                end(ConnectionFault(.silent, "The service did not answer a ping within \(options.answersPingWithin)."))
            }
        } else if phase == .awaitingSettings {
            if now - heardAt > options.answersPingWithin {
                end(ConnectionFault(.silent, "The host sent no HTTP/2 SETTINGS within \(options.answersPingWithin)."))
            }
        } else if now - quietSince > (streams.isEmpty ? options.pingsAfterIdle : options.suspectsAfter) {
            pingedAt = now
            APNsFrameHead(length: 8, kind: .ping).write(into: &output)
            output.writeInteger(0x4361_7269_6C6C_6F6E as UInt64)
        }
    }

    /// The socket is closed, by whomever.
    mutating func closed(_ detail: String) {
        guard phase != .ended else { return }
        end(ConnectionFault(.closed, detail))
    }

    /// Bytes came. When a fault ends the connection the rest of them is not looked at.
    mutating func received(_ bytes: inout ByteBuffer, now: Moment) {
        guard phase != .ended else { return }
        heardAt = now
        if inbound.readableBytes > 0 {
            inbound.writeBuffer(&bytes)
            swap(&inbound, &bytes)
            inbound = ByteBuffer()
        }
        do throws(ProtocolFault) {
            while phase != .ended, let head = APNsFrameHead(peekingAt: bytes) {
                guard head.length <= APNsFrameHead.largestPayload else {
                    throw phase == .awaitingSettings
                        ? .notHTTP2
                        : ProtocolFault(
                            .frameSizeError, "A frame has \(head.length) bytes; \(APNsFrameHead.largestPayload) are allowed."
                        )
                }
                guard bytes.readableBytes >= APNsFrameHead.bytes + head.length else { break }
                bytes.moveReaderIndex(forwardBy: APNsFrameHead.bytes)
                guard var payload = bytes.readSlice(length: head.length) else { break }
                try received(head, &payload)
                guard repliesWaiting <= options.largestBacklog else {
                    throw ProtocolFault(.enhanceYourCalm, "The service asks for more answers than it reads.")
                }
            }
            if phase != .ended, bytes.readableBytes > 0 { inbound = bytes.slice() }
        } catch {
            // Nobody reads what waits behind a backlog.
            if repliesWaiting > options.largestBacklog { output = ByteBuffer() }
            APNsFrameHead(length: 8, kind: .goAway).write(into: &output)
            output.writeMultipleIntegers(0 as UInt32, error.code.rawValue)
            end(ConnectionFault(error.isForeign ? .notHTTP2 : .protocolViolated, error.detail))
        }
    }

    // MARK: For the frames

    mutating func pingAnswered() { pingedAt = nil }

    /// The answer to a push is whole.
    mutating func complete(_ id: UInt32, _ stream: Stream, _ answer: RawAnswer, endsCleanly: Bool) {
        streams.removeValue(forKey: id)
        if !stream.isWhole { blocked.removeAll { $0 == id } }
        // The service has decided before it had everything, or says more than is wanted.
        if !stream.isWhole || !endsCleanly { writeReset(id, .cancel) }
        decided(stream.push, answer)
        endIfDrained()
    }

    /// The service decided about a push: nothing that comes later changes it.
    mutating func decided(_ push: PushID, _ answer: RawAnswer) {
        note(answer)
        events.append(.answered(push, answer))
    }

    /// Notes what an answer says about the connection.
    private mutating func note(_ answer: RawAnswer) {
        timeoutsInARow = 0
        guard !(500...599).contains(answer.status) else { return slowDown() }
        guard !isProven || ownLimit < options.maximumStreams, answer.showsThatCredentialsAreTaken else { return }
        isProven = true
        if ownLimit < options.maximumStreams { ownLimit += 1 }
    }

    /// The peer broke a rule on one stream, which ends that stream alone (RFC 9113 section 5.4.2).
    mutating func fail(_ id: UInt32, _ stream: Stream, _ code: HTTP2Code, _ detail: String) {
        streams.removeValue(forKey: id)
        if !stream.isWhole { blocked.removeAll { $0 == id } }
        writeReset(id, code)
        if let answer = stream.answer {
            decided(stream.push, answer)
        } else {
            events.append(.lost(stream.push, mayHaveBeenProcessed: stream.isWhole, detail: detail))
        }
        endIfDrained()
    }

    mutating func slowDown() { ownLimit = max(1, min(ownLimit, streams.count + 1) / 2) }

    mutating func drain(_ fault: ConnectionFault, _ reason: APNsReason?) {
        guard phase != .ended, phase != .draining else { return }
        phase = .draining
        drainFault = fault
        events.append(.draining(fault, reason))
        endIfDrained()
    }

    mutating func endIfDrained() {
        guard phase == .draining, streams.isEmpty else { return }
        APNsFrameHead(length: 8, kind: .goAway).write(into: &output)
        output.writeMultipleIntegers(0 as UInt32, HTTP2Code.noError.rawValue)
        phase = .ended
        events.append(.ended(drainFault ?? ConnectionFault(.retired, "The connection is no longer used.")))
    }

    mutating func end(_ fault: ConnectionFault) {
        guard phase != .ended else { return }
        phase = .ended
        blocked = []
        for id in streams.keys.sorted() {
            guard let stream = streams[id] else { continue }
            if let answer = stream.answer {
                decided(stream.push, answer)
            } else if !stream.isWhole || id > lastPeerStream {
                events.append(.returned(stream.push))
            } else {
                events.append(.lost(stream.push, mayHaveBeenProcessed: true, detail: fault.detail))
            }
        }
        streams = [:]
        events.append(.ended(fault))
    }
}

/// What a peer did that ends the connection.
struct ProtocolFault: Error {
    var code: HTTP2Code
    var detail: String
    /// Whether it speaks another protocol, and always will.
    var isForeign = false

    init(_ code: HTTP2Code, _ detail: String, isForeign: Bool = false) {
        self.code = code
        self.detail = detail
        self.isForeign = isForeign
    }

    static let notHTTP2 = ProtocolFault(.protocolError, "The host does not support HTTP/2.", isForeign: true)
}
