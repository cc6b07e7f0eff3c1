import CarillonWire

/// A message that a backend sent to a channel.
///
/// The library stores and acknowledges the message before it delivers it to the app. It keeps the message until the app has
/// handled it: when the iteration over ``PushChannel/events`` requests the next event. ``acknowledge()`` reports this earlier,
/// and ``fail(_:)`` reports that the app cannot handle the message. If the app or the iteration ended before the message was
/// handled, the message is delivered again.
public struct PushMessage: Sendable {
    /// The message ID, the same for each delivery.
    public let id: String
    /// The body as the sender posted it, up to 8 KiB; it may be empty. In an encrypted channel it is decrypted.
    public let body: [UInt8]
    /// The encoding of the body: `identity` (not encoded), or one of Web Push's encryptions, `aes128gcm` (RFC 8291) or `aesgcm`
    /// (its draft), which only the app can decrypt. Nil for an empty body.
    public let contentEncoding: String?
    /// For `aesgcm` only: the sender's `Encryption` header.
    public let encryption: String?
    /// For `aesgcm` only: the sender's `Crypto-Key` header.
    public let cryptoKey: String?

    /// Why an app cannot handle a message, with the codes that are reported to its sender.
    public struct Failure: Hashable, Sendable {
        /// 301–303.
        public let code: Int

        private init(code: Int) { self.code = code }

        /// 301: the handler failed.
        public static let handlerFailed = Failure(code: ResultCode.handlerFailed)
        /// 302: an operation that the handler began was rejected.
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

    /// Whether the app's notification service extension already showed the message to the user. False after the message was
    /// handled, and without ``PushClient/Configuration/sharedDirectory``.
    public var wasPresented: Bool { runner.wasPresented(id) }

    /// The body as text; nil if it is not UTF-8.
    public var text: String? { String(validating: body, as: UTF8.self) }

    /// Reports that the message was handled, without a wait for the next event.
    ///
    /// When this returns, the report is durable: the message is not delivered again. A second report on the same message changes
    /// nothing.
    /// - Throws: ``PushError`` with ``PushError/Code/storageUnavailable``; the message is delivered again then.
    public func acknowledge() async throws(PushError) { try await runner.handled(message, on: channel, failure: nil) }

    /// Reports that the app cannot handle the message. The message is not delivered again.
    ///
    /// When this returns, the report is durable. The server is notified at once, or when there is a connection. The message's
    /// outcome stays `acknowledged`, because it was received, and its sender can see the code beside it.
    /// - Throws: ``PushError`` with ``PushError/Code/storageUnavailable``; the message is delivered again then.
    public func fail(_ failure: Failure = .handlerFailed) async throws(PushError) {
        try await runner.handled(message, on: channel, failure: failure.code)
    }
}
