import NIOCore

/// The nine bytes before each HTTP/2 frame (RFC 9113 section 4.1).
struct APNsFrameHead: Equatable {
    static let bytes = 9
    /// The payload size that every peer must accept in one frame (section 4.2). No frame that is sent or read here is larger.
    static let largestPayload = 16_384

    enum Kind: UInt8 {
        case data = 0
        case headers, priority, resetStream, settings, pushPromise, ping, goAway, windowUpdate, continuation
    }

    struct Flags: OptionSet {
        let rawValue: UInt8
        static let endStream = Flags(rawValue: 0x1)
        static let acknowledgement = Flags(rawValue: 0x1)
        static let endHeaders = Flags(rawValue: 0x4)
        static let padded = Flags(rawValue: 0x8)
        static let priority = Flags(rawValue: 0x20)
    }

    var length: Int
    /// Nil for a kind that this version of the protocol does not define; such frames are skipped.
    var kind: Kind?
    var flags: Flags
    var stream: UInt32

    init(length: Int, kind: Kind?, flags: Flags = [], stream: UInt32 = 0) {
        self.length = length
        self.kind = kind
        self.flags = flags
        self.stream = stream
    }

    /// Reads the head of the next frame without consuming it. Returns nil if the head is not complete.
    init?(peekingAt buffer: ByteBuffer) {
        guard let word = buffer.getInteger(at: buffer.readerIndex, as: UInt64.self),
            let last = buffer.getInteger(at: buffer.readerIndex + 8, as: UInt8.self),
            buffer.readableBytes >= Self.bytes
        else { return nil }
        length = Int(word >> 40)
        kind = Kind(rawValue: UInt8(truncatingIfNeeded: word >> 32))
        flags = Flags(rawValue: UInt8(truncatingIfNeeded: word >> 24))
        stream = (UInt32(truncatingIfNeeded: word & 0xFF_FFFF) << 8 | UInt32(last)) & 0x7FFF_FFFF
    }

    func write(into buffer: inout ByteBuffer) {
        let word = UInt64(length) << 40 | UInt64(kind?.rawValue ?? 0xFF) << 32 | UInt64(flags.rawValue) << 24
        buffer.writeMultipleIntegers(word | UInt64(stream >> 8), UInt8(truncatingIfNeeded: stream))
    }
}

/// The error codes of HTTP/2 (RFC 9113 section 7) that are used here.
struct HTTP2Code: RawRepresentable, Hashable, Sendable {
    let rawValue: UInt32
    static let noError = HTTP2Code(rawValue: 0)
    static let protocolError = HTTP2Code(rawValue: 1)
    static let flowControlError = HTTP2Code(rawValue: 3)
    static let frameSizeError = HTTP2Code(rawValue: 6)
    static let refusedStream = HTTP2Code(rawValue: 7)
    static let cancel = HTTP2Code(rawValue: 8)
    static let compressionError = HTTP2Code(rawValue: 9)
    static let enhanceYourCalm = HTTP2Code(rawValue: 11)
}

/// The settings of a peer (RFC 9113 section 6.5.2).
struct PeerSettings: Equatable {
    var maxConcurrentStreams = Int(Int32.max)
    var initialWindow = 65_535

    static let headerTableSize: UInt16 = 1
    static let enablePush: UInt16 = 2
    static let maxConcurrentStreams: UInt16 = 3
    static let initialWindowSize: UInt16 = 4
    static let maxFrameSize: UInt16 = 5
    static let maxHeaderListSize: UInt16 = 6
}
