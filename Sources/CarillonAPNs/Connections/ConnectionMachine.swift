import NIOCore
import NIOHPACK

/// The state machine of one HTTP/2 connection to APNs. Its inputs are bytes and pushes; its outputs are bytes and events.
///
/// It is a client of RFC 9113 with only the features that pushing needs. It opens a stream for each request, accepts one
/// response on each stream, and obeys the peer's settings and windows. It reports exactly one event for each push:
///
/// - `answered`: APNs accepted or rejected the push.
/// - `returned`: APNs has certainly not processed the push, so it can be sent on another connection. The stream was refused,
///   was above the last stream of a GOAWAY, or its body was not sent completely.
/// - `lost`: the outcome is unknown.
///
/// After the status of a push was received, the push is answered, even if its stream or the connection fails or its time is
/// over. A push that the caller abandons before that is reset, and has no event.
///
/// The phases are: `awaitingSettings` until the peer's first SETTINGS. `open` while pushes are accepted. `draining` while
/// responses are awaited but no push is accepted (after a GOAWAY, a retirement, or the last stream number). `ended` when
/// nothing more can arrive: the caller writes `output` and closes the socket. In every phase, a fault or the end of the
/// socket leads to `ended`.
///
/// The bytes to write are in ``output``, and the events are in ``takeEvents()``. While the socket accepts no more bytes
/// (``outputPaused(_:)``), no push is accepted and the bytes stay in ``output``. The size of the replies that the peer
/// provokes is limited: the connection to a peer that sends requests and does not read the replies is ended.
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
        /// The push was not processed, because APNs refused its stream, or because the connection ended before the push was
        /// sent.
        case returned(PushID, isRefused: Bool = false)
        case lost(PushID, mayHaveBeenProcessed: Bool, detail: String)
        /// No more pushes are accepted. The responses to the pushes under way are awaited.
        case draining(ConnectionFault, APNsReason?)
        case ended(ConnectionFault)
    }

    struct Options: Sendable {
        /// The largest number of concurrent streams, even if the peer allows more.
        var maximumStreams = 1000
        /// Whether only one stream is used until the first response that shows that APNs accepts the push credentials. APNs
        /// requires this of clients with a signing key.
        var startsWithOneStream = true
        /// The time without received data after which a connection without pushes is pinged.
        var pingsAfterIdle: Duration = .seconds(600)
        /// The time without received data after which a connection that waits for responses is pinged.
        var suspectsAfter: Duration = .seconds(5)
        /// The time limit for the response to a ping, and for the first SETTINGS.
        var answersPingWithin: Duration = .seconds(5)
        /// The time after which an idle connection without a free stream is drained, because the peer opens neither its
        /// window nor its limit of streams.
        var staysFullFor: Duration = .seconds(10)
        /// The time after which a connection is ended if the socket accepts no output.
        var takesOutputWithin: Duration = .seconds(10)
        /// The largest number of bytes of replies to the peer's frames that wait to be written. One read of such frames makes
        /// a fraction of it.
        var largestBacklog = 512 << 10
        /// The number of successive pushes without a response after which the connection is drained.
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

    /// The result of a push that its caller abandons.
    enum Abandoned: Equatable {
        /// The status of the push was already received.
        case answered(RawAnswer)
        case unanswered(mayHaveBeenProcessed: Bool)
    }

    let options: Options
    var phase = Phase.awaitingSettings
    var output = ByteBuffer()
    /// The number of bytes in the output that the peer provoked.
    var repliesWaiting = 0
    var events: [Event] = []
    var peer = PeerSettings()
    var streams: [UInt32: Stream] = [:]
    /// Streams whose body waits for a window, the oldest first.
    var blocked: [UInt32] = []
    var sendWindow = 65_535
    var unacknowledgedBytes = 0
    var nextStream: UInt32
    var lastPeerStream: UInt32 = .max
    var encoder: HeaderEncoder
    var decoder: HPACKDecoder
    var inbound = ByteBuffer()
    /// A header block that is not complete.
    var headerBlock: (stream: UInt32, endsStream: Bool, bytes: ByteBuffer)?

    /// Whether a response on this connection showed that APNs accepts the push credentials.
    private(set) var isProven = false
    /// The client's own limit of streams. It is reduced when streams are refused or APNs has a fault, and increased with each
    /// response that shows that APNs accepts the push credentials.
    private(set) var ownLimit: Int
    private(set) var timeoutsInARow = 0
    private var heardAt: Moment
    private var pingedAt: Moment?
    /// The times since which responses are awaited, and since which no stream is free although no push is under way.
    /// ``timePassed(_:)`` sets both.
    private var awaitsSince: Moment?
    private var fullSince: Moment?
    /// The time since which the socket accepts no output.
    private(set) var pausedSince: Moment?
    /// Why no more pushes are accepted.
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

    /// The number of pushes that can be sent now.
    var freeStreams: Int {
        guard phase == .open, sendWindow > 0, pausedSince == nil else { return 0 }
        return max(0, streamLimit - streams.count)
    }

    /// The number of pushes that can be under way at once, by the present limits.
    var streamLimit: Int {
        min(peer.maxConcurrentStreams, ownLimit, options.startsWithOneStream && !isProven ? 1 : .max)
    }

    mutating func takeEvents() -> [Event] {
        guard !events.isEmpty else { return [] }
        defer { events.removeAll(keepingCapacity: true) }
        return events
    }

    /// Returns the bytes to write now.
    mutating func takeOutput() -> ByteBuffer? {
        guard output.readableBytes > 0 else { return nil }
        defer {
            output = ByteBuffer()
            repliesWaiting = 0
        }
        return output
    }

    // MARK: Pushes

    /// Sends a request on a new stream. Call it only while ``freeStreams`` is above 0.
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

    /// Abandons a push. It has no event.
    @discardableResult
    mutating func cancelled(_ id: UInt32) -> Abandoned {
        // A stream that is not in the table has an event that was not read yet, so the outcome is unknown.
        guard let stream = streams.removeValue(forKey: id) else { return .unanswered(mayHaveBeenProcessed: true) }
        if !blocked.isEmpty { blocked.removeAll { $0 == id } }
        writeReset(id, .cancel)
        if let answer = stream.answer { note(answer) }
        endIfDrained()
        return stream.answer.map(Abandoned.answered) ?? .unanswered(mayHaveBeenProcessed: stream.isWhole)
    }

    /// Abandons a push because its time is over. Without a status, this counts against the connection.
    mutating func timedOut(_ id: UInt32) -> Abandoned {
        if let stream = streams[id], stream.answer == nil { timeoutsInARow += 1 }
        let end = cancelled(id)
        if timeoutsInARow >= options.toleratedTimeouts, phase == .open {
            drain(ConnectionFault(.unanswering, "\(timeoutsInARow) pushes in a row were not answered."), nil)
        }
        return end
    }

    /// Accepts no more pushes, and ends after the responses to the pushes under way.
    mutating func retire(_ detail: String) {
        guard phase == .open || phase == .awaitingSettings else { return }
        drain(ConnectionFault(.retired, detail), nil)
    }

    // MARK: Time and the socket

    /// The socket accepts no more output for now.
    mutating func outputPaused(_ now: Moment) { pausedSince = pausedSince ?? now }

    /// The socket accepts output again.
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

    /// The socket was closed, by the peer or by the client.
    mutating func closed(_ detail: String) {
        guard phase != .ended else { return }
        end(ConnectionFault(.closed, detail))
    }

    /// Bytes were received. If a fault ends the connection, the remaining bytes are ignored.
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
            // The peer does not read the waiting replies, so they are dropped.
            if repliesWaiting > options.largestBacklog { output = ByteBuffer() }
            APNsFrameHead(length: 8, kind: .goAway).write(into: &output)
            output.writeMultipleIntegers(0 as UInt32, error.code.rawValue)
            end(ConnectionFault(error.isForeign ? .notHTTP2 : .protocolViolated, error.detail))
        }
    }

    // MARK: Used by the frames

    mutating func pingAnswered() { pingedAt = nil }

    /// The response to a push is complete.
    mutating func complete(_ id: UInt32, _ stream: Stream, _ answer: RawAnswer, endsCleanly: Bool) {
        streams.removeValue(forKey: id)
        if !stream.isWhole { blocked.removeAll { $0 == id } }
        // APNs responded before it received the whole request, or sent more than is needed.
        if !stream.isWhole || !endsCleanly { writeReset(id, .cancel) }
        decided(stream.push, answer)
        endIfDrained()
    }

    /// APNs accepted or rejected a push. No later event changes this outcome.
    mutating func decided(_ push: PushID, _ answer: RawAnswer) {
        note(answer)
        events.append(.answered(push, answer))
    }

    /// Records the facts about the connection that a response shows.
    private mutating func note(_ answer: RawAnswer) {
        timeoutsInARow = 0
        guard !(500...599).contains(answer.status) else { return slowDown() }
        guard !isProven || ownLimit < options.maximumStreams, answer.showsThatCredentialsAreTaken else { return }
        isProven = true
        if ownLimit < options.maximumStreams { ownLimit += 1 }
    }

    /// The peer broke a rule on one stream. Only this stream ends (RFC 9113 section 5.4.2).
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

/// A fault of the peer that ends the connection.
struct ProtocolFault: Error {
    var code: HTTP2Code
    var detail: String
    /// Whether the peer uses another protocol, so that every attempt fails.
    var isForeign = false

    init(_ code: HTTP2Code, _ detail: String, isForeign: Bool = false) {
        self.code = code
        self.detail = detail
        self.isForeign = isForeign
    }

    static let notHTTP2 = ProtocolFault(.protocolError, "The host does not support HTTP/2.", isForeign: true)
}
