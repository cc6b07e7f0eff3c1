/// Why there is no answer from the service: what went wrong, for a program (``code``), for a person (``message``) and for
/// the log (``cause``).
///
/// What the service answered is never an error: see ``APNsResponse``. After an error, ``mayHaveBeenProcessed`` says
/// whether the push can have reached the service all the same.
public struct APNsError: Error, Sendable {
    /// The kind of fault. More kinds may come: keep a `default` when you switch over it.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The stable name of the kind.
        public let description: String

        private init(_ description: String) { self.description = description }

        /// The notification breaks a rule of the service; the message says which.
        public static let notificationInvalid = Code("notificationInvalid")
        /// The payload is larger than the service takes.
        public static let payloadTooLarge = Code("payloadTooLarge")
        /// A device token is not a text of hexadecimal digits.
        public static let tokenInvalid = Code("tokenInvalid")
        /// A key or a certificate cannot be used.
        public static let credentialsInvalid = Code("credentialsInvalid")
        /// A setting has a value that cannot work; the message names it.
        public static let configurationInvalid = Code("configurationInvalid")
        /// There is no connection to the service; the cause is the last attempt's.
        public static let connectionFailed = Code("connectionFailed")
        /// The connection ended before the answer came.
        public static let connectionLost = Code("connectionLost")
        /// The push found no connection with room for it in time, and was never sent.
        public static let notSent = Code("notSent")
        /// The service did not answer in time.
        public static let timedOut = Code("timedOut")
        /// As many pushes wait as may wait.
        public static let queueFull = Code("queueFull")
        /// The task that sent was cancelled.
        public static let cancelled = Code("cancelled")
        /// The client was shut down.
        public static let shutDown = Code("shutDown")
        /// The answer is not one that the service gives, for instance status 200 without the notification's ID.
        public static let answerInvalid = Code("answerInvalid")
    }

    /// What kind of fault it is.
    public var code: Code
    /// What was wrong, where, and what would be right. It never holds a token, a key or a payload.
    public var message: String
    /// Whether the service can have taken the push although it did not say so. When false, it has certainly not.
    public var mayHaveBeenProcessed: Bool
    /// The fault beneath, when there was one.
    public var cause: (any Error)?

    /// Makes an error, for instance in the tests of a backend.
    public init(_ code: Code, _ message: String, mayHaveBeenProcessed: Bool = false, cause: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.mayHaveBeenProcessed = mayHaveBeenProcessed
        self.cause = cause
    }
}

extension APNsError: CustomStringConvertible {
    /// The code and the message.
    public var description: String { "\(code): \(message)" }
}
