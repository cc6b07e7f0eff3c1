import NIOCore

/// The nine bytes before each frame's payload (RFC 9113 section 4.1).
struct SimulatorFrameHeader {
    enum Kind {
        static let data: UInt8 = 0x0
        static let headers: UInt8 = 0x1
        static let priority: UInt8 = 0x2
        static let reset: UInt8 = 0x3
        static let settings: UInt8 = 0x4
        static let pushPromise: UInt8 = 0x5
        static let ping: UInt8 = 0x6
        static let goAway: UInt8 = 0x7
        static let windowUpdate: UInt8 = 0x8
        static let continuation: UInt8 = 0x9
    }

    enum Flag {
        static let acknowledgement: UInt8 = 0x1
        static let endStream: UInt8 = 0x1
        static let endHeaders: UInt8 = 0x4
        static let padded: UInt8 = 0x8
        static let priority: UInt8 = 0x20
    }

    static let length = 9
    /// The largest payload that is accepted and sent: the size that every peer must accept.
    static let maximumPayload = 16_384

    var payloadLength: Int
    var kind: UInt8
    var flags: UInt8
    var stream: UInt32

    func has(_ flag: UInt8) -> Bool { flags & flag != 0 }
}

extension ByteBuffer {
    /// Returns the frame header at the reader index without consuming it; nil until all of it has arrived.
    func peekFrameHeader() -> SimulatorFrameHeader? {
        guard readableBytes >= SimulatorFrameHeader.length,
            let word = getInteger(at: readerIndex, as: UInt32.self),
            let flags = getInteger(at: readerIndex + 4, as: UInt8.self),
            let stream = getInteger(at: readerIndex + 5, as: UInt32.self)
        else { return nil }
        return SimulatorFrameHeader(
            payloadLength: Int(word >> 8), kind: UInt8(truncatingIfNeeded: word), flags: flags, stream: stream & 0x7FFF_FFFF)
    }

    mutating func writeFrameHeader(_ header: SimulatorFrameHeader) {
        writeInteger(UInt32(header.payloadLength) << 8 | UInt32(header.kind))
        writeInteger(header.flags)
        writeInteger(header.stream)
    }
}
