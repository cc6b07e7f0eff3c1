/// The codes with which the server closes a socket (RFC 6455 section 7.4), and the expected reaction of the client.
///
/// Code 4774 makes Firefox stop reconnecting, and is therefore never used.
package enum CloseCode: UInt16, CaseIterable, Sendable {
    /// The client closed the socket, or the socket ended without a fault.
    case normal = 1000
    /// A frame violated the protocol. The reason describes the violation.
    case protocolError = 1002
    /// The client sent a binary message. Only text messages are supported.
    case unsupportedData = 1003
    /// A text message was not UTF-8.
    case invalidUTF8 = 1007
    /// The server refuses to serve this client. The reason describes why.
    case policy = 1008
    /// A message was larger than the limit.
    case tooBig = 1009
    /// The server failed. The client should reconnect later.
    case internalError = 1011
    /// The server is stopping or restarting, or cannot reach the device's home. The client should reconnect after the delay in
    /// `goodbye`.
    case restart = 1012
    /// The server has no free connections. The client should reconnect later.
    case tryLater = 1013
    /// The device or its credential is not known. The client should register again.
    case unauthorized = 4401
    /// The client did not answer a keep-alive in time.
    case keepAliveTimeout = 4408
    /// A newer connection of the same device replaced this one.
    case replaced = 4409
    /// The device or its app was deleted.
    case gone = 4410
    /// The client did not read the sent data in time.
    case outputStalled = 4411
}
