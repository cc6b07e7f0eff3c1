/// The reason why a request has no response from APNs: ``code`` for a program, ``message`` for a person, and ``cause`` for
/// the log.
///
/// A response of APNs is never an error, also not a rejection: see ``APNsResponse``. After an error, ``mayHaveBeenProcessed``
/// is true if APNs may have processed the push.
public struct APNsError: Error, Sendable {
    /// The kind of an error. Later versions can add kinds, so a `switch` needs a `default`.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The stable name of the kind.
        public let description: String

        private init(_ description: String) { self.description = description }

        /// The notification breaks a rule of APNs. The message names the rule.
        public static let notificationInvalid = Code("notificationInvalid")
        /// The payload is larger than APNs allows.
        public static let payloadTooLarge = Code("payloadTooLarge")
        /// A device token is not a text of hexadecimal digits.
        public static let tokenInvalid = Code("tokenInvalid")
        /// A key or a certificate cannot be used.
        public static let credentialsInvalid = Code("credentialsInvalid")
        /// A setting has an invalid value. The message names the setting.
        public static let configurationInvalid = Code("configurationInvalid")
        /// There is no connection to APNs. The cause is the error of the last attempt.
        public static let connectionFailed = Code("connectionFailed")
        /// The connection ended before the response arrived.
        public static let connectionLost = Code("connectionLost")
        /// No connection with a free stream was available in time. The push was never sent.
        public static let notSent = Code("notSent")
        /// APNs did not respond in time.
        public static let timedOut = Code("timedOut")
        /// The number of waiting pushes has reached its limit.
        public static let queueFull = Code("queueFull")
        /// The sending task was cancelled.
        public static let cancelled = Code("cancelled")
        /// The client was shut down.
        public static let shutDown = Code("shutDown")
        /// APNs does not send such a response, for instance status 200 without the notification's ID.
        public static let answerInvalid = Code("answerInvalid")
    }

    /// The kind of the error.
    public var code: Code
    /// A sentence that names the fault, its place and the valid value. It never contains a token, a key or a payload.
    public var message: String
    /// Whether APNs may have processed the push although no response arrived. If false, APNs has not processed the push.
    public var mayHaveBeenProcessed: Bool
    /// The underlying error; nil if no other error caused this error.
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
