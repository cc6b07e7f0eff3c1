import NIOCore

/// A WebSocket frame of a server: not fragmented and not masked.
struct ServerFrame {
    enum Opcode {
        case text, ping, close, other
    }

    var opcode: Opcode
    var payload: ByteBuffer

    /// Removes the first frame from a buffer. Returns nil while it is not complete.
    static func take(from buffer: inout ByteBuffer) -> ServerFrame? {
        guard let first: UInt8 = buffer.getInteger(at: buffer.readerIndex),
            let second: UInt8 = buffer.getInteger(at: buffer.readerIndex + 1)
        else { return nil }
        var headLength = 2
        var length = Int(second & 0x7F)
        if length == 126 {
            guard let long: UInt16 = buffer.getInteger(at: buffer.readerIndex + 2) else { return nil }
            length = Int(long)
            headLength = 4
        } else if length == 127 {
            guard let long: UInt64 = buffer.getInteger(at: buffer.readerIndex + 2) else { return nil }
            length = Int(clamping: long)
            headLength = 10
        }
        guard buffer.readableBytes >= headLength + length else { return nil }
        buffer.moveReaderIndex(forwardBy: headLength)
        guard let payload = buffer.readSlice(length: length) else { return nil }
        let opcode: Opcode =
            switch first & 0xF {
            case 1: .text
            case 8: .close
            case 9: .ping
            default: .other
            }
        return ServerFrame(opcode: opcode, payload: payload)
    }
}
