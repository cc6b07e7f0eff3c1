import CarillonWire

/// A message that a backend sent to a channel.
///
/// The server keeps a message until the app has handled it. It counts as handled when the iteration over
/// ``PushChannel/events`` asks for the next event; ``acknowledge()`` says so earlier, and ``fail()`` says that it
/// cannot be handled. A message that was not handled when the app ended, or when the iteration broke off, comes again.
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

    private let runner: SessionRunner
    private let channel: String

    init(_ frame: NotificationFrame, channel: String, runner: SessionRunner) {
        id = frame.version
        body = frame.body
        contentEncoding = frame.coding?.name.rawValue
        encryption = frame.coding?.encryption
        cryptoKey = frame.coding?.cryptoKey
        self.channel = channel
        self.runner = runner
    }

    /// The body as text; nil when it is not UTF-8.
    public var text: String? { String(validating: body, as: UTF8.self) }

    /// Says that the message was handled, without waiting for the next event.
    ///
    /// When this returns, the answer is durable: the message is not shown again. The server is told at once, or when
    /// there is a connection. A second answer to the same message changes nothing.
    /// - Throws: ``PushError`` with ``PushError/Code/storageUnavailable``; the message then comes again.
    public func acknowledge() async throws(PushError) {
        try await runner.answer(HandledMessage(id: id, code: ResultCode.delivered), on: channel)
    }

    /// Says that the app cannot handle the message. It leaves the inbox, is not shown again, and its sender can learn
    /// that it failed.
    /// - Throws: ``PushError`` with ``PushError/Code/storageUnavailable``; the message then comes again.
    public func fail() async throws(PushError) {
        try await runner.answer(HandledMessage(id: id, code: ResultCode.handlerFailed), on: channel)
    }
}
