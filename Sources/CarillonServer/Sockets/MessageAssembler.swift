import CarillonWire
import NIOCore
import NIOWebSocket

/// Puts text messages together from WebSocket frames (RFC 6455 section 5), within limits.
///
/// No extension is negotiated, so a frame with a reserved bit breaks the protocol; that is also what becomes of a
/// compressed frame, which is never inflated.
struct MessageAssembler {
    enum Event {
        case text([UInt8])
        case ping(ByteBuffer)
        case pong
        case close(WebSocketErrorCode?)
        case fault(CloseCode, String)
        /// A part of a message.
        case incomplete
    }

    private static let fragmentLimit = 128

    private var fragments: ByteBuffer?
    private var fragmentCount = 0
    private let limit: Int

    init(limit: Int = Limits.clientFrameBytes) { self.limit = limit }

    mutating func received(_ frame: WebSocketFrame) -> Event {
        guard !frame.rsv1, !frame.rsv2, !frame.rsv3 else {
            return .fault(.protocolError, "reserved_bit: no extension was agreed on")
        }
        guard frame.maskKey != nil else { return .fault(.protocolError, "unmasked: a client masks its frames") }
        switch frame.opcode {
        case .text:
            guard fragments == nil else { return .fault(.protocolError, "fragment_expected: the last message is not done") }
            if frame.fin { return text(frame.unmaskedData) }
            fragments = frame.unmaskedData
            fragmentCount = 1
            return .incomplete
        case .continuation:
            return continued(frame)
        case .binary:
            return .fault(.unsupportedData, "binary: only text is understood")
        case .ping:
            return .ping(frame.unmaskedData)
        case .pong:
            return .pong
        case .connectionClose:
            return Self.close(frame.unmaskedData)
        default:
            return .fault(.protocolError, "opcode: unknown")
        }
    }

    private mutating func continued(_ frame: WebSocketFrame) -> Event {
        guard var whole = fragments.take() else {
            return .fault(.protocolError, "fragment_unexpected: no message was begun")
        }
        fragmentCount += 1
        var part = frame.unmaskedData
        guard whole.readableBytes + part.readableBytes <= limit else {
            return .fault(.tooBig, "message_too_big: at most \(limit) bytes")
        }
        whole.writeBuffer(&part)
        if frame.fin { return text(whole) }
        guard fragmentCount < Self.fragmentLimit else {
            return .fault(.policy, "too_many_fragments: at most \(Self.fragmentLimit) in a message")
        }
        fragments = whole
        return .incomplete
    }

    /// RFC 6455 sections 5.5.1 and 7.4: nothing, or a code that may be sent and a reason in UTF-8.
    private static func close(_ data: ByteBuffer) -> Event {
        var data = data
        if data.readableBytes == 0 { return .close(nil) }
        guard let code = data.readInteger(as: UInt16.self) else {
            return .fault(.protocolError, "close_code: a code has two bytes")
        }
        switch code {
        case 1000...1003, 1007...1014, 3000...4999: break
        default: return .fault(.protocolError, "close_code: this one is never sent")
        }
        guard String(validating: data.readableBytesView, as: UTF8.self) != nil else {
            return .fault(.invalidUTF8, "close_reason: a reason is UTF-8")
        }
        return .close(WebSocketErrorCode(codeNumber: Int(code)))
    }

    private func text(_ buffer: ByteBuffer) -> Event {
        let bytes = Array(buffer.readableBytesView)
        guard String(validating: bytes, as: UTF8.self) != nil else {
            return .fault(.invalidUTF8, "utf8: a text message is UTF-8")
        }
        return .text(bytes)
    }
}
