/// What went wrong, for a program (``code``), for a person (``message``) and for the log (``cause``).
///
/// What becomes of a channel is not an error but an event: see ``PushChannelEvent/error(code:)``.
public struct PushError: Error, Sendable {
    /// The kind of fault. More kinds may come: keep a `default` when you switch over it.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The stable name of the kind.
        public let description: String

        private init(_ description: String) { self.description = description }

        /// A setting has a value that cannot work; the message names it.
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
        /// The time limit of a call passed, and no failure is known that explains it; the message says what the call waited for.
        public static let timedOut = Code("timedOut")
        /// The task was cancelled while it waited.
        public static let cancelled = Code("cancelled")
        /// A channel's buffer is full, and a message for it was refused: nobody reads the channel, or not fast enough.
        public static let bufferFull = Code("bufferFull")
        /// A device is to be registered, and the configuration has no ``PushClient/Configuration/clientKey``.
        public static let clientKeyMissing = Code("clientKeyMissing")
        /// A push token is not what the system gave the app: empty, or with characters that are no hexadecimal digits.
        public static let tokenInvalid = Code("tokenInvalid")
        /// The server will not take what the app said of its user.
        public static let userRefused = Code("userRefused")
        /// A subscription has no items, no fields, or a format that is none.
        public static let subscriptionInvalid = Code("subscriptionInvalid")
        /// A subscription's trigger cannot be read; the message says where.
        public static let triggerInvalid = Code("triggerInvalid")
        /// The server refused a subscription, or a change of it; the message has its reason.
        public static let subscriptionRefused = Code("subscriptionRefused")
        /// A subscription was given to the client already.
        public static let alreadySubscribed = Code("alreadySubscribed")
        /// A subscription was not given to this client.
        public static let notSubscribed = Code("notSubscribed")
        /// The connection ended before it was known what became of it.
        public static let interrupted = Code("interrupted")
        /// The server is of a version that has no subscriptions.
        public static let serverTooOld = Code("serverTooOld")
        /// A file cannot be read or written, or is none.
        public static let fileInvalid = Code("fileInvalid")
        /// A file changed twice while it was read to be sent; nothing was sent.
        public static let attachmentChanged = Code("attachmentChanged")
        /// Where a file was to be put, something is; it was left as it is.
        public static let fileExists = Code("fileExists")
        /// A manifest of an attachment is none.
        public static let manifestInvalid = Code("manifestInvalid")
        /// The server does not take an attachment, or does not give it to this device; the message has its reason.
        public static let attachmentRefused = Code("attachmentRefused")
        /// The server has no such attachment for this device: it was fetched, has expired, or never was.
        public static let attachmentGone = Code("attachmentGone")
        /// What the server gave is not what was sealed.
        public static let attachmentDamaged = Code("attachmentDamaged")
        /// The client runs already: it was started twice, or started and run.
        public static let alreadyRunning = Code("alreadyRunning")
        /// Another iteration of the channel's events goes on.
        public static let alreadyIterating = Code("alreadyIterating")
        /// The durable state cannot be read or written; the cause says why.
        public static let storageUnavailable = Code("storageUnavailable")
        /// Another client, in this process or another, has the storage open.
        public static let storageInUse = Code("storageInUse")
        /// The file is damaged, or is not a store of this library. It was left as it is.
        public static let storageDamaged = Code("storageDamaged")
        /// The file was written by a newer version of this library. It was left as it is.
        public static let storageTooNew = Code("storageTooNew")
        /// The storage holds the identity of another app, or of a server that is another one than that at the configured
        /// address.
        public static let storageMismatch = Code("storageMismatch")
        /// The server could not be reached.
        public static let serverUnreachable = Code("serverUnreachable")
        /// The server cannot serve now, or a proxy, a login page or another program answered in its place; the message names the
        /// address and the status. The client tries again by itself, and has changed nothing.
        public static let serverUnavailable = Code("serverUnavailable")
        /// The server refuses to register this device, as the key or the app is wrong, or a channel of it.
        public static let registrationRefused = Code("registrationRefused")
        /// The server does not know this device any more.
        public static let deviceUnknown = Code("deviceUnknown")
        /// Another connection took this device's place: its storage was copied.
        public static let replaced = Code("replaced")
        /// The server said something that the protocol does not allow.
        public static let protocolViolated = Code("protocolViolated")
    }

    /// What kind of fault it is.
    public var code: Code
    /// What was wrong, where, and what would be right. It never holds a token, a key or a payload.
    public var message: String
    /// The fault beneath, when there was one.
    public var cause: (any Error)?
    /// The server's own name for what it refused, of its list of errors.
    public var serverCode: String?
    /// What the app's own server said, which refused a device or a subscription; word for word.
    public var appCode: String?

    /// Makes an error, for instance in the tests of an app.
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
