import CarillonWire

/// A message that a backend sent to a channel.
///
/// The library has stored the message, and acknowledged it, before it is shown. It keeps it until it was handled: when the
/// iteration over ``PushChannel/events`` asks for the next event. ``acknowledge()`` says so earlier, and ``fail(_:)`` says
/// that it cannot be handled. A message that was not handled when the app ended, or when the iteration broke off, comes
/// again.
public struct PushMessage: Sendable {
    /// The message's name, the same each time it comes.
    public let id: String
    /// The bytes that the sender wrote, up to 8 KiB; may be empty.
    public let body: [UInt8]
    /// How the body is encoded: `identity` (as it was sent), or one of Web Push's encryptions, `aes128gcm`
    /// (RFC 8291) and `aesgcm` (its draft), which only the app can decrypt. Nil for an empty body.
    public let contentEncoding: String?
    /// For `aesgcm` only: the sender's `Encryption` header.
    public let encryption: String?
    /// For `aesgcm` only: the sender's `Crypto-Key` header.
    public let cryptoKey: String?

    /// Why an app cannot handle a message, in the numbers that are reported to its sender.
    public struct Failure: Hashable, Sendable {
        /// 301–303.
        public let code: Int

        private init(code: Int) { self.code = code }

        /// 301: the handler failed.
        public static let handlerFailed = Failure(code: ResultCode.handlerFailed)
        /// 302: what the handler began was refused.
        public static let rejected = Failure(code: ResultCode.promiseRejected)
        /// 303: another reason.
        public static let other = Failure(code: ResultCode.other)
    }

    private let message: BufferedMessage
    private let runner: SessionRunner
    private let channel: String

    init(_ message: BufferedMessage, channel: String, runner: SessionRunner) {
        id = message.id
        body = message.body
        contentEncoding = message.coding?.name.rawValue
        encryption = message.coding?.encryption
        cryptoKey = message.coding?.cryptoKey
        self.message = message
        self.channel = channel
        self.runner = runner
    }

    /// Whether the app's notification service extension showed the message to the user already. False once it was handled, and
    /// without ``PushClient/Configuration/sharedDirectory``.
    public var wasPresented: Bool { runner.wasPresented(id) }

    /// The body as text; nil when it is not UTF-8.
    public var text: String? { String(validating: body, as: UTF8.self) }

    /// Says that the message was handled, without waiting for the next event.
    ///
    /// When this returns, the answer is durable: the message is not shown again. A second answer to the same message
    /// changes nothing.
    /// - Throws: ``PushError`` with ``PushError/Code/storageUnavailable``; the message then comes again.
    public func acknowledge() async throws(PushError) { try await runner.handled(message, on: channel, failure: nil) }

    /// Says that the app cannot handle the message, which is not shown again.
    ///
    /// When this returns, the answer is durable. The server is notified at once, or when there is a connection; the message's
    /// outcome stays `acknowledged`, as it was received, and its sender can see the code beside it.
    /// - Throws: ``PushError`` with ``PushError/Code/storageUnavailable``; the message then comes again.
    public func fail(_ failure: Failure = .handlerFailed) async throws(PushError) {
        try await runner.handled(message, on: channel, failure: failure.code)
    }
}
