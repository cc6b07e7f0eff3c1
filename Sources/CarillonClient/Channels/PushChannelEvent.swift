/// An event of a channel.
///
/// The cases are final. Events of later versions are reported as ``other(_:)``, so that a `switch` over all cases stays complete.
public enum PushChannelEvent: Sendable {
    /// The channel is open: send the token, or ``PushChannel/endpoint``, to your backend. Exactly one of this and
    /// ``error(code:)`` follows each `connect` that is not withdrawn with `disconnect`.
    case opened(token: String, host: String)
    /// The channel is closed permanently, by the app or by the server. The token is invalid, and a new `connect` returns another
    /// one. The token is empty if `disconnect` was called while the channel was connecting.
    case closed(token: String)
    /// The channel could not be opened, or has ended because of a fault. Its token, if it had one, is invalid.
    ///
    /// The codes are those of the Push Channel: 0 if the server could not be reached within the `timeout` of
    /// ``PushChannel/connect(timeout:encrypted:wake:)``; 200–499 inside the library (201: the server does not know this device
    /// any more, 202: the server refused the registration); 500–599 on the server.
    case error(code: Int)
    /// A message arrived. It was acknowledged when the library had stored it. It counts as handled when the iteration requests
    /// the next event.
    case message(PushMessage)
    /// The backend registered an address that the server pings, and the ping failed. The channel stays open. The failure is
    /// reported once, until something changes.
    ///
    /// After ``PingFailure/tokenLost`` the token must be delivered to the backend again. ``PushChannel/setTokenDelivery(_:)``
    /// does so.
    case pingFailed(PingFailure)
    /// The backend responds again, after ``pingFailed(_:)``.
    case recovered
    /// Another event, which the app can ignore. ``Other`` lists the known ones.
    case other(Other)

    /// An event beside the cases of ``PushChannelEvent``. Later versions can add events: keep a `default` in a `switch` over
    /// them.
    public struct Other: Hashable, Sendable, CustomStringConvertible {
        /// The stable name.
        public let description: String
        /// The id of a message for which the process ended ten times before the next event was requested; nil for other events.
        /// The message is not delivered again, and its sender can see the code 301.
        public let crashedMessage: String?

        private init(_ description: String, crashedMessage: String? = nil) {
            self.description = description
            self.crashedMessage = crashedMessage
        }

        /// The number of changes of the channel that were dropped, because the iteration did not take them in time; nil for other
        /// events. The event comes before all waiting events. ``PushChannel/state``, ``PushChannel/endpoint`` and
        /// ``PushChannel/lastErrorCode`` have the present state. Messages are never dropped.
        public private(set) var missedCount: Int?

        /// Makes the event for a number of dropped changes, for example in the tests of an app.
        public static func missed(_ count: Int) -> Other {
            var other = Other("missed")
            other.missedCount = count
            return other
        }

        /// The server's address changed, and with it the channel's: send ``PushChannel/endpoint`` to your backend again. The
        /// token is the same. ``PushChannel/setTokenDelivery(_:)`` delivers it again.
        public static let moved = Other("moved")

        static func crashed(_ message: String) -> Other { Other("crashed", crashedMessage: message) }
    }

    /// Why the backend's address did not respond, with the codes of the Push Channel.
    public struct PingFailure: Hashable, Sendable {
        /// 600–605. Later versions can add codes.
        public let code: Int

        init(code: Int) { self.code = code }

        /// 600: the host name of the address could not be resolved.
        public static let nameNotResolved = PingFailure(code: 600)
        /// 601: no connection could be made.
        public static let noConnection = PingFailure(code: 601)
        /// 602: the certificate is not valid.
        public static let badCertificate = PingFailure(code: 602)
        /// 603: no response arrived in time.
        public static let noAnswerInTime = PingFailure(code: 603)
        /// 604: the response is not valid.
        public static let invalidAnswer = PingFailure(code: 604)
        /// 605: the backend reports that it lost the token.
        public static let tokenLost = PingFailure(code: 605)
    }
}
