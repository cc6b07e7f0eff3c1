/// The codes with which the server closes a socket (RFC 6455 section 7.4), and what a client should do.
///
/// Code 4774 tells Firefox not to come back, and is therefore never used.
package enum CloseCode: UInt16, CaseIterable, Sendable {
    /// The client closed, or nothing is wrong.
    case normal = 1000
    /// A frame broke the protocol. The reason says how.
    case protocolError = 1002
    /// A binary message came; only text is spoken here.
    case unsupportedData = 1003
    /// A text message was not UTF-8.
    case invalidUTF8 = 1007
    /// The server will not do this for this client; the reason says why.
    case policy = 1008
    /// A message was larger than the limit.
    case tooBig = 1009
    /// The server met a fault; come back later.
    case internalError = 1011
    /// The server is stopping or restarting, or cannot reach the device's home; come back after the delay of `goodbye`.
    case restart = 1012
    /// The server is full; come back later.
    case tryLater = 1013
    /// The device or its credential is not known; register again.
    case unauthorized = 4401
    /// No answer to a keep-alive came in time.
    case keepAliveTimeout = 4408
    /// A newer connection of the same device took over.
    case replaced = 4409
    /// The device or its app was deleted.
    case gone = 4410

    /// The client did not read what was sent to it.
    case outputStalled = 4411

    /// Whether a client that reconnects with the same identity can hope to be served.
    package var allowsReconnect: Bool {
        switch self {
        case .unauthorized, .gone, .replaced: false
        default: true
        }
    }
}
