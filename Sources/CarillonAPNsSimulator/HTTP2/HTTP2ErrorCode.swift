extension APNsSimulator {
    /// An error code of HTTP/2, as RST_STREAM and GOAWAY carry it (RFC 9113 section 7).
    public struct HTTP2ErrorCode: RawRepresentable, Hashable, Sendable {
        /// The number on the wire.
        public var rawValue: UInt32

        /// Any code, known or not.
        public init(rawValue: UInt32) { self.rawValue = rawValue }

        /// Nothing went wrong.
        public static let noError = HTTP2ErrorCode(rawValue: 0x0)
        /// The peer broke the protocol.
        public static let protocolError = HTTP2ErrorCode(rawValue: 0x1)
        /// The endpoint failed.
        public static let internalError = HTTP2ErrorCode(rawValue: 0x2)
        /// The peer sent more than its window.
        public static let flowControlError = HTTP2ErrorCode(rawValue: 0x3)
        /// A frame came for a stream that is closed.
        public static let streamClosed = HTTP2ErrorCode(rawValue: 0x5)
        /// A frame has a length that it cannot have.
        public static let frameSizeError = HTTP2ErrorCode(rawValue: 0x6)
        /// The request was not processed at all and may be sent again.
        public static let refusedStream = HTTP2ErrorCode(rawValue: 0x7)
        /// The stream is not wanted any more.
        public static let cancel = HTTP2ErrorCode(rawValue: 0x8)
        /// The header table cannot be kept any more.
        public static let compressionError = HTTP2ErrorCode(rawValue: 0x9)
        /// The peer does too much of something.
        public static let enhanceYourCalm = HTTP2ErrorCode(rawValue: 0xB)

        private static let names: [String: HTTP2ErrorCode] = [
            "NO_ERROR": noError, "PROTOCOL_ERROR": protocolError, "INTERNAL_ERROR": internalError,
            "FLOW_CONTROL_ERROR": flowControlError, "STREAM_CLOSED": streamClosed, "FRAME_SIZE_ERROR": frameSizeError,
            "REFUSED_STREAM": refusedStream, "CANCEL": cancel, "COMPRESSION_ERROR": compressionError,
            "ENHANCE_YOUR_CALM": enhanceYourCalm,
        ]

        /// The code with a name of RFC 9113, such as `REFUSED_STREAM`; nil when there is none.
        public init?(name: String) {
            guard let code = Self.names[name] else { return nil }
            self = code
        }

        /// The name in RFC 9113, or the number in hexadecimal.
        public var name: String {
            Self.names.first { $0.value == self }?.key ?? "0x" + String(rawValue, radix: 16)
        }
    }
}
