import CarillonWire
import NIOCore

/// The header of a WebSocket frame (RFC 6455 section 5.2).
struct WebSocketFrameHeader {
    enum Opcode: UInt8 {
        case continuation = 0x0
        case text = 0x1
        case close = 0x8
        case ping = 0x9
        case pong = 0xA
    }

    enum Reading {
        case header(WebSocketFrameHeader)
        case incomplete
        case fault(CloseCode, String)
    }

    var isFinal: Bool
    var opcode: Opcode
    var mask: UInt32
    /// The length of the header itself, in bytes.
    var length: Int
    var payloadLength: Int

    /// Reads the header of a client's frame, which can be incomplete.
    static func read(from bytes: ByteBuffer) -> Reading {
        let start = bytes.readerIndex
        guard let first = bytes.getInteger(at: start, as: UInt8.self) else { return .incomplete }
        guard first & 0x70 == 0 else { return .fault(.protocolError, "reserved_bit: no extension was agreed on") }
        let isFinal = first & 0x80 != 0
        guard let opcode = Opcode(rawValue: first & 0x0F) else {
            return first & 0x0F == 0x2
                ? .fault(.unsupportedData, "binary: only text is understood")
                : .fault(.protocolError, "opcode: unknown")
        }
        guard let second = bytes.getInteger(at: start + 1, as: UInt8.self) else { return .incomplete }
        guard second & 0x80 != 0 else { return .fault(.protocolError, "unmasked: a client masks its frames") }
        var length = 2
        var payloadLength = UInt64(second & 0x7F)
        if opcode.rawValue >= 0x8, payloadLength > 125 || !isFinal {
            return .fault(.protocolError, "control_frame: at most 125 bytes, and not in fragments")
        }
        switch payloadLength {
        case 126:
            guard let long = bytes.getInteger(at: start + 2, as: UInt16.self) else { return .incomplete }
            guard long > 125 else { return .fault(.protocolError, "length: written longer than it must be") }
            payloadLength = UInt64(long)
            length = 4
        case 127:
            guard let long = bytes.getInteger(at: start + 2, as: UInt64.self) else { return .incomplete }
            guard long > 0xFFFF, long >> 63 == 0 else {
                return .fault(.protocolError, "length: written longer than it must be")
            }
            payloadLength = long
            length = 10
        default:
            break
        }
        guard let mask = bytes.getInteger(at: start + length, as: UInt32.self) else { return .incomplete }
        return .header(
            WebSocketFrameHeader(
                isFinal: isFinal, opcode: opcode, mask: mask, length: length + 4,
                payloadLength: Int(clamping: payloadLength)))
    }

    /// Returns a complete frame of the server, unmasked.
    static func frame(_ opcode: Opcode, _ payload: some Collection<UInt8>, _ allocator: ByteBufferAllocator) -> ByteBuffer {
        let count = payload.count
        var frame = allocator.buffer(capacity: count + 10)
        frame.writeInteger(0x80 | opcode.rawValue)
        switch count {
        case ...125:
            frame.writeInteger(UInt8(count))
        case ...0xFFFF:
            frame.writeInteger(UInt8(126))
            frame.writeInteger(UInt16(count))
        default:
            frame.writeInteger(UInt8(127))
            frame.writeInteger(UInt64(count))
        }
        frame.writeBytes(payload)
        return frame
    }
}

extension CloseCode {
    /// Returns the payload of a close frame: the code, and as many whole characters of the reason as fit (RFC 6455 section 5.5).
    func payload(_ reason: String) -> [UInt8] {
        var payload = [UInt8(rawValue >> 8), UInt8(rawValue & 0xFF)]
        for scalar in reason.unicodeScalars {
            guard payload.count + scalar.utf8.count <= 125 else { break }
            payload.append(contentsOf: scalar.utf8)
        }
        return payload
    }
}

extension ByteBuffer {
    /// Unmasks the payload (RFC 6455 section 5.3).
    mutating func unmask(_ mask: UInt32) {
        let key = mask.bigEndian
        withUnsafeMutableReadableBytes { bytes in
            let words = bytes.count / 4
            for word in 0..<words {
                let value = bytes.loadUnaligned(fromByteOffset: word * 4, as: UInt32.self) ^ key
                bytes.storeBytes(of: value, toByteOffset: word * 4, as: UInt32.self)
            }
            withUnsafeBytes(of: key) { key in
                for index in words * 4..<bytes.count { bytes[index] ^= key[index % 4] }
            }
        }
    }
}
