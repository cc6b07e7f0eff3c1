import NIOCore

/// Makes WebSocket frames of a client, which are masked (RFC 6455 section 5.2).
enum ClientFrame {
    private static let mask: [UInt8] = [0x37, 0xfa, 0x21, 0x3d]

    static func text(_ text: String) -> ByteBuffer {
        var buffer = ByteBuffer()
        write(0x1, to: &buffer) { $0.writeString(text) }
        return buffer
    }

    static func pong(_ data: ByteBuffer) -> ByteBuffer {
        var buffer = ByteBuffer()
        write(0xA, to: &buffer) { $0.writeImmutableBuffer(data) }
        return buffer
    }

    /// Adds the acknowledgement of one notification to a buffer.
    static func acknowledge(channel: ByteBuffer, version: ByteBuffer, to buffer: inout ByteBuffer) {
        write(0x1, to: &buffer) { buffer in
            buffer.writeStaticString(#"{"messageType":"ack","updates":[{"channelID":""#)
            buffer.writeImmutableBuffer(channel)
            buffer.writeStaticString(#"","version":""#)
            buffer.writeImmutableBuffer(version)
            buffer.writeStaticString(#"","code":100}]}"#)
        }
    }

    /// Adds the acknowledgement of an envelope without a channel to a buffer.
    static func acknowledge(version: ByteBuffer, to buffer: inout ByteBuffer) {
        write(0x1, to: &buffer) { buffer in
            buffer.writeStaticString(#"{"messageType":"ack","updates":[{"version":""#)
            buffer.writeImmutableBuffer(version)
            buffer.writeStaticString(#"","code":100}]}"#)
        }
    }

    /// The length always takes two bytes, so that it can be set afterwards.
    private static func write(_ opcode: UInt8, to buffer: inout ByteBuffer, _ payload: (inout ByteBuffer) -> Void) {
        let start = buffer.writerIndex
        buffer.writeInteger(0x80 | opcode)
        buffer.writeInteger(0x80 | 126 as UInt8)
        buffer.writeInteger(0 as UInt16)
        buffer.writeBytes(mask)
        let payloadStart = buffer.writerIndex
        payload(&buffer)
        let length = buffer.writerIndex - payloadStart
        if length > 125 {
            buffer.setInteger(UInt16(length), at: start + 2)
        } else {
            // Control frames and strict servers require the short form.
            let payload = buffer.getSlice(at: payloadStart, length: length) ?? ByteBuffer()
            buffer.moveWriterIndex(to: start + 1)
            buffer.writeInteger(0x80 | UInt8(length))
            buffer.writeBytes(mask)
            buffer.writeImmutableBuffer(payload)
        }
        applyMask(to: &buffer, last: length)
    }

    private static func applyMask(to buffer: inout ByteBuffer, last count: Int) {
        let start = buffer.readableBytes - count
        buffer.withUnsafeMutableReadableBytes { bytes in
            for index in 0..<count { bytes[start + index] ^= mask[index & 3] }
        }
    }
}
