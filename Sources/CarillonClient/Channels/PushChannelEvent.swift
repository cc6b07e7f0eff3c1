/// What can happen on a channel.
///
/// The cases are final: what later versions report beside them comes as ``other(_:)``, so that a switch that knows all cases
/// stays complete.
public enum PushChannelEvent: Sendable {
    /// The channel is open: send the token, or ``PushChannel/endpoint``, to your backend. Exactly one of this and
    /// ``error(code:)`` follows each `connect` that is not given up with `disconnect`.
    case opened(token: String, host: String)
    /// The channel is closed for good, by the app or by the server. The token is dead; a new `connect` gives another. It is
    /// empty when the channel was given up while it was connecting.
    case closed(token: String)
    /// The channel could not be opened, or cannot go on; its token, if it had one, is dead.
    ///
    /// The numbers are those of the Push Channel: 0 when the service could not be reached in the time given to
    /// ``PushChannel/connect(timeout:encrypted:wake:)``; 200–499 inside the library (201: the server does not know this device any
    /// more, 202: the server refused the registration); 500–599 on the server.
    case error(code: Int)
    /// A message came. It was acknowledged when the library had stored it, and counts as handled when the next event is
    /// asked for.
    case message(PushMessage)
    /// The backend registered an address that the server looks at now and then, and it did not answer as it should.
    /// The channel is open still. Reported once, until something changes.
    ///
    /// After ``PingFailure/tokenLost`` the backend must be given the token again: set
    /// ``PushChannel/setTokenDelivery(_:)``, and it is.
    case pingFailed(PingFailure)
    /// The backend answers again, after ``pingFailed(_:)``.
    case recovered
    /// Something else, which may be ignored; ``Other`` lists what is known.
    case other(Other)

    /// What is reported beside the cases of ``PushChannelEvent``. More may come: keep a `default` when you switch over it.
    public struct Other: Hashable, Sendable, CustomStringConvertible {
        /// The stable name.
        public let description: String
        /// The id of a message with which the process ended ten times before the next event was asked for; nil for anything else. The message is not
        /// shown again, and its sender can see the code 301.
        public let crashedMessage: String?

        private init(_ description: String, crashedMessage: String? = nil) {
            self.description = description
            self.crashedMessage = crashedMessage
        }

        /// How many changes of the channel were dropped, as the iteration did not take them in time; nil for anything else. It comes before all
        /// that waits. ``PushChannel/state``, ``PushChannel/endpoint`` and ``PushChannel/lastErrorCode`` have the present state. Messages are
        /// never dropped.
        public private(set) var missedCount: Int?

        /// The event for so many dropped changes, for instance in the tests of an app.
        public static func missed(_ count: Int) -> Other {
            var other = Other("missed")
            other.missedCount = count
            return other
        }

        /// The server has another address, and so has the channel: give ``PushChannel/endpoint`` to your backend again.
        /// The token is the same, and is delivered again by ``PushChannel/setTokenDelivery(_:)``.
        public static let moved = Other("moved")

        static func crashed(_ message: String) -> Other { Other("crashed", crashedMessage: message) }
    }

    /// Why a backend's address did not answer, in the numbers of the Push Channel.
    public struct PingFailure: Hashable, Sendable {
        /// 600–605; more may come.
        public let code: Int

        init(code: Int) { self.code = code }

        /// 600: the name in the address could not be resolved.
        public static let nameNotResolved = PingFailure(code: 600)
        /// 601: no connection came about.
        public static let noConnection = PingFailure(code: 601)
        /// 602: the certificate is not valid.
        public static let badCertificate = PingFailure(code: 602)
        /// 603: no answer came in time.
        public static let noAnswerInTime = PingFailure(code: 603)
        /// 604: what came is no valid answer.
        public static let invalidAnswer = PingFailure(code: 604)
        /// 605: the backend says that it lost the token.
        public static let tokenLost = PingFailure(code: 605)
    }
}
