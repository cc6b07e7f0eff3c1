extension APNsSimulator {
    /// An error of the simulator.
    public struct SimulatorError: Error {
        /// The kind of an error. Later versions can add kinds.
        public struct Code: Hashable, Sendable, CustomStringConvertible {
            /// The name of the code, as in `addressUnavailable`.
            public let description: String

            private init(_ name: String) { description = name }

            /// A key ID, a team ID, a device token, or an APNs topic is malformed.
            public static let identifierInvalid = Code("identifierInvalid")
            /// A key cannot be read, or is not a P-256 key.
            public static let keyInvalid = Code("keyInvalid")
            /// The simulator cannot listen on an address.
            public static let addressUnavailable = Code("addressUnavailable")
            /// The data directory cannot be read or written, or contains other files.
            public static let storageUnavailable = Code("storageUnavailable")
            /// A certificate cannot be made.
            public static let certificateFailed = Code("certificateFailed")
            /// The simulator was already started, or has been stopped.
            public static let alreadyStarted = Code("alreadyStarted")
            /// An expected event did not happen in time.
            public static let timedOut = Code("timedOut")
            /// A fault rule or a setting has an invalid value.
            public static let settingInvalid = Code("settingInvalid")
        }

        /// The kind of the error.
        public var code: Code
        /// A sentence that names the fault, its place and the valid value.
        public var message: String
        /// The underlying error; nil if no other error caused the fault.
        public var cause: (any Error)?

        init(_ code: Code, _ message: String, cause: (any Error)? = nil) {
            self.code = code
            self.message = message
            self.cause = cause
        }
    }

    /// One of the two environments of APNs, which share neither device tokens nor channels.
    public enum Environment: String, Hashable, Sendable, Codable, CaseIterable {
        /// The environment of development builds.
        case sandbox
        /// The environment of all other builds.
        case production
    }
}

extension APNsSimulator.SimulatorError: CustomStringConvertible {
    /// The code and the message.
    public var description: String { "\(code): \(message)" }
}

typealias SimulatorError = APNsSimulator.SimulatorError
typealias Environment = APNsSimulator.Environment
