import CarillonWire
import NIOCore

/// Reads a client's messages from the bytes of a socket (RFC 6455 section 5), within limits.
///
/// No extension is negotiated, so a frame with a reserved bit is a protocol error. This includes compressed frames, which are
/// never inflated. After a fault, reading stops.
struct MessageReader {
    enum Event: Equatable {
        case text([UInt8])
        case ping(ByteBuffer)
        case pong
        case close(code: UInt16?)
        case fault(CloseCode, String)
    }

    private static let fragmentLimit = 128

    private let limit: Int
    /// The bytes of an incomplete frame.
    private var pending: ByteBuffer?
    private var message: [UInt8]?
    private var fragmentCount: UInt8 = 0
    private var isFaulty = false
    private var frameCount = 0

    init(limit: Int = Limits.clientFrameBytes) { self.limit = limit }

    mutating func received(_ bytes: ByteBuffer) {
        guard !isFaulty else { return }
        guard var whole = pending.take() else {
            pending = bytes
            return
        }
        whole.writeImmutableBuffer(bytes)
        pending = whole
    }

    /// Returns the number of frames read since the last call, including frames of incomplete messages.
    mutating func takeFrameCount() -> Int {
        defer { frameCount = 0 }
        return frameCount
    }

    /// Returns the next message; nil if it is incomplete.
    mutating func next() -> Event? {
        while !isFaulty, var bytes = pending.take() {
            let header: WebSocketFrameHeader
            switch WebSocketFrameHeader.read(from: bytes) {
            case .incomplete:
                keep(bytes)
                return nil
            case .fault(let code, let reason):
                return fault(code, reason)
            case .header(let read):
                header = read
            }
            guard header.payloadLength <= limit else { return fault(.tooBig, "frame_too_big: at most \(limit) bytes") }
            guard bytes.readableBytes >= header.length + header.payloadLength else {
                keep(bytes)
                return nil
            }
            bytes.moveReaderIndex(forwardBy: header.length)
            guard var payload = bytes.readSlice(length: header.payloadLength) else { return nil }
            payload.unmask(header.mask)
            frameCount += 1
            if bytes.readableBytes > 0 { pending = bytes }
            if let event = received(header, payload) { return event }
        }
        return nil
    }

    private mutating func keep(_ bytes: ByteBuffer) {
        var bytes = bytes
        if bytes.readerIndex > 4096 { bytes.discardReadBytes() }
        if bytes.readableBytes > 0 { pending = bytes }
    }

    private mutating func fault(_ code: CloseCode, _ reason: String) -> Event {
        isFaulty = true
        pending = nil
        message = nil
        return .fault(code, reason)
    }

    private mutating func received(_ frame: WebSocketFrameHeader, _ payload: ByteBuffer) -> Event? {
        switch frame.opcode {
        case .text:
            guard message == nil else { return fault(.protocolError, "fragment_expected: the last message is not done") }
            let bytes = Array(buffer: payload)
            if frame.isFinal { return text(bytes) }
            message = bytes
            fragmentCount = 1
            return nil
        case .continuation:
            return continued(frame, payload)
        case .ping:
            return .ping(payload)
        case .pong:
            return .pong
        case .close:
            return close(payload)
        }
    }

    private mutating func continued(_ frame: WebSocketFrameHeader, _ payload: ByteBuffer) -> Event? {
        guard var whole = message.take() else { return fault(.protocolError, "fragment_unexpected: no message was begun") }
        fragmentCount += 1
        guard whole.count + payload.readableBytes <= limit else {
            return fault(.tooBig, "message_too_big: at most \(limit) bytes")
        }
        whole.append(contentsOf: payload.readableBytesView)
        if frame.isFinal { return text(whole) }
        guard fragmentCount < Self.fragmentLimit else {
            return fault(.policy, "too_many_fragments: at most \(Self.fragmentLimit) in a message")
        }
        message = whole
        return nil
    }

    /// Reads the payload of a close frame (RFC 6455 sections 5.5.1 and 7.4). It is empty, or contains a permitted code and a
    /// reason in UTF-8.
    private mutating func close(_ payload: ByteBuffer) -> Event {
        var payload = payload
        if payload.readableBytes == 0 { return .close(code: nil) }
        guard let code = payload.readInteger(as: UInt16.self) else {
            return fault(.protocolError, "close_code: a code has two bytes")
        }
        switch code {
        case 1000...1003, 1007...1014, 3000...4999: break
        default: return fault(.protocolError, "close_code: this one is never sent")
        }
        guard String(validating: payload.readableBytesView, as: UTF8.self) != nil else {
            return fault(.invalidUTF8, "close_reason: a reason is UTF-8")
        }
        return .close(code: code)
    }

    private mutating func text(_ bytes: [UInt8]) -> Event {
        guard String(validating: bytes, as: UTF8.self) != nil else {
            return fault(.invalidUTF8, "utf8: a text message is UTF-8")
        }
        return .text(bytes)
    }
}
