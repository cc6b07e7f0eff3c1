/// A failure, with values for a program (``code``), for a person (``message``) and for the log (``cause``).
///
/// The end of a channel is not an error but an event: see ``PushChannelEvent/error(code:)``.
public struct PushError: Error, Sendable {
    /// The kind of fault. Later versions can add kinds: keep a `default` in a `switch` over them.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The stable name of the kind.
        public let description: String

        private init(_ description: String) { self.description = description }

        /// The value of a setting is not valid; the message names the setting.
        public static let configurationInvalid = Code("configurationInvalid")
        /// A channel identifier is empty or longer than 256 bytes of UTF-8.
        public static let identifierInvalid = Code("identifierInvalid")
        /// Another live ``PushChannel`` has this identifier.
        public static let identifierInUse = Code("identifierInUse")
        /// `connect` on a channel that is connecting.
        public static let alreadyConnecting = Code("alreadyConnecting")
        /// `connect` on a channel that is open.
        public static let alreadyOpen = Code("alreadyOpen")
        /// `connect` on a channel whose disconnection is not finished.
        public static let stillDisconnecting = Code("stillDisconnecting")
        /// The channel failed, or was closed, while ``PushChannel/ensureOpen(timeout:encrypted:wake:)`` waited for it.
        public static let channelEnded = Code("channelEnded")
        /// The time limit of a call passed, and no known failure explains it. The message names the condition that the call
        /// waited for.
        public static let timedOut = Code("timedOut")
        /// The task was cancelled during a wait.
        public static let cancelled = Code("cancelled")
        /// A channel's buffer is full, and a message for it was rejected: the channel has no reader, or a slow one.
        public static let bufferFull = Code("bufferFull")
        /// A device must be registered, and the configuration has no ``PushClient/Configuration/clientKey``.
        public static let clientKeyMissing = Code("clientKeyMissing")
        /// A push token is not valid: it is empty, or contains characters that are not hexadecimal digits.
        public static let tokenInvalid = Code("tokenInvalid")
        /// The server rejected the user token.
        public static let userRefused = Code("userRefused")
        /// A subscription has no items or no fields, or its format is not valid.
        public static let subscriptionInvalid = Code("subscriptionInvalid")
        /// A subscription's trigger cannot be parsed; the message has the position.
        public static let triggerInvalid = Code("triggerInvalid")
        /// The server rejected a subscription, or a change of it; the message has its reason.
        public static let subscriptionRefused = Code("subscriptionRefused")
        /// The subscription was passed to the client already.
        public static let alreadySubscribed = Code("alreadySubscribed")
        /// The subscription was not passed to this client.
        public static let notSubscribed = Code("notSubscribed")
        /// The connection ended before the result of a request was known.
        public static let interrupted = Code("interrupted")
        /// The server's version does not support subscriptions.
        public static let serverTooOld = Code("serverTooOld")
        /// A file cannot be read or written, or is not a regular file.
        public static let fileInvalid = Code("fileInvalid")
        /// A file changed during two attempts to send it; nothing was sent.
        public static let attachmentChanged = Code("attachmentChanged")
        /// A file exists at the destination path; it was left as it is.
        public static let fileExists = Code("fileExists")
        /// The manifest of an attachment is not valid.
        public static let manifestInvalid = Code("manifestInvalid")
        /// The server rejects an attachment, or does not send it to this device; the message has its reason.
        public static let attachmentRefused = Code("attachmentRefused")
        /// The server has no such attachment for this device: it was fetched, has expired, or never existed.
        public static let attachmentGone = Code("attachmentGone")
        /// The content from the server is not the sealed content.
        public static let attachmentDamaged = Code("attachmentDamaged")
        /// The client runs already: it was started twice, or started and run.
        public static let alreadyRunning = Code("alreadyRunning")
        /// Another iteration over the channel's events is running.
        public static let alreadyIterating = Code("alreadyIterating")
        /// The durable state cannot be read or written; `cause` has the reason.
        public static let storageUnavailable = Code("storageUnavailable")
        /// Another client, in this process or another, has the storage open.
        public static let storageInUse = Code("storageInUse")
        /// The file is damaged, or is not a store of this library. It was left as it is.
        public static let storageDamaged = Code("storageDamaged")
        /// The file was written by a newer version of this library. It was left as it is.
        public static let storageTooNew = Code("storageTooNew")
        /// The storage belongs to another app, or to a server that is not the one at the configured address.
        public static let storageMismatch = Code("storageMismatch")
        /// The server could not be reached.
        public static let serverUnreachable = Code("serverUnreachable")
        /// The server is not available now, or a proxy, a login page or another program responded in its place. The message
        /// contains the address and the status. The client tries again by itself, and has changed nothing.
        public static let serverUnavailable = Code("serverUnavailable")
        /// The server refuses to register this device, because the key or the app is wrong, or to register a channel of it.
        public static let registrationRefused = Code("registrationRefused")
        /// The server does not know this device any more.
        public static let deviceUnknown = Code("deviceUnknown")
        /// Another connection replaced the connection of this device: its storage was copied.
        public static let replaced = Code("replaced")
        /// The server sent data that the protocol does not allow.
        public static let protocolViolated = Code("protocolViolated")
    }

    /// The kind of fault.
    public var code: Code
    /// A sentence for people: what is wrong, where, and what is valid. It never contains a token, a key or a payload.
    public var message: String
    /// The underlying error; nil if no other error caused the fault.
    public var cause: (any Error)?
    /// The error code of the server (`docs/errors.md`); nil if the server sent no error code.
    public var serverCode: String?
    /// The code with which the app's own server refused a device or a subscription, unchanged; nil if that server sent no code.
    public var appCode: String?

    /// Makes an error, for example in the tests of an app.
    public init(
        _ code: Code, _ message: String, cause: (any Error)? = nil, serverCode: String? = nil, appCode: String? = nil
    ) {
        self.code = code
        self.message = message
        self.cause = cause
        self.serverCode = serverCode
        self.appCode = appCode
    }
}

extension PushError: CustomStringConvertible {
    /// The code and the message.
    public var description: String { "\(code): \(message)" }
}
