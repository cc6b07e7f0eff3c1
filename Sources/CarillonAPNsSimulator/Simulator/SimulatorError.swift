extension APNsSimulator {
    /// Why the simulator could not do what it was asked for.
    public struct SimulatorError: Error {
        /// What kind of fault it is. More can come.
        public struct Code: Hashable, Sendable, CustomStringConvertible {
            /// The name of the code, as in `addressUnavailable`.
            public let description: String

            private init(_ name: String) { description = name }

            /// A key or team identifier, a device token, or a topic is malformed.
            public static let identifierInvalid = Code("identifierInvalid")
            /// A key cannot be read, or is not a P-256 key.
            public static let keyInvalid = Code("keyInvalid")
            /// An address cannot be listened on.
            public static let addressUnavailable = Code("addressUnavailable")
            /// The data directory cannot be read or written, or holds something else.
            public static let storageUnavailable = Code("storageUnavailable")
            /// A certificate cannot be made.
            public static let certificateFailed = Code("certificateFailed")
            /// It runs already, or has been stopped.
            public static let alreadyStarted = Code("alreadyStarted")
            /// What was waited for did not come in time.
            public static let timedOut = Code("timedOut")
            /// A fault or a setting has a value that it cannot have.
            public static let settingInvalid = Code("settingInvalid")
        }

        /// What kind of fault it is.
        public var code: Code
        /// What was wrong, where, and what would be right.
        public var message: String
        /// The fault beneath, when there was one.
        public var cause: (any Error)?

        init(_ code: Code, _ message: String, cause: (any Error)? = nil) {
            self.code = code
            self.message = message
            self.cause = cause
        }
    }

    /// One of the two worlds of APNs, which share neither device tokens nor channels.
    public enum Environment: String, Hashable, Sendable, Codable, CaseIterable {
        /// Where development builds register.
        case sandbox
        /// Where everybody else's devices register.
        case production
    }
}

extension APNsSimulator.SimulatorError: CustomStringConvertible {
    /// The code and the message.
    public var description: String { "\(code): \(message)" }
}

typealias SimulatorError = APNsSimulator.SimulatorError
typealias Environment = APNsSimulator.Environment
