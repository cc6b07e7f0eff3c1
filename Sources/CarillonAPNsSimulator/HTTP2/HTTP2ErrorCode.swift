extension APNsSimulator {
    /// An error code of HTTP/2 in RST_STREAM and GOAWAY (RFC 9113 section 7).
    public struct HTTP2ErrorCode: RawRepresentable, Hashable, Sendable {
        /// The number in the frame.
        public var rawValue: UInt32

        /// Makes any code, known or unknown.
        public init(rawValue: UInt32) { self.rawValue = rawValue }

        /// There is no error.
        public static let noError = HTTP2ErrorCode(rawValue: 0x0)
        /// The peer violated the protocol.
        public static let protocolError = HTTP2ErrorCode(rawValue: 0x1)
        /// The endpoint failed.
        public static let internalError = HTTP2ErrorCode(rawValue: 0x2)
        /// The peer sent more data than its window allows.
        public static let flowControlError = HTTP2ErrorCode(rawValue: 0x3)
        /// A frame was received for a closed stream.
        public static let streamClosed = HTTP2ErrorCode(rawValue: 0x5)
        /// A frame has an invalid length.
        public static let frameSizeError = HTTP2ErrorCode(rawValue: 0x6)
        /// The request was not processed and can be sent again.
        public static let refusedStream = HTTP2ErrorCode(rawValue: 0x7)
        /// The stream is no longer needed.
        public static let cancel = HTTP2ErrorCode(rawValue: 0x8)
        /// The header table can no longer be used.
        public static let compressionError = HTTP2ErrorCode(rawValue: 0x9)
        /// The peer causes too much load.
        public static let enhanceYourCalm = HTTP2ErrorCode(rawValue: 0xB)

        private static let names: [String: HTTP2ErrorCode] = [
            "NO_ERROR": noError, "PROTOCOL_ERROR": protocolError, "INTERNAL_ERROR": internalError,
            "FLOW_CONTROL_ERROR": flowControlError, "STREAM_CLOSED": streamClosed, "FRAME_SIZE_ERROR": frameSizeError,
            "REFUSED_STREAM": refusedStream, "CANCEL": cancel, "COMPRESSION_ERROR": compressionError,
            "ENHANCE_YOUR_CALM": enhanceYourCalm,
        ]

        /// Returns the code with a name of RFC 9113, such as `REFUSED_STREAM`; nil for an unknown name.
        public init?(name: String) {
            guard let code = Self.names[name] else { return nil }
            self = code
        }

        /// The name in RFC 9113, or the number in hexadecimal if the code has no name.
        public var name: String {
            Self.names.first { $0.value == self }?.key ?? "0x" + String(rawValue, radix: 16)
        }
    }
}
